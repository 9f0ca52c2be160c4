"""ring.py THREADS SECONDS: a number goes around a ring of threads, each with a SimpleQueue. Each adds 1.

Prints the hops and the nanoseconds that they took.
"""
import sys
import threading
import time
from queue import SimpleQueue


def hand_on(mine, following, counts, at, end):
    hops = 0
    while True:
        number = mine.get()
        if number < 0:
            following.put(number)
            break
        hops += 1
        following.put(-1 if at == 0 and time.monotonic() > end else number + 1)
    counts[at] = hops


def main():
    n, seconds = int(sys.argv[1]), float(sys.argv[2])
    queues = [SimpleQueue() for _ in range(n)]
    counts = [0] * n
    began = time.monotonic()
    threads = [threading.Thread(target=hand_on, args=(queues[i], queues[(i + 1) % n], counts, i, began + seconds))
               for i in range(n)]
    for t in threads:
        t.start()
    began = time.monotonic()
    queues[0].put(0)
    for t in threads:
        t.join()
    took = time.monotonic() - began
    # the ring stops at thread 0, which has seen the number once more than the last thread
    assert all(c == counts[0] - 1 for c in counts[1:]), counts
    print(sum(counts), int(took * 1e9))


main()
