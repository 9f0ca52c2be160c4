"""bench/report_list.py - the experiments of bench/report: what is asked, how, and what the papers said.
full, quick: options of `kochab bench`, one measurement of each a round; an empty quick: not asked then.
chart: the metric that is drawn, one chart for each number of threads; charts: more of them. over "size": lines over the
question's sizes, of the methods `show`, and those of `against` divided by the method `base`. versus: one chart of how many times as
fast the second method is as the first, and a table with the percentiles. as: what the rows are called of a question that is asked
twice; {kochab} is the command's path."""

FUJITSU = "“Fast rendezvous by polling and lightweight threads” (Fujitsu Laboratories)"
LESSER_BEAR = "“A scheduling mechanism for a lightweight process library” (Lesser Bear)"


def said(text, theirs, slow, fast, threads, vps=None, size=None, must=False):
    """A paper: fast was `theirs` times as fast as slow. must: it is one of our goals, not only to be compared."""
    return {"text": text, "theirs": theirs, "slow": slow, "fast": fast, "threads": threads, "vps": vps, "size": size, "must": must}


def goal(*args, **kw):
    return said(*args, must=True, **kw)


EXPERIMENTS = [
    {
        "name": "rendezvous", "title": "How long does a message take to a thread that waits?",
        "question": "one-way latency of a message to a waiting thread",
        "method": "A ring of threads passes 8 bytes on; the time of a round divided by the threads. Each way of waiting runs the "
                  "same loop; kernel threads may use as many processors as Kochab has virtual ones.",
        "full": ["rendezvous --threads cores,cores+1,10,100,1000 --vps cores --peers",
                 "rendezvous --threads 10,100,1000 --vps 1 --peers",
                 "rendezvous --threads 10000,100000 --vps 1,cores --methods kochab"],
        "quick": ["rendezvous --threads cores,cores+1,1000 --vps cores --methods "
                  "rtsig,agent-rtsig,condvar,futex,poll,kochab,kochab-1,kochab-posix"],
        "chart": "one-way", "log": True,
        "paper": [
            said(FUJITSU + ", figure 3: as many threads as processors, polling threads against signals", 19, "rtsig", "poll", "cores"),
            said("figure 4: one thread more, signals against polling threads, which wait for each other's time slices", 2557, "poll",
                 "rtsig", "cores+1"),
            said("figure 6: there, signals against an agent that polls and sends signals: no faster", 1, "agent-rtsig", "rtsig",
                 "cores+1"),
            goal("figure 11: there, an agent that switches to the waiter against agent and signal", 5.95, "agent-rtsig", "kochab-1",
                 "cores+1"),
            goal("figure 11: the same against the signal alone", 5.21, "rtsig", "kochab-1", "cores+1"),
            goal("figure 12: with 10 threads", 5.2, "rtsig", "kochab-1", 10),
            goal("figure 12: with 100 threads", 5.2, "rtsig", "kochab-1", 100),
            goal("figure 12: with 1,000 threads", 5.24, "rtsig", "kochab-1", 1000)],
    },
    {
        "name": "apart", "title": "And when its neighbours are on other processors?",
        "question": "the same ring with neighbours bound to different processors",
        "method": "As before, but each hop crosses from one processor to the other. `poll` is kernel threads that do nothing but "
                  "look at a word: what the hardware can do.",
        "full": ["rendezvous --threads cores,10,100,1000 --vps cores --placement spread --methods futex,sem,poll,kochab"],
        "quick": ["rendezvous --threads cores,100 --vps cores --placement spread --methods futex,poll,kochab"],
        "chart": "one-way", "log": True, "paper": [],
    },
    {
        "name": "pollers", "title": "How many should poll?", "question": "latency, processor time and energy of a message over the option "
        "pollers",
        "method": "Neighbours on different virtual processors, so that all of them wait most of the time. 1 is the paper's exclusive "
                  "agent. The processor time of all of them is divided by the messages; energy is read where the machine tells it. "
                  "Section 3.2 of the Fujitsu paper leaves the number open.",
        "full": ["pollers --vps cores,4"], "quick": ["pollers --threads 100"], "chart": "one-way", "charts": ["cpu", "energy"], "log": True,
        "paper": [],
    },
    {
        "name": "ipc", "title": "And to another process?", "question": "one-way latency between threads of two programs",
        "method": "A named space that two processes attach to, against what the kernel has for it.",
        "full": ["rendezvous_ipc"], "quick": [], "chart": "one-way", "log": True, "paper": [],
    },
    {
        "name": "yield", "title": "What does a turn cost?", "question": "threads that only yield: time of a turn",
        "method": "2 and 1,000 threads yield to each other.",
        "full": ["yield --peers"], "quick": ["yield --vps cores"], "chart": "yield", "log": True, "paper": [],
    },
    {
        "name": "spawn", "title": "What does a short thread cost?", "question": "create 10,000 threads that return, join all",
        "method": "The creator is a thread of the same kind; time divided by the threads.",
        "full": ["spawn --peers"], "quick": ["spawn --vps cores"], "chart": "create+join", "log": True, "paper": [],
    },
    {
        "name": "forkjoin", "title": "And a tree of them?", "question": "Fibonacci with a thread for each call: time of a thread",
        "method": "Each call creates a thread for one half and joins it.",
        "full": ["forkjoin --peers"], "quick": ["forkjoin --vps cores"], "chart": "thread", "log": True, "paper": [],
    },
    {
        "name": "distribute", "title": "From one processor with all threads to every one with its share",
        "question": "Lesser Bear's table 2: the time from serial to parallel",
        "method": "One virtual processor holds 10,000 ready threads, the others nothing; the time until each has seen that it "
                  "holds nine tenths of its share. `ran`: until so many have run there. `create+...`: from before the first "
                  "create. With fewer processors than virtual ones each gives way to the others after 32 turns. "
                  "`.../process`: virtual processors are processes.",
        "full": ["distribute --vps cores,8"], "quick": ["distribute --methods rotator,lb2-semop --body thread"], "chart": "share", "log": False,
        "paper": [goal(LESSER_BEAR + ", table 2: LB3 30.8 ms, LB2 131.6 ms on 8 processors", 4.27, "lb2-semop", "rotator", 10000, vps=8)],
    },
    {
        "name": "radix", "title": "Lesser Bear's radix sort", "question": "a sort of 4,194,304 keys whose 64 threads end and are created "
        "for each phase",
        "method": "For each digit the keys are counted in parallel, one thread adds up, and they are moved in parallel; threads wait for each "
                  "other by ending. At radix 2^1 that happens 64 times. `spin` does the same work with one kernel thread bound to each "
                  "processor and barriers that spin: what is more than that is thread management. Idle: how long each virtual "
                  "processor had nothing to run during a sort (table 3; there it includes the creation of the keys). Every result "
                  "is verified.",
        "full": ["radix --sizes 1,2,3,4,6,8,10,12,14,16 --body thread",
                 "radix --sizes 1,4,8,16 --body process --methods rotator,rotator-paper,lb2-semop,lb2-futex,lb2-spin,steal"],
        "quick": ["radix --sizes 1,8 --methods spin,nptl,rotator,lb2-semop,steal --body thread"],
        "chart": "turnaround", "over": "size", "log": True, "base": "lb2-semop",
        "show": ["spin", "nptl", "nptl-barrier", "nptl-cond", "rotator", "lb2-semop", "steal", "kochab-posix"],
        "against": ["rotator", "rotator-paper", "lb2-futex", "lb2-spin", "steal", "rotator/process", "lb2-semop/process"],
        "paper": [said(LESSER_BEAR + ", figure 8, radix 2^1: LB3 takes 14 % less than LB2", 1.16, "lb2-semop", "rotator-paper", 64, size=1),
                  said("the same, our default", 1.16, "lb2-semop", "rotator", 64, size=1),
                  said("against LB2 with another lock: futex", 1.16, "lb2-futex", "rotator", 64, size=1),
                  said("against LB2 with a lock that spins", 1.16, "lb2-spin", "rotator", 64, size=1),
                  said("figure 9: 23 % less than Solaris threads with barriers of a condition variable", 1.30, "nptl-cond", "rotator", 64,
                       size=1),
                  said("figure 10: 14 % less than LinuxThreads with the same", 1.16, "nptl-cond", "rotator", 64, size=1)],
    },
    {
        "name": "radix-file", "title": "The same with real input", "question": "a sort of the bytes of a file",
        "method": "The file is the command itself, four bytes a key; `kochab bench radix --file` takes any.",
        "full": ["radix --file {kochab} --sizes 1,8 --body thread"], "as": "radix-file",
        "quick": ["radix --file {kochab} --sizes 8 --methods spin,nptl,rotator,lb2-semop,steal --body thread"],
        "chart": "turnaround-file", "log": True, "paper": [],
    },
    {
        "name": "mutex", "title": "A lock, alone and with sixteen who want it", "question": "lock and unlock",
        "method": "1 and 16 threads take and release one mutex. attempt-1 and attempt-2 are the lecture's mutexes from a futex: the "
                  "first counts all who try, keeps them awake and calls the kernel at every unlock.",
        "full": ["mutex --peers", "mutex --threads 2 --vps cores --methods nptl,kochab,kochab-posix"], "quick": ["mutex --vps cores"], "chart": "lock+unlock", "log": True,
        "paper": [said("The lecture, attempt 2 against attempt 1; no figure given: more than", 1, "attempt-1", "attempt-2", 16)],
    },
    {
        "name": "sharing", "title": "Which runs faster?", "question": "the lecture's two threads that store to a variable of their own, side "
        "by side or with padding between them",
        "method": "Each thread on a processor of its own. Side by side the variables share a cache line, which goes to and fro.",
        "full": ["sharing"], "quick": ["sharing"], "chart": "store", "log": True,
        "paper": [said("The lecture gives no figure: padded is faster, more than", 1, "nptl-adjacent", "nptl-padded", "cores")],
    },
    {
        "name": "stdio", "title": "A character to a stream", "question": "putc, putc_unlocked, and many of those in one flockfile",
        "method": "To /dev/null; 16 threads share one stream. kochab-...: the same code in the drop-in.",
        "full": ["stdio"], "quick": ["stdio --threads 1"], "chart": "putc", "log": True,
        "paper": [said("The lecture gives no figure: one flockfile is faster, more than", 1, "putc", "flockfile", 1)],
    },
    {
        "name": "tls", "title": "What is a thread's own", "question": "an access to errno, and to a key's value",
        "method": "By a thread that is not main; the address of errno is asked for anew each time.",
        "full": ["tls"], "quick": ["tls --vps cores"], "chart": "errno", "charts": ["getspecific", "setspecific"], "log": False, "paper": [],
    },
    {
        "name": "shared", "title": "Between programs, by POSIX", "question": "one of two threads in two processes wakes the other by a process-shared "
        "condition variable or semaphore; they meet at a barrier",
        "method": "The objects keep libc's layout, so that either process may be on plain glibc; both ends wait in the kernel.",
        "full": ["shared"], "quick": ["shared --vps cores"], "chart": "condition", "charts": ["semaphore", "barrier"], "log": False, "paper": [],
    },
    {
        "name": "mpi", "title": "Threads that wait for MPI", "question": "two ranks whose threads talk by MPI, on kernel threads, under "
        "`kochab run` without its layer over MPI, and with it",
        "method": "Each MPI by itself, a plain program, MPI_THREAD_MULTIPLE. round-trip: each thread sends its partner in the other rank a word "
                  "and gets one back, all threads at once, wall time divided by the threads. hop: one word goes through all threads of both "
                  "ranks, which wait in MPI_Recv meanwhile. compute-N: after each N µs of work a thread exchanges a word with its partner; wall "
                  "time divided by that of the work alone. collective: MPI_Allreduce on a communicator for each thread. halo: a sweep of a "
                  "stencil whose tiles have a thread each and exchange their edges by MPI; halo-omp: the same by OpenMP with barriers. message: "
                  "one way, 64 at a time, one thread. Metrics of one thread without -mt are with plain MPI_Init.",
        "full": ["mpi"], "quick": [], "chart": "round-trip", "charts": ["hop", "compute-200", "compute-20", "compute-2", "collective", "halo"],
        "log": True, "paper": [],
    },
    {
        "name": "memory", "title": "What does a parked thread weigh?", "question": "bytes resident for each thread that waits",
        "method": "100,000 threads wait (10,000 in the quick report); what the process has grown by, divided by them.",
        "full": ["memory --threads 100000 --vps cores"], "quick": ["memory --threads 10000 --vps cores"], "chart": "resident",
        "log": False, "paper": [],
    },
    {
        "name": "idle", "title": "What does waiting cost the machine?", "question": "processor time of 1,000 threads that wait",
        "method": "Two seconds in which nothing happens; processor time of the process, in per cent of one processor.",
        "full": ["idle"], "quick": [], "chart": "cpu", "log": False, "paper": [],
    },
    {
        "name": "socket", "title": "A byte through a socket", "question": "one-way latency over a pair of sockets",
        "method": "Pairs of threads send a byte there and back; `bare` is one thread that writes and reads.",
        "full": ["socket"], "quick": [], "chart": "one-way", "log": True, "paper": [],
    },
    {
        "name": "turns", "title": "Has each connection its fair turn?", "question": "latency of an answer when all of a server's threads are busy",
        "method": "A server with a thread for each connection reads a question, computes for 5 or 50 µs (the size) and answers; each "
                  "client asks again at once. The clients are kernel threads of another process. Both use one processor, share two, or have "
                  "one each (neighbours on different processors). request: wall time divided by the answers of all; behind and ahead: how "
                  "far the least and the most served connection are from the mean.",
        "full": ["turns"], "quick": ["turns --threads 16 --sizes 50"], "chart": "p99", "log": True, "paper": [],
    },
    {
        "name": "files", "title": "Reading a file", "question": "pread of pages in the cache", "method": "16 threads read.",
        "full": ["files"], "quick": [], "chart": "pread", "log": True, "paper": [],
    },
    {
        "name": "timers", "title": "A million deadlines", "question": "setting and cancelling a deadline while many are set",
        "method": "A thread sets one and takes it back while 1,000,000 others are set.",
        "full": ["timers"], "quick": [], "chart": "insert+cancel", "log": True, "paper": [],
    },
    {
        "name": "preempt", "title": "Threads that compute beside threads that wait", "question": "fair shares, late wake-ups",
        "method": "32 computing threads on 2 processors: how far the largest share is from the mean, and how late the 99th "
                  "of 100 sleepers wakes.",
        "full": ["preempt"], "quick": [], "chart": "wake-up", "log": False, "paper": [],
    },
    {
        "name": "blocked", "title": "Threads that are blocked in the kernel", "question": "what they take from one that computes",
        "method": "64 threads block in reads or file locks beside a thread that computes.",
        "full": ["blocked"], "quick": [], "chart": "read-lost", "log": False, "paper": [],
    },
    {
        "name": "alloc", "title": "Taking memory and giving it back", "question": "the lecture's two programs with each allocator in place of libc's",
        "method": "alloc1: each of 32 threads takes blocks of 8 to 512 bytes and gives each back at once. alloc2: in each of 16 pairs one thread "
                  "takes blocks of 4 to 256 bytes, 1,024 at a time, and the other gives them back. All threads are the kernel's; the time "
                  "from begin to end divided by the blocks of all threads (320,000,000 and 134,217,728; 20 times fewer in the quick report).",
        "full": ["alloc --only alloc1,alloc2 --full --rounds 1"], "quick": ["alloc --only alloc1,alloc2 --rounds 1"], "chart": "block", "log": True,
        "paper": [],
    },
    {
        "name": "programs", "title": "Programs as they are", "question": "servers, packers and parallel loops that nobody wrote for Kochab",
        "method": "Each on kernel threads and under `kochab run`, its answers checked; the time of a request, transaction, MB or "
                  "sweep, and percentiles of the time until an answer. With one virtual processor a server has one processor and what puts load on it the other. MariaDB is asked "
                  "oltp_read_only by sysbench, a thread for each connection.",
        "full": ["programs kvstore,memcached,memcached-64,mariadb,pigz,sysbench-threads,openmp,tbb --seconds 2"],
        "quick": [], "chart": "piece", "versus": ("nptl", "kochab"), "log": False, "paper": [],
    },
]
