# dev/fuzz/gdb.py - changes words of a core file and has gdb's commands for Kochab (dev/kochab-gdb.py) read it, again and
# again; gdb runs it, as dev/fuzz/run says: gdb -nx -batch -ex 'python FOUND, SECONDS, SEED = ...' -x gdb.py PROGRAM CORE
# INPUT... An input is a list of changes, a line each: what, which, byte, new value. First come the inputs that are given,
# then random ones. The commands end soon, whatever they read; what they say is not long and has no control characters; and
# their errors are lines, not Python's exceptions.

import glob
import os
import random
import struct
import sys
import time

import gdb

FOUND, SECONDS, SEED, CORE, INPUTS = FUZZ  # noqa: F821 # set by whoever sources this
SLOW, LONG, STACK = 10, 4 << 20, 1024
COMMANDS = ["kochab vps", "kochab threads", "kochab threads waiting", "kochab apply all bt"]
ODD = (0, 1, 8, 77, 0x7F, 0x1B, 4096, (1 << 31) - 1, 1 << 31, (1 << 32) - 1, 1 << 47, 1 << 63, (1 << 64) - 8, (1 << 64) - 1)
WHAT = ("table", "descriptor", "vps", "vp", "stack", "state", "context")


class Core:
    """The file, by address."""

    def __init__(self, path):
        self.file = open(path, "r+b", buffering=0)
        head = self.file.read(64)
        at, size, n = struct.unpack_from("<Q", head, 32)[0], *struct.unpack_from("<HH", head, 54)
        self.parts = []
        for i in range(n):
            self.file.seek(at + i * size)
            kind, _, offset, address, _, in_file = struct.unpack_from("<IIQQQQ", self.file.read(size))
            if kind == 1 and in_file:
                self.parts.append((address, in_file, offset))
        self.before = []

    def offset(self, address, size):
        for low, n, offset in self.parts:
            if low <= address and address + size <= low + n:
                return offset + address - low
        return None

    def change(self, address, value, size):
        at = self.offset(address, size)
        if at is None:
            return
        self.file.seek(at)
        self.before.append((at, self.file.read(size)))
        self.file.seek(at)
        self.file.write((value & (1 << 8 * size) - 1).to_bytes(size, "little"))

    def restore(self):
        for at, data in reversed(self.before):
            self.file.seek(at)
            self.file.write(data)
        self.before = []


class Places:
    """Where the runtime's words lie."""

    def __init__(self):
        table = gdb.parse_and_eval("kbi_descriptor_table")
        self.table, self.table_size = int(table.address), table.type.sizeof
        self.n = int(table["used"]["v_"])
        at = table["at"]
        self.descriptor, self.size = int(at), at.type.target().sizeof
        self.state = int(at[0]["task"]["state"].address) - self.descriptor
        self.context = int(at[0]["task"]["ctx"].address) - self.descriptor
        self.live = [i for i in range(self.n) if int(at[i]["task"]["state"]["v_"]) >> 32]
        self.stacks = [int(at[i]["task"]["ctx"]["sp"]) for i in self.live]
        vps, n = gdb.parse_and_eval("&kbi_vps"), gdb.parse_and_eval("&kbi_vp_n")
        self.vps = (int(vps), int(n))
        first = gdb.parse_and_eval("kbi_vps")
        self.vp = [int(first[i]) for i in range(int(n.dereference()))]
        self.vp_size = first.dereference().dereference().type.sizeof

    def address(self, what, which, byte):
        thread = self.descriptor + self.live[which % len(self.live)] * self.size
        if what == "table":
            return self.table + byte % self.table_size
        if what == "vps":
            return self.vps[which % 2] + byte % 8
        if what == "vp":
            return self.vp[which % len(self.vp)] + byte % self.vp_size
        if what == "stack":
            return self.stacks[which % len(self.stacks)] + byte % STACK
        if what == "state":
            return thread + self.state + byte % 8
        if what == "context":
            return thread + self.context + byte % 8
        return thread + byte % self.size


def draw(random_):
    changes = []
    for _ in range(1 + random_.getrandbits(3)):
        what = random_.choice(WHAT)
        kind = random_.randrange(4)
        value = (
            random_.choice(ODD)
            if kind == 0
            else random_.getrandbits(64)
            if kind == 1
            else random_.getrandbits(8)
            if kind == 2
            else random_.choice(places.stacks + places.vp + [places.descriptor, places.table])
            + random_.randrange(-512, 512)
        )
        byte = random_.getrandbits(10)
        size = random_.choice((1, 4, 8, 8))
        changes.append((what, random_.getrandbits(8), byte & ~7 if random_.getrandbits(2) else byte, value, size))
    return changes


def read_input(path):
    with open(path, encoding="ascii") as lines:
        words = [line.split() for line in lines if line.strip() and line[0] != "#"]
    return [(w[0], int(w[1], 0), int(w[2], 0), int(w[3], 0), int(w[4], 0)) for w in words]


def keep(changes, name):
    with open(name, "w", encoding="ascii") as out:
        out.writelines("%s %d %d %#x %d\n" % change for change in changes)


def complaint():
    """What is wrong with what the commands say."""
    for command in COMMANDS:
        began = time.process_time()
        try:
            text = gdb.execute(command, to_string=True)
        except gdb.error as error:
            text = str(error)
            if "Python" in text:
                return "%s: %s" % (command, text)
        if time.process_time() - began > SLOW:
            return "%s took %.1f s" % (command, time.process_time() - began)
        if len(text) > LONG:
            return "%s said %d bytes" % (command, len(text))
        if any(c != "\n" and not c.isprintable() for c in text):
            return "%s: control characters: %r" % (command, next(l for l in text.split("\n") if not l.isprintable())[:200])
        if "Python Exception" in text or "Traceback" in text:
            return "%s: %s" % (command, text[:200])
    return None


def try_on(changes):
    pending = os.path.join(FOUND, "gdb-last")
    keep(changes, pending)
    for what, which, byte, value, size in changes:
        core.change(places.address(what, which, byte), value, size)
    gdb.execute("core-file %s" % CORE, to_string=True)
    wrong = complaint()
    core.restore()
    if wrong:
        os.rename(pending, os.path.join(FOUND, "gdb-%d" % count))
        print("FOUND %s: gdb-%d: %s" % (FOUND, count, wrong))
        gdb.execute("quit 1")


gdb.execute("set pagination off")
gdb.execute("core-file %s" % CORE, to_string=True)
core, places, count = Core(CORE), Places(), 0
COMMANDS += ["kochab bt %d 2" % places.live[-1], "kochab bt %d" % (places.n + 5)]
inputs = [path for pattern in INPUTS for path in sorted(glob.glob(pattern))]
until = time.monotonic() + SECONDS
for path in inputs:
    count += 1
    try_on(read_input(path))
seed = SEED
while time.monotonic() < until:
    count += 1
    seed += 1
    try_on(draw(random.Random(seed)))
print("%d inputs" % count)
sys.stdout.flush()
