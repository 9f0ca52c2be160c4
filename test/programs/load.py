#!/usr/bin/env python3
"""load.py memcached|redis|http|dns PORT [CLIENTS] [TIMES] - load for a server, from plain threads, each with a connection of
its own. Every answer is checked; prints how many were right."""
import hashlib
import socket
import sys
import threading
import time

kind, port = sys.argv[1], int(sys.argv[2])
clients = int(sys.argv[3]) if len(sys.argv) > 3 else 16
times = int(sys.argv[4]) if len(sys.argv) > 4 else 100
right = [0] * clients


def connect():
    for _ in range(200):
        try:
            s = socket.create_connection(("127.0.0.1", port), timeout=20)
            s.settimeout(20)
            return s, s.makefile("rb")
        except ConnectionRefusedError:
            time.sleep(0.05)
    sys.exit("nobody listens")


def value(me, i):
    return hashlib.sha256(b"%d %d" % (me, i)).hexdigest().encode() * (1 + i % 20)


def memcached(me):
    s, f = connect()
    for i in range(times):
        v = value(me, i)
        s.sendall(b"set k%d-%d 0 0 %d\r\n%s\r\n" % (me, i, len(v), v))
        right[me] += f.readline() == b"STORED\r\n"
        s.sendall(b"get k%d-%d\r\n" % (me, i))
        f.readline()
        right[me] += f.readline() == v + b"\r\n" and f.readline() == b"END\r\n"


def redis(me):
    s, f = connect()
    for i in range(times):
        k, v = b"k%d-%d" % (me, i), value(me, i)
        s.sendall(b"*3\r\n$3\r\nSET\r\n$%d\r\n%s\r\n$%d\r\n%s\r\n" % (len(k), k, len(v), v))
        right[me] += f.readline() == b"+OK\r\n"
        s.sendall(b"*2\r\n$3\r\nGET\r\n$%d\r\n%s\r\n" % (len(k), k))
        f.readline()
        right[me] += f.readline() == v + b"\r\n"


def http(me):
    """Files f0 .. f7: fN is the digit N, 100000 + N times."""
    for i in range(times):
        s, f = connect()
        s.sendall(b"GET /f%d HTTP/1.0\r\n\r\n" % (i % 8))
        status = f.readline()
        while f.readline() not in (b"\r\n", b""):
            pass
        body = f.read()
        right[me] += status.split()[1] == b"200" and body == b"%d" % (i % 8) * (100000 + i % 8)
        s.close()


def dns(me):
    """hN.test is 10.0.0.N."""
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.settimeout(1)
    for i in range(times):
        ask = b"%c%c\1\0\0\1\0\0\0\0\0\0\2h%d\4test\0\0\1\0\1" % (me, i, i % 4)
        answer = b""
        for _ in range(20):  # it may not listen yet, or not have read its zone: then the answer is an error
            try:
                s.sendto(ask, ("127.0.0.1", port))
                answer = s.recv(512)
                if answer[3] & 15 == 0:
                    break
            except (TimeoutError, ConnectionRefusedError):
                pass
            time.sleep(0.05)
        right[me] += answer[:2] == ask[:2] and bytes([10, 0, 0, i % 4]) in answer


crowd = [threading.Thread(target=globals()[kind], args=(i,)) for i in range(clients)]
for t in crowd:
    t.start()
for t in crowd:
    t.join()
print("right answers:", sum(right))
