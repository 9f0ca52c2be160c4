/* space/layout.h - the contents of the file of a named space, and a process's
 * private record beside it.
 *
 * The file: a head with a table of processes, then all allocations in order, never freed: objects
 * (struct kbi_space_thing, chained), records of waiters, buffers. Positions are offsets from the
 * head. A process's own record (struct kb_space) lies in private memory GAP bytes below the head; a
 * handle of the interface is private, too (struct kbi_space_hold). Positions and numbers from the
 * file are checked where they are read: file.h.
 *
 * Where a process may die. Structure (allocation, the table of processes, the chain) changes under
 * the file's lock, which is taken from a dead holder, and by single stores that complete a change.
 * Queues of waiters change under the object's lock, which names its holder's process: the process
 * that cleans up after a dead process (space/recover) takes over its locks, drops the queues there,
 * and wakes all waiters. So a wake-up is never a verdict: a woken waiter looks again.
 * Callers: this room, the command. */
#ifndef KBI_SPACE_LAYOUT_H
#define KBI_SPACE_LAYOUT_H

#include "base/marks.h"

enum {
	/* version of the file's layout; a file with a different number is refused */
	KBI_SPACE_LAYOUT = 3,
	KBI_SPACE_PROCS = 64,    /* a process has one bit in 64 */
	KBI_SPACE_RECORDS = 64,  /* records of waiters in a chunk */
	KBI_SPACE_CHUNKS = 256,  /* chunks of a process */
	KBI_SPACE_NAME = 40,
	KBI_SPACE_SAID = 128,
	KBI_SPACE_VPS = 64,      /* VPs with higher numbers share a flag and have no board */
	KBI_SPACE_GAP = 65536,
	KBI_SPACE_MOST_CASES = 64,
	KBI_SPACE_BUCKETS = 256, /* of the hash of objects that this process has opened */
};

/* How long a thread waits for an object's lock or the file's, ns: while the holder seems to be
 * alive, and while it cannot be alive. A holder keeps the lock for some instructions, or for a
 * system call. (dev/fuzz has less time.) */
#ifndef KBI_SPACE_PATIENT
#define KBI_SPACE_PATIENT UINT64_C(5000000000)
#define KBI_SPACE_DOUBTFUL UINT64_C(1000000000)
#endif

#define KBI_SPACE_MAGIC "kochabSp"

/* Who waits for a word, and how: what a waker must do once it has changed the word. The value is
 * kind << 28 | process << 20 | number. BOARDED: number is VP << 14 | place on the VP's board. */
enum kbi_space_how {
	KBI_SPACE_NOBODY,  /* no waiter; the owner looks at the word by itself when it comes */
	KBI_SPACE_WATCHED, /* VP `number` of that process polls the word: wake that VP if it sleeps */
	KBI_SPACE_SELF,    /* a kernel thread polls the word */
	KBI_SPACE_ASLEEP,  /* a kernel thread sleeps in the futex on `how` */
	KBI_SPACE_CHAINED, /* record `number` of that process is to be told */
	KBI_SPACE_BOARDED, /* the waiter is to be marked on that VP's board; then as WATCHED */
};

/* The record of a waiter. Type-stable for ever: a late wake-up finds a record and is spurious. */
struct kbi_space_record {
	a64 word; /* low half: number of wake-ups. On the waker's cache line */
	a32 how KBI_ALIGNED(KBI_CACHE_LINE); /* on the waiter's cache line */
	uint32_t self;             /* reference to this record, for a debugger */
	/* References, under the object's lock or in the process's free list. The record's process moves
	 * it from object to object: the order between a neighbour's store at the first object and its
	 * load at the second goes by way of that process, which ThreadSanitizer does not see. So these
	 * fields are atomic. */
	a32 next, prev;
	/* reference of the record to be told instead, 0: this record. A late waker reads it, too */
	a32 chain;
	uint32_t queue;            /* number of the object's queue */
	a32 linked;                /* the record is in a queue; under the object's lock */
	a64 object;                /* offset of the object, of a linked record */
};

enum kbi_space_state {
	KBI_SPACE_FREE,
	KBI_SPACE_ALIVE, /* the process lives, or it died and no process has cleaned up yet */
};

struct kbi_space_proc {
	/* under the file's lock; state is read without it, too */
	a32 state;
	a32 pid;
	/* start time of the process, in ticks since boot: the pid alone may
	 * belong to a later process */
	a64 start;
	char name[16];
	a32 n_chunks;
	/* written by any process: rings the bell of this process */
	a32 ring KBI_ALIGNED(KBI_CACHE_LINE);
	/* by VP, 1: the VP sleeps and watches words. Set by that VP, cleared by the waker that rings */
	a32 asleep[KBI_SPACE_VPS] KBI_ALIGNED(KBI_CACHE_LINE);
	/* offsets: of the process's records; by VP, of the board (struct kbi_marks), 0: none yet. Both
	 * stay for the next process that gets the entry */
	a64 chunk[KBI_SPACE_CHUNKS];
	a64 board[KBI_SPACE_VPS];
} KBI_ALIGNED(KBI_CACHE_LINE);

enum kbi_space_type {
	KBI_SPACE_MEMORY = 1,
	KBI_SPACE_EVENT,
	KBI_SPACE_CHAN,
	KBI_SPACE_SEM,
	KBI_SPACE_MUTEX,
	KBI_SPACE_COND,
	KBI_SPACE_RWLOCK,
	KBI_SPACE_BARRIER,
};

/* Flags of an object, under its lock or the file's. HAD, DIED: of end 0 and 1 (shifted). */
enum {
	KBI_SPACE_HAD = 1,       /* a process has opened this end */
	KBI_SPACE_DIED = 4,      /* the last process that had this end died */
	KBI_SPACE_BROKEN = 16,   /* mutex, rwlock, barrier: an owner died */
	KBI_SPACE_LOST = 32,     /* mutex: not recoverable */
};

struct kbi_space_queue {
	a32 head; /* reference; also read without the lock */
	uint32_t tail;
};

struct kbi_space_thing {
	/* constant, except next, which is set before the object is in the chain */
	uint64_t at;
	uint32_t type, flags_unused;
	a64 next;
	char name[KBI_SPACE_NAME];
	/* changes with each use */
	a32 lock KBI_ALIGNED(KBI_CACHE_LINE); /* slot + 1 of the holder's process */
	a32 flags;
	struct kbi_space_queue queue[2]; /* under lock */
	union {
		struct { a64 word, value; } event;            /* words of the notifiers */
		struct { uint64_t head, tail; } chan; /* under lock: numbers of elements taken, put */
		struct { a32 value; } sem;
		struct { a32 owner; } mutex;                  /* slot + 1 of the owner's process */
		struct { a32 readers, writer; } rwlock;       /* under lock; writer: slot + 1 */
		struct { uint32_t left; a32 round; } barrier; /* under lock */
	};
	/* changes seldom */
	/* processes that have end 0 (receivers), 1 (senders); users: 0 */
	a64 ends[2] KBI_ALIGNED(KBI_CACHE_LINE);
	a32 how;                                 /* event: who waits, enum kbi_space_how */
	uint32_t size; /* chan: size of an element; barrier: number of threads needed */
	uint64_t capacity;                       /* chan: elements; memory: bytes */
	uint64_t buffer;                         /* chan, memory: offset */
	union {
		uint32_t taken;                      /* event: notifications taken; written by the waiter */
		a16 held[KBI_SPACE_PROCS];           /* rwlock: read locks of each process; under lock */
	} KBI_ALIGNED(KBI_CACHE_LINE);
} KBI_ALIGNED(KBI_CACHE_LINE);

struct kbi_space_head {
	/* constant */
	char magic[8];
	uint32_t layout, abi;
	char build[32];
	uint64_t limit, address, pid_namespace;
	uint32_t fixed;
	/* under the file's lock; also read without it */
	a64 size, used; /* bytes reserved, bytes allocated */
	a64 things;     /* offset of the newest object */
	a32 n_things;
	a32 generation; /* changes with the table of processes */
	a32 crashes;
	a64 lock; /* the file's lock: 0, or the identity (space/life) of its holder's process */
};

enum { KBI_SPACE_TABLE = 4096,
	KBI_SPACE_FIRST = KBI_SPACE_TABLE + KBI_SPACE_PROCS * sizeof(struct kbi_space_proc) };

_Static_assert(sizeof(struct kbi_space_head) <= KBI_SPACE_TABLE,
	"the table of processes lies behind it");

_Static_assert(sizeof(struct kbi_space_record) == 2 * KBI_CACHE_LINE,
	"a waker's line and a waiter's");

/* Reads a plain word of the file once, so that the checked value is the used value. */
#define KBI_SPACE_ONCE(x) (*(const volatile __typeof__(x) *)&(x))

/* An object that this process has opened, as this process knows it. Handles of the interface
 * point here: whatever is written to the file afterwards, no access leaves the object's
 * memory. Constant, except next. */
struct kbi_space_hold {
	struct kb_space *s;
	struct kbi_space_thing *t;
	char *buffer;                /* chan, memory */
	uint64_t at, capacity;
	uint32_t type, size;
	struct kbi_space_hold *next; /* the next in the bucket, or in the free list */
};

/* A process's own record. No value in it comes from the file unchecked. */
struct kb_space {
	/* constant while attached */
	struct kbi_space_head *head;
	uint32_t slot;
	uint32_t pid;
	uint32_t number; /* among the spaces of this process */
	uint32_t generation; /* of the table of processes, when this process entered */
	uint64_t identity; /* of this process, for the file's lock */
	/* bytes that a child of fork finds mapped and unmaps; 0: the kernel
	 * does not copy the mapping */
	uint64_t inherited;
	int fd;
	int bell[2];         /* a pipe to the watchman (space/member), and its identity */
	uint64_t bell_inode;
	uint64_t bell_device;
	uint64_t device, inode;
	uint64_t limit;
	uint64_t intended; /* the address that the creator of the space had */
	uint32_t owner;    /* uid of the file's owner */
	char name[KBI_SPACE_SAID]; /* the name, cut off where there is no room; for messages */
	a64 least;  /* bytes that the file has had at least */
	uint64_t used_before; /* under the file's lock: allocated bytes never become less */
	/* under the file's lock */
	struct kbi_space_hold *hold[KBI_SPACE_BUCKETS], *free_holds;
	struct kbi_space_hold *holds; /* pages of holds, chained */
	a32 ending; /* 1: the kernel threads of the space must end */
	/* this process's records: the addresses of their chunks, and the free
	 * records, a stack of index + 1 */
	a32 lock;
	uint32_t free;
	a32 used; /* number of records that are not free */
	uint32_t n_chunks;
	aptr chunk[KBI_SPACE_CHUNKS];
	aptr board[KBI_SPACE_VPS];
	uint16_t behind[KBI_SPACE_CHUNKS * KBI_SPACE_RECORDS];
	/* pthread_t, 0: none. Where virtual processors are processes, these two are processes, too;
	 * helpers is then their number */
	uint64_t listener, watchman;
	a32 helpers;
	/* the peer processes, by slot; written by the watchman */
	struct kbi_space_peer {
		int pidfd; /* -1: none */
		uint32_t pid;
		uint64_t start;
	} peer[KBI_SPACE_PROCS];
};

_Static_assert(sizeof(struct kb_space) <= KBI_SPACE_GAP, "it lies in the gap");

static inline void *kbi_space_place(const struct kb_space *s, uint64_t at)
{
	return (char *)s->head + at;
}

static inline uint64_t kbi_space_offset(const struct kb_space *s, const void *p)
{
	return (uint64_t)((const char *)p - (const char *)s->head);
}

static inline struct kbi_space_proc *kbi_space_proc(const struct kb_space *s, uint32_t slot)
{
	return (struct kbi_space_proc *)((char *)s->head + KBI_SPACE_TABLE) + slot;
}

static inline struct kbi_space_proc *kbi_space_me(const struct kb_space *s)
{
	return kbi_space_proc(s, s->slot);
}

#endif
