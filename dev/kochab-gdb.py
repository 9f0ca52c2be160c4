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

import gdb
import gdb.unwinder

FREE, NEW, READY, WAIVED, RUNNING, WAITING, DONE, FOREIGN, BLOCKED = range(9)
NOT_STARTED, TIMED, BOUND, WATCHES = 2, 4, 16, 64  # KBI_TASK_ flags
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


def number(value):
    return int(value) & 0xFFFFFFFFFFFFFFFF


def word(address):
    data = gdb.selected_inferior().read_memory(address, 8).tobytes()
    return int.from_bytes(data, "little")


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
            self.n_vps = number(objfile.lookup_global_symbol("kbi_vp_n").value())
            return
        raise gdb.GdbError("Kochab does not run here, or its library has no debug information.")

    def vp(self, i):
        return self.vps[i].dereference()

    def thread(self, index):
        if index < 0 or index >= number(self.table["used"]["v_"]):
            raise gdb.GdbError("No thread #%d." % index)
        return Thread(self, index, self.table["at"][index])

    def threads(self):
        for index in range(number(self.table["used"]["v_"])):
            thread = self.thread(index)
            if thread.kind != FREE:
                yield thread


class Thread:
    def __init__(self, runtime, index, descriptor):
        state = number(descriptor["task"]["state"]["v_"])
        self.runtime = runtime
        self.index = index
        self.d = descriptor
        self.kind = state >> 32
        self.vp = state & 0xFFFFFFFF

    def name(self):
        return self.d["name"].string(errors="replace") if self.d["named"] or self.d["is_main"] else ""

    def where(self):
        state = STATES[self.kind] if self.kind < len(STATES) else "in state %d" % self.kind
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
        return block.function.name if block is not None else "0x%x" % address

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

        class Id:
            # inner to all of the parked frames, or gdb takes the stack for corrupt
            sp = gdb.Value(low - 64)
            pc = gdb.Value(number(pending.read_register("pc")))

        info = pending.create_unwind_info(Id())
        for register, offset in layout.items():
            if register in ("size", "sp") or not isinstance(offset, int):
                continue
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
    gdb.execute("set width 0", to_string=True)
    parked.arm(number(thread.d["task"]["ctx"]["sp"]))
    try:
        text = gdb.execute("bt %s" % args, to_string=True)
    finally:
        parked.disarm()
        gdb.execute("set width %s" % (width if width is not None else "unlimited"), to_string=True)
    skip = False
    for line in text.splitlines():
        if line.startswith("#"):
            label, rest = line[1:].split(None, 1)
            skip = label == "0"
            if not skip:
                line = "#%-3d%s" % (int(label) - 1, rest)
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
    print(thread.title())
    if thread.kind == FOREIGN:
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

    def invoke(self, args, from_tty):
        runtime = Runtime()
        idle = ("busy", "polling", "sleeping")
        for i in range(runtime.n_vps):
            vp = runtime.vp(i)
            what = idle[number(vp["s"]["idle"]["v_"])]
            current = vp["cur"]
            if number(current):
                what += ", runs thread #%d" % number(current["task"]["index"])
            print("VP %d  LWP %d  %s" % (i, number(vp["tid"]["v_"]), what))


class Threads(gdb.Command):
    """kochab threads [STATE]: all threads, or those whose state begins so."""

    def __init__(self):
        super().__init__("kochab threads", gdb.COMMAND_STACK)

    def invoke(self, args, from_tty):
        wanted = args.strip()
        n = 0
        print("%6s  %-28s %-16s %-24s %s" % ("Index", "State", "Name", "Function", ""))
        for thread in Runtime().threads():
            if not thread.where().startswith(wanted):
                continue
            n += 1
            print(
                "%6d  %-28s %-16s %-24s %s"
                % (thread.index, thread.where(), thread.name(), thread.function(), thread.notes())
            )
        print("%d threads" % n)


class Bt(gdb.Command):
    """kochab bt INDEX [ARGS]: the backtrace of a thread; ARGS as for bt."""

    def __init__(self):
        super().__init__("kochab bt", gdb.COMMAND_STACK)

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

    def invoke(self, args, from_tty):
        words = args.split(None, 2)
        if words[:2] != ["all", "bt"]:
            raise gdb.GdbError("kochab apply all bt [ARGS]")
        for thread in Runtime().threads():
            print()
            backtrace(thread, words[2] if len(words) > 2 else "")


Kochab()
Vps()
Threads()
Bt()
Apply()
