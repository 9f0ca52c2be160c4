"""Clients, a broker and workers, each a thread, that talk by ZeroMQ's sockets inside one process."""
import os
import threading

import zmq

WORKERS, CLIENTS, QUESTIONS = 8, 20, 100
context = zmq.Context(4)
front = context.socket(zmq.ROUTER)
front.bind("inproc://front")
back = context.socket(zmq.DEALER)
back.bind("inproc://back")
answers = [0] * CLIENTS


def worker():
    with context.socket(zmq.REP) as s:
        s.connect("inproc://back")
        while True:
            m = s.recv()
            s.send(m + m)
            if m == b"end":
                return


def client(i):
    with context.socket(zmq.REQ) as s:
        s.connect("inproc://front")
        for k in range(QUESTIONS):
            s.send(b"%d" % k)
            answers[i] += int(s.recv() == b"%d%d" % (k, k))


def start(fn, arguments):
    threads = [threading.Thread(target=fn, args=a) for a in arguments]
    for t in threads:
        t.start()
    return threads


workers = start(worker, [()] * WORKERS)
threading.Thread(target=zmq.proxy, args=(front, back), daemon=True).start()
for t in start(client, [(i,) for i in range(CLIENTS)]):
    t.join()
with context.socket(zmq.REQ) as s:
    s.connect("inproc://front")
    for t in workers:
        s.send(b"end")
        s.recv()
for t in workers:
    t.join()
print(sum(answers), "answers are right", flush=True)
os._exit(0)  # the broker waits for ever
