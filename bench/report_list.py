"""bench/report_list.py - the experiments of bench/report: what is asked, how, and what the papers said.
full, quick: options of `kochab bench`, one measurement of each a round; an empty quick: not asked then.
chart: (metric, rows to draw as a function of a row, label of it)."""

FUJITSU = "“Fast rendezvous by polling and lightweight threads”"
LESSER_BEAR = "“A scheduling mechanism for a lightweight process library” (Lesser Bear)"

WAYS = "rtsig,agent-rtsig,condvar,sem,futex,pipe,poll,kochab,kochab-own,kochab-1,kochab-posix"

EXPERIMENTS = [
    {
        "name": "rendezvous", "title": "How long does a message take to a thread that waits?",
        "question": "one-way latency of a message to a waiting thread",
        "method": "A ring of threads passes 8 bytes on; the time of a round divided by the threads. Each way of waiting runs the "
                  "same loop; kernel threads may use as many processors as Kochab has virtual ones.",
        "full": [f"rendezvous --threads cores,cores+1,10,100,1000 --vps cores --methods {WAYS}",
                 "rendezvous --threads 10000,100000 --vps cores --methods kochab --seconds 0.3"],
        "quick": [f"rendezvous --threads cores+1,100,1000 --vps cores --methods {WAYS}"],
        "chart": "one-way", "log": True,
        "paper": [(FUJITSU + ", figure 11: agent that switches to the waiter against agent and signal, cores + 1 threads",
                   5.95, "agent-rtsig", "kochab-1", "cores+1"),
                  ("figure 11: the same against the signal alone", 5.21, "rtsig", "kochab-1", "cores+1"),
                  ("figure 12: with 1,000 threads", 5.24, "rtsig", "kochab-1", 1000)],
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
        "name": "yield", "title": "What does a turn cost?", "question": "threads that only yield: time of a turn",
        "method": "2 and 1,000 threads yield to each other.",
        "full": ["yield"], "quick": ["yield --vps cores"], "chart": "yield", "log": True, "paper": [],
    },
    {
        "name": "spawn", "title": "What does a short thread cost?", "question": "create 10,000 threads that return, join all",
        "method": "The creator is a thread of the same kind; time divided by the threads.",
        "full": ["spawn"], "quick": ["spawn --vps cores"], "chart": "create+join", "log": True, "paper": [],
    },
    {
        "name": "forkjoin", "title": "And a tree of them?", "question": "Fibonacci with a thread for each call: time of a thread",
        "method": "Each call creates a thread for one half and joins it.",
        "full": ["forkjoin"], "quick": ["forkjoin --vps cores"], "chart": "thread", "log": True, "paper": [],
    },
    {
        "name": "mutex", "title": "A lock, alone and with sixteen who want it", "question": "lock and unlock",
        "method": "1 and 16 threads take and release one mutex.",
        "full": ["mutex"], "quick": ["mutex --vps cores"], "chart": "lock+unlock", "log": True, "paper": [],
    },
    {
        "name": "distribute", "title": "From one processor with all threads to every one with its share",
        "question": "Lesser Bear's table 2: the time from serial to parallel",
        "method": "10,000 threads that stay ready are created on one virtual processor; the time until each of 8 holds nine tenths "
                  "of its share. With fewer processors than that each gives way to the others after 32 turns.",
        "full": ["distribute"], "quick": ["distribute --methods rotator,lb2-semop"], "chart": "share", "log": False,
        "paper": [(LESSER_BEAR + ", table 2: LB3 30.8 ms, LB2 131.6 ms on 8 processors", 4.27, "lb2-semop", "rotator", 10000)],
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
        "name": "files", "title": "Reading a file", "question": "pread of pages in the cache", "method": "16 threads read.",
        "full": ["files"], "quick": [], "chart": "pread", "log": True, "paper": [],
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
]
