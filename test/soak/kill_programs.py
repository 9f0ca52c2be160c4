#!/usr/bin/env python3
"""kill_programs.py [KILLS] - programs that nobody here wrote run with processes as virtual processors (`kochab run --body
process`), and one of their processes is killed at a random moment: any virtual processor's, the first of them, where main
begins, or the supervisor. So without the option `contain`, with it, and with `on_kill=spare`, too. Each program must
then end with status 0 and what it says without us, byte for byte; or with another status and, unless the supervisor was
killed, a line of Kochab's on standard error that says what was lost. With on_kill=spare only the first will do. One that
has lost a thread, has said so and goes on waiting for it, looking again from time to time, is counted apart. None must
hang, and nothing may be left: no process, no file in $TMPDIR or /dev/shm.
Environment: BUILD (build), SEED, ONLY="pigz xz ..." (programs), VICTIM="any first supervisor", MODE="plain contain spare",
VPS (2), SCHED (rotator), KEEP (what was found wrong stays in /tmp).
Last line: kills K right R ended E waits A wrong W silent S hang H left L; W to L must be 0."""
import collections
import ctypes
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
KOCHAB = os.path.join(os.path.join(TOP, os.environ.get("BUILD", "build")), "kochab")
OWN = os.path.join(TOP, "test/programs/own")
HANGS, WAITS, LEAVES = 60, 20, 20  # seconds
SUPERVISOR, FIRST, ANY = "supervisor", "first", "any"
MODES = {"plain": [], "contain": ["--contain"], "spare": ["--contain", "--on-kill", "spare"]}

PYTHON = """
import hashlib, queue, threading
todo, done = queue.Queue(16), []
lock = threading.Lock()
def work():
    for n in iter(todo.get, None):
        sum = hashlib.sha256(b"%d" % n * 2000).hexdigest()
        with lock:
            done.append(sum)
crowd = [threading.Thread(target=work) for _ in range(8)]
for t in crowd: t.start()
for n in range(3000): todo.put(n)
for t in crowd: todo.put(None)
for t in crowd: t.join()
print(len(done), hashlib.sha256("".join(sorted(done)).encode()).hexdigest())
"""


def programs(place):
    text, script = os.path.join(place, "text"), os.path.join(place, "threads.py")
    rand = random.Random(1)
    with open(text, "w") as f:
        for _ in range(200000):
            f.write("%d words of %x\n" % (rand.randrange(1000), rand.getrandbits(200)))
    with open(script, "w") as f:
        f.write(PYTHON)
    std, sqlite = os.path.join(place, "std"), os.path.join(place, "sqlite")
    build(["c++", "-std=c++20", "-O1", os.path.join(OWN, "std.cc"), "-o", std, "-pthread"])
    build(["cc", "-O1", os.path.join(OWN, "sqlite.c"), "-o", sqlite, "-lsqlite3", "-pthread"])
    every = {
        "pigz": ["pigz", "-p", "8", "-c", text],
        "xz": ["xz", "-T8", "--block-size=262144", "-0", "-c", text],
        "zstd": ["zstd", "-T8", "-6", "-q", "-c", text],
        "python": ["/usr/bin/python3", script],
        "std": [std],
        "sqlite": [sqlite],
    }
    only = os.environ.get("ONLY", "").split()
    return {n: c for n, c in every.items() if (not only or n in only) and shutil.which(c[0])}


def build(command):
    subprocess.run(command, stderr=subprocess.DEVNULL, check=False)


def children(pid):
    try:
        with open("/proc/%d/task/%d/children" % (pid, pid)) as f:
            return [int(n) for n in f.read().split()]
    except OSError:
        return []


def of_session(session):
    """Processes that began in that session; those that have ended and wait for their parent do not count."""
    found = []
    for name in os.listdir("/proc"):
        try:
            if name.isdigit():
                with open("/proc/%s/stat" % name) as f:
                    field = f.read().rpartition(")")[2].split()
                if int(field[3]) == session and field[0] not in "ZX":
                    found.append(int(name))
        except OSError:
            pass
    return found


def has_shm_alone():
    """From here on /dev/shm is ours and empty; that takes rights."""
    libc = ctypes.CDLL(None)
    newns, rec_private = 0x20000, 0x44000
    return not (libc.unshare(newns) or libc.mount(b"none", b"/", None, rec_private, None) or
                libc.mount(b"none", b"/dev/shm", b"tmpfs", 0, None))


def send(pid, sig):
    try:
        os.kill(pid, sig)
        return True
    except OSError:
        return False


class Case:
    def __init__(self, place, name, command, mode, victim):
        self.name, self.mode, self.victim = name, mode, victim
        self.place = tempfile.mkdtemp(dir=place)
        self.out, self.err = os.path.join(self.place, "out"), os.path.join(self.place, "err")
        self.killed = 0
        self.command = [KOCHAB, "run", "--body", "process", "--vps", os.environ.get("VPS", "2")]
        self.command += ["--sched", os.environ.get("SCHED", "rotator")]
        self.command += MODES[mode] + ["--"] + command

    def start(self):
        with open(self.out, "wb") as out, open(self.err, "wb") as err:
            self.program = subprocess.Popen(self.command, stdin=subprocess.DEVNULL, stdout=out, stderr=err, cwd=self.place,
                                            start_new_session=True)
        self.began = time.monotonic()

    def kill(self, after):
        """Whoever is there then; before the virtual processors are there, the first moment that they are."""
        time.sleep(after)
        while self.program.poll() is None:
            there = children(self.program.pid)
            if there:
                pid = {SUPERVISOR: self.program.pid, FIRST: there[0], ANY: random.choice(there)}[self.victim]
                if send(pid, signal.SIGKILL):
                    self.killed = pid
                    return
            time.sleep(0.0002)

    def wait(self, seconds):
        try:
            return self.program.wait(seconds)
        except subprocess.TimeoutExpired:
            return None

    def said(self):
        with open(self.err, "rb") as f:
            return f.read()

    def verdict(self, expected):
        status = self.wait(WAITS)
        if status is None and self.mode == "contain" and b" is lost: " in self.said():
            return "waits"
        status = self.wait(HANGS - WAITS)
        self.took = time.monotonic() - self.began
        if status is None:
            self.program.send_signal(signal.SIGQUIT)  # it says what its threads wait for
            self.wait(5)
            return "hang"
        if self.left():
            return "left"
        with open(self.out, "rb") as f:
            right = f.read() == expected
        if status == 0:
            return "right" if right else "wrong"
        if self.victim == SUPERVISOR and status == -signal.SIGKILL:
            return "ended"
        return "ended" if b"kochab: " in self.said() and self.mode != "spare" else "silent"

    def left(self):
        end = time.monotonic() + LEAVES
        while of_session(self.program.pid):
            if time.monotonic() > end:
                return True
            time.sleep(0.01)
        return False

    def finish(self):
        for pid in of_session(self.program.pid):
            send(pid, signal.SIGKILL)
        self.program.wait()

    def show(self, verdict):
        print("%s: %s, %s, %s (process %d) killed, status %s, %.1f s; it said:" %
              (verdict.upper(), self.name, self.mode, self.victim, self.killed, self.program.returncode, self.took))
        with open(self.err, errors="replace") as f:
            print("".join("     | " + line for line in f.readlines()[:40]))
        sys.stdout.flush()


def alone(command, place):
    return subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, cwd=place, check=True).stdout


def how_long(place, name, command):
    case = Case(place, name, command, "contain", None)
    case.start()
    case.program.wait()
    return time.monotonic() - case.began


def main():
    kills = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    if b"\n+ process bodies" not in subprocess.run([KOCHAB, "doctor"], stdout=subprocess.PIPE, check=False).stdout:
        print("skipped: no process bodies here")
        return 0
    seed = int(os.environ.get("SEED", random.randrange(1 << 30)))
    random.seed(seed)
    print("seed", seed, flush=True)
    place = tempfile.mkdtemp(prefix="kochab-kills")
    temporary = os.environ["TMPDIR"] = os.path.join(place, "tmp")
    os.mkdir(temporary)
    alone_there = has_shm_alone()
    every = programs(place)
    modes = os.environ.get("MODE", " ".join(MODES)).split()
    victims = os.environ.get("VICTIM", " ".join((ANY, FIRST, SUPERVISOR))).split()
    expected = {n: alone(c, place) for n, c in every.items()}
    length = {n: how_long(place, n, c) for n, c in every.items()}
    count, sums = collections.Counter(), collections.defaultdict(collections.Counter)
    while count["kills"] < kills:
        name, mode, victim = random.choice(list(every)), random.choice(modes), random.choice(victims)
        case = Case(place, name, every[name], mode, victim)
        case.start()
        case.kill(random.random() * length[name])
        verdict = case.verdict(expected[name])
        if not case.killed and verdict == "right":  # it was over before
            shutil.rmtree(case.place)
            continue
        count["kills"] += 1
        count[verdict] += 1
        sums[name, mode, victim][verdict] += 1
        if verdict in ("wrong", "silent", "hang", "left"):
            case.show(verdict)
        case.finish()
        if verdict in ("right", "ended", "waits") or "KEEP" not in os.environ:
            shutil.rmtree(case.place)
    files = os.listdir(temporary) + (os.listdir("/dev/shm") if alone_there else [])
    count["left"] += len(files)
    for key in sorted(sums):
        print("%-8s %-8s %-10s" % key, dict(sums[key]))
    print(*files)
    if "KEEP" not in os.environ:
        shutil.rmtree(place)
    words = ["kills", "right", "ended", "waits", "wrong", "silent", "hang", "left"]
    print(*("%s %d" % (w, count[w]) for w in words))
    return any(count[w] for w in words[4:])


sys.exit(main())
