# kochab-gdb.py - gdb commands for programs that run on Kochab, live or from a core file:
#
#   (gdb) source /usr/local/share/kochab/kochab-gdb.py
#   kochab vps                   the virtual processors, their kernel threads and what they run
#   kochab threads [STATE]       all threads: index, state, VP, name, first function
#   kochab bt INDEX [ARGS]       the backtrace of one, parked or running; ARGS as for bt
#   kochab apply all bt [ARGS]   of all
#
# Nothing in the program is written. A parked thread's registers lie on its stack (src/arch/<machine>/ctx.h); they are
# given to gdb as the caller of the frame that is selected now (class Parked), so gdb's own unwinder does the rest.
# It needs the library's debug information, and gdb 9 or later with Python.
#
# The program may be damaged, or a core file made up: what is read is bounded, what cannot be read is told in a line, the
# rest is shown all the same, and names do nothing to a terminal.

import functools
import re

import gdb
import gdb.unwinder

MOST_THREADS, MOST_VPS, MOST_DAMAGED, AT_ONCE = 1 << 20, 1024, 64, 4096
FREE, NEW, READY, WAIVED, RUNNING, WAITING, DONE, FOREIGN, BLOCKED = range(9)
NOT_STARTED, TIMED, BOUND, WATCHES = 2, 4, 16, 64  # KBI_TASK_ flags
IDLE = ("busy", "polling", "sleeping")
STATES = ("free", "new", "ready", "moving", "running", "waiting", "ended", "kernel thread", "in a blocking call")

# Where a suspended context keeps registers, from its stack pointer up; "size": how much of it is not the caller's.
FRAMES = {
    "i386:x86-64": {"rbp": 0, "rip": 8, "size": 16, "pc": "rip", "sp": "rsp"},
    "aarch64": dict(
        [("x%d" % n, 8 * (n - 19)) for n in range(19, 31)], **{"pc": 88, "size": 176, "sp": "sp"}
    ),
    "riscv:rv64": dict(
        [("ra", 0), ("fp", 8), ("s1", 16)] + [("s%d" % n, 8 + 8 * n) for n in range(2, 12)],
        **{"pc": 0, "size": 208, "sp": "sp"}
    ),
}


# What reading a value that is not there, or is no such value, raises.
UNREADABLE = (gdb.error, ArithmeticError, LookupError, RuntimeError, ValueError)


def number(value):
    return int(value) & 0xFFFFFFFFFFFFFFFF


def plain(text):
    """As it may be shown on a terminal."""
    return "".join(c if " " <= c <= "~" else c.encode("unicode_escape").decode("ascii") for c in text)


def why(error):
    return "(%s)" % plain(str(error).rstrip("."))


def tells(invoke):
    """A command whose errors are a line."""

    @functools.wraps(invoke)
    def wrapped(self, args, from_tty):
        try:
            invoke(self, args, from_tty)
        except gdb.GdbError:
            raise
        except UNREADABLE as error:
            raise gdb.GdbError("Kochab's tables cannot be read: %s" % plain(str(error)))

    return wrapped


def word(address):
    data = gdb.selected_inferior().read_memory(address, 8).tobytes()
    return int.from_bytes(data, "little")


def field(kind, name):
    return {f.name: f for f in kind.strip_typedefs().fields()}[name]


class Runtime:
    """The runtime's tables. A program may carry two copies (preloaded and linked in); the one in use counts."""

    def __init__(self):
        for objfile in gdb.objfiles():
            symbol = objfile.lookup_global_symbol("kbi_descriptor_table")
            if symbol is None:
                continue
            table = symbol.value()
            if number(table["used"]["v_"]) == 0:
                continue
            self.table = table
            self.vps = objfile.lookup_global_symbol("kbi_vps").value()
            self.n_vps = min(number(objfile.lookup_global_symbol("kbi_vp_n").value()), MOST_VPS)
            self.limit = min(number(table["used"]["v_"]), MOST_THREADS)
            return
        raise gdb.GdbError("Kochab does not run here, or its library has no debug information.")

    def vp(self, i):
        return self.vps[i].dereference()

    def thread(self, index):
        if index < 0 or index >= self.limit:
            raise gdb.GdbError("No thread #%d." % index)
        return Thread(self, index, self.table["at"][index])

    def indices(self):
        """Of those that are not free. Of a table that lies elsewhere, or is none, some."""
        damaged = 0
        for index in self.candidates():
            try:
                damaged += self.thread(index).is_damaged()
            except UNREADABLE:
                damaged += 1
            if damaged > MOST_DAMAGED:
                print("(from #%d on the table is damaged)" % index)
                return
            yield index

    def candidates(self):
        """Many are looked at with one reading."""
        kind = self.table["at"].type.target()
        base, size = number(self.table["at"]), kind.sizeof
        task = field(kind, "task")
        at = (task.bitpos + field(task.type, "state").bitpos) // 8 + 4
        for first in range(0, self.limit, AT_ONCE):
            n = min(AT_ONCE, self.limit - first)
            try:
                data = gdb.selected_inferior().read_memory(base + first * size, n * size).tobytes()
            except UNREADABLE:
                yield from range(first, self.limit)
                return
            for i in range(n):
                if data[i * size + at : i * size + at + 4] != b"\0\0\0\0":
                    yield first + i


class Thread:
    def __init__(self, runtime, index, descriptor):
        state = number(descriptor["task"]["state"]["v_"])
        self.runtime = runtime
        self.index = index
        self.d = descriptor
        self.kind = state >> 32
        self.vp = state & 0xFFFFFFFF

    def name(self):
        return plain(self.d["name"].string(errors="replace")) if self.d["named"] or self.d["is_main"] else ""

    def is_damaged(self):
        return self.kind >= len(STATES) or (self.kind != FREE and number(self.d["task"]["index"]) != self.index)

    def where(self):
        if self.is_damaged():
            return "damaged"
        state = STATES[self.kind]
        if self.kind in (READY, WAIVED, RUNNING, WAITING):
            state += " on VP %d" % self.vp
        if self.kind == RUNNING:
            state += " (LWP %d)" % self.tid()
        return state

    def notes(self):
        notes = []
        if self.has_flag(TIMED):
            notes.append("deadline")
        if self.has_flag(WATCHES):
            notes.append("watch")
        if self.has_flag(BOUND):
            notes.append("bound")
        if self.d["own_tls"]:
            notes.append("own TLS")
        return ", ".join(notes)

    def function(self):
        address = number(self.d["fn"])
        if self.d["is_main"]:
            return "main"
        if address == 0:
            return ""
        block = gdb.block_for_pc(address)
        while block is not None and block.function is None:
            block = block.superblock
        return plain(block.function.name) if block is not None else "0x%x" % address

    def has_flag(self, flag):
        return number(self.d["task"]["flags"]["v_"]) & flag != 0

    def started(self):
        return not self.has_flag(NOT_STARTED)

    def tid(self):
        return number(self.runtime.vp(self.vp)["tid"]["v_"])

    def title(self):
        name = self.name()
        return "Thread #%d%s, %s" % (self.index, ' "%s"' % name if name else "", self.where())


class Parked(gdb.unwinder.Unwinder):
    """While it is armed, the frame that gdb stands in seems to have been called by the parked context."""

    def __init__(self):
        super().__init__("kochab parked thread")
        self.context = None
        self.here = None

    def arm(self, context):
        self.context = context
        self.here = None
        gdb.invalidate_cached_frames()

    def disarm(self):
        self.context = None
        gdb.invalidate_cached_frames()

    def __call__(self, pending):
        if self.context is None:
            return None
        layout = FRAMES.get(pending.architecture().name())
        if layout is None:
            return None
        here = number(pending.read_register(layout["sp"]))
        if self.here is None:
            self.here = here  # the innermost frame is asked for first
        if here != self.here:
            return None
        return self.pretend(pending, layout)

    def pretend(self, pending, layout):
        low = self.context
        saved = [(name, at) for name, at in layout.items() if name not in ("size", "sp") and isinstance(at, int)]

        class Id:
            # inner to all of the parked frames, or gdb takes the stack for corrupt
            sp = gdb.Value(low - 64)
            pc = gdb.Value(number(pending.read_register("pc")))

        info = pending.create_unwind_info(Id())
        for register, offset in saved:
            self.save(pending, info, register, word(low + offset))
        self.save(pending, info, layout["sp"], low + layout["size"])
        return info

    @staticmethod
    def save(pending, info, register, value):
        kind = pending.read_register(register).type
        info.add_saved_register(register, gdb.Value(value).cast(kind))


parked = Parked()
gdb.unwinder.register_unwinder(None, parked, replace=True)


def print_parked(thread, args):
    """bt without its first frame, which is not the thread's; the others are numbered from 0."""
    width = gdb.parameter("width")
    context = number(thread.d["task"]["ctx"]["sp"])
    if not 4096 <= context < 1 << 63 or context % 8:
        print("(its stack pointer is 0x%x)" % context)
        return
    gdb.selected_inferior().read_memory(context, max(layout["size"] for layout in FRAMES.values()))
    gdb.execute("set width 0", to_string=True)
    parked.arm(context)
    try:
        text = gdb.execute("bt %s" % args, to_string=True)
    finally:
        parked.disarm()
        gdb.execute("set width %s" % (width if width is not None else "unlimited"), to_string=True)
    skip = False
    for line in text.splitlines():
        frame = re.match(r"#(\d+)\s+(.*)", line)
        if frame:
            skip = frame[1] == "0"
            if not skip:
                line = "#%-3d%s" % (int(frame[1]) - 1, frame[2])
        if not skip:
            print(line)


def print_running(thread, args):
    """Its kernel thread's own backtrace."""
    before = gdb.selected_thread()
    frame = gdb.selected_frame() if before is not None else None
    for candidate in gdb.selected_inferior().threads():
        if candidate.ptid[1] != thread.tid():
            continue
        candidate.switch()
        try:
            gdb.execute("bt %s" % args)
        finally:
            before.switch()
            frame.select()
        return
    print("(its kernel thread %d is not known to gdb)" % thread.tid())


def backtrace(thread, args=""):
    try:
        print(thread.title())
        print_frames(thread, args)
    except UNREADABLE as error:
        print(why(error))


def print_frames(thread, args):
    if thread.is_damaged():
        pass
    elif thread.kind == FOREIGN:
        print("(a kernel thread of its own: see 'thread apply all bt')")
    elif thread.kind == DONE:
        print("(has ended and waits to be joined)")
    elif not thread.started():
        print("(has not run yet; it will begin in %s)" % thread.function())
    elif thread.kind == RUNNING:
        print_running(thread, args)
    else:
        print_parked(thread, args)


class Kochab(gdb.Command):
    """Lightweight threads of Kochab."""

    def __init__(self):
        super().__init__("kochab", gdb.COMMAND_STACK, prefix=True)


class Vps(gdb.Command):
    """kochab vps: virtual processors, their kernel threads and the threads they run."""

    def __init__(self):
        super().__init__("kochab vps", gdb.COMMAND_STACK)

    @tells
    def invoke(self, args, from_tty):
        runtime = Runtime()
        for i in range(runtime.n_vps):
            try:
                print("VP %d  %s" % (i, self.about(runtime.vp(i))))
            except UNREADABLE as error:
                print("VP %d  %s" % (i, why(error)))

    @staticmethod
    def about(vp):
        idle, current = number(vp["s"]["idle"]["v_"]), vp["cur"]
        what = IDLE[idle] if idle < len(IDLE) else "in state %d" % idle
        if number(current):
            what += ", runs thread #%d" % number(current["task"]["index"])
        return "LWP %d  %s" % (number(vp["tid"]["v_"]), what)


class Threads(gdb.Command):
    """kochab threads [STATE]: all threads, or those whose state begins so."""

    def __init__(self):
        super().__init__("kochab threads", gdb.COMMAND_STACK)

    @tells
    def invoke(self, args, from_tty):
        wanted = args.strip()
        n = 0
        print("%6s  %-28s %-16s %-24s %s" % ("Index", "State", "Name", "Function", ""))
        runtime = Runtime()
        for index in runtime.indices():
            try:
                thread = runtime.thread(index)
                if not thread.where().startswith(wanted):
                    continue
                row = (thread.where(), thread.name(), thread.function(), thread.notes())
            except UNREADABLE as error:
                row = (why(error), "", "", "")
            n += 1
            print("%6d  %-28s %-16s %-24s %s" % ((index,) + row))
        print("%d threads" % n)


class Bt(gdb.Command):
    """kochab bt INDEX [ARGS]: the backtrace of a thread; ARGS as for bt."""

    def __init__(self):
        super().__init__("kochab bt", gdb.COMMAND_STACK)

    @tells
    def invoke(self, args, from_tty):
        words = args.split(None, 1)
        if not words or not words[0].lstrip("#").isdigit():
            raise gdb.GdbError("kochab bt INDEX [ARGS]; 'kochab threads' lists the indices.")
        thread = Runtime().thread(int(words[0].lstrip("#")))
        if thread.kind == FREE:
            raise gdb.GdbError("No thread #%d." % thread.index)
        backtrace(thread, words[1] if len(words) > 1 else "")


class Apply(gdb.Command):
    """kochab apply all bt [ARGS]: the backtraces of all threads."""

    def __init__(self):
        super().__init__("kochab apply", gdb.COMMAND_STACK)

    @tells
    def invoke(self, args, from_tty):
        words = args.split(None, 2)
        if words[:2] != ["all", "bt"]:
            raise gdb.GdbError("kochab apply all bt [ARGS]")
        runtime = Runtime()
        for index in runtime.indices():
            print()
            backtrace(runtime.thread(index), words[2] if len(words) > 2 else "")


Kochab()
Vps()
Threads()
Bt()
Apply()
