/* mpi/poll.c - the poller. Threads that wait for MPI sleep, except one, the leader, which asks MPI
 * for all of them. The leader takes the role with `leading`, tests requests together
 * (MPI_Testsome), wakes their threads, and lets other threads run after each test. When its own
 * request is complete it hands the role to a waiting thread. So a single thread at a time polls
 * MPI, in its own context: MPI's locks, its stack and errno belong to a thread that calls MPI.
 *
 * No wake-up is lost. A thread pushes its wait to `inbox`, executes a full fence, and tries to take
 * `leading`. A leader that has no wait left gives up `leading`, executes a full fence, and reads
 * `inbox` once more. At least one of the two sees the other's store.
 *
 * Callers: call.c, calls.c, native.c. Runs in the waiting threads; no locks; switches. The table
 * belongs to the leader. */
#include "layer.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	WINDOW = 64,          /* requests that are tested together */
	/* of ROUND tests with success the last is followed by a test at the rotating place */
	ROUND = 8,
	OTHERS = 16,          /* waits with a test function that are tested at once */
	LOOKS_A_CLOCK = 64,   /* tests without success between two readings of the clock */
	NAP_PART = 128,       /* the leader naps for this part of the time that it has waited */
	NAP_LEAST = 50000,    /* ns */
	NAP_MOST = 1000000,
	TELL_MOST = 16,       /* waits that a report names */
	TELL_WINDOW = 1000000000, /* ns */
};

/* In the order in which the waits were begun: both MPIs search the list of posted receives for a
 * message, oldest first. */
struct table {
	struct kbm_wait **wait; /* NULL: an empty place */
	int n, room;
	int empty;              /* empty places among the n */
	int next;               /* place where the next completion is expected */
	/* place of the rotating test: each second test after one without success, and each ROUND_th
	 * else */
	int at;
	unsigned found;         /* tests with success */
	bool round;             /* the next test is a rotating one */
};

static struct {
	aptr inbox;  /* struct kbm_wait *, newest first; pushed by any thread, taken by the leader */
	a32 leading; /* 1: a thread leads, or has been told to */
	a32 leaving; /* waits that their threads have given up */
	a32 napping; /* the leader sleeps at the bell */
	kb_sem_t bell;
} poller KBI_ALIGNED(KBI_CACHE_LINE);

/* The leader's. request[i] is the handle of requests.wait[i]. */
static struct {
	struct table requests, others;
	MPI_Request *request;
	/* ns: first reading of the clock without success since the last success; 0: none */
	uint64_t since;
	uint32_t looks;
	bool told;
} mine;

/* ---- the table ------------------------------------------------------------------------------- */

static KBI_NORETURN void no_memory(void)
{
	static const char words[] = "kochab: no memory to wait for MPI\n";
	ssize_t n = write(STDERR_FILENO, words, sizeof(words) - 1);

	(void)n;
	abort();
}

static void grow_wait_table(struct table *t, bool requests)
{
	int room = t->room ? t->room * 2 : WINDOW;

	if (t->n < t->room)
		return;
	t->wait = realloc(t->wait, (size_t)room * sizeof(*t->wait));
	if (requests)
		mine.request = realloc(mine.request, (size_t)room * sizeof(*mine.request));
	if (!t->wait || (requests && !mine.request))
		no_memory();
	t->room = room;
}

static void add_wait(struct kbm_wait *w)
{
	struct table *t = w->test ? &mine.others : &mine.requests;

	grow_wait_table(t, !w->test);
	if (!w->test)
		mine.request[t->n] = w->request;
	t->wait[t->n++] = w;
}

static void collect_inbox(void)
{
	struct kbm_wait *w, *next, *oldest = NULL;

	if (!a_load_rlx(&poller.inbox))
		return;
	/* acquire: pairs with the release in push_wait */
	for (w = a_xchg_acq(&poller.inbox, NULL); w; w = next) {
		next = w->next;
		w->next = oldest;
		oldest = w;
	}
	for (w = oldest; w; w = next) {
		next = w->next;
		add_wait(w);
	}
}

static void push_wait(struct kbm_wait *w)
{
	void *head = a_load_rlx(&poller.inbox);

	do
		w->next = head;
	/* release: pairs with the acquire in collect_inbox */
	while (!a_cas_rel(&poller.inbox, &head, (void *)w));
}

/* Empties a place. MPI passes over its null request. */
static struct kbm_wait *remove_wait(struct table *t, int i)
{
	struct kbm_wait *w = t->wait[i];

	t->wait[i] = NULL;
	t->empty++;
	if (t == &mine.requests)
		mine.request[i] = MPI_REQUEST_NULL;
	return w;
}

/* Closes the gaps if they are at least half of the table. */
static void close_gaps(struct table *t)
{
	int to = 0, next = t->next, at = t->at;

	if (t->empty * 2 < t->n)
		return;
	for (int i = 0; i < t->n; i++) {
		if (i == t->next)
			next = to;
		if (i == t->at)
			at = to;
		if (!t->wait[i])
			continue;
		t->wait[to] = t->wait[i];
		if (t == &mine.requests)
			mine.request[to] = mine.request[i];
		to++;
	}
	t->next = next;
	t->at = at;
	t->n = to;
	t->empty = 0;
}

/* Returns how many places to test now, at most `most`; *from: the first. */
static int next_places(struct table *t, int most, int *from)
{
	int at = t->round ? t->at : t->next;

	if (t->n <= most) {
		*from = 0;
		return t->n;
	}
	if (at >= t->n)
		at = 0;
	if (t->round)
		t->at = at + most;
	*from = at + most > t->n ? t->n - most : at;
	return most;
}

/* Gives the wait back to its thread; w may not exist any more when it returns. */
static void finish_wait(struct kbm_wait *w, enum kbm_state how, const struct kbm_wait *self)
{
	/* release: pairs with the acquire in sleep_as_follower */
	a_store_rel(&w->state, how);
	if (w != self)
		kb_sem_post(&w->sem);
}

/* ---- looking --------------------------------------------------------------------------------- */

static void complete_request(struct table *t, int i, MPI_Request left, int error,
			     const struct kbm_wait *self)
{
	struct kbm_wait *w = remove_wait(t, i);

	w->request = left;
	w->error = error;
	finish_wait(w, KBM_DONE, self);
	t->next = i + 1; /* messages come roughly in the order of the waits */
}

/* Tests each request by itself, so that MPI_Test reports errors as MPI_Wait would. */
static bool test_each(int from, int n, const struct kbm_wait *self)
{
	struct table *t = &mine.requests;
	bool any = false;

	for (int i = from; i < from + n; i++) {
		int flag = 0, e = 0;

		if (t->wait[i])
			e = kbm_real.Test(&mine.request[i], &flag, &t->wait[i]->status);
		if (e || flag) {
			complete_request(t, i, mine.request[i], e, self);
			any = true;
		}
	}
	return any;
}

static bool test_together(int from, int n, const struct kbm_wait *self)
{
	int done = 0, index[WINDOW];
	MPI_Status status[WINDOW];
	int e = kbm_real.Testsome(n, mine.request + from, &done, index, status);

	if (e && e != MPI_ERR_IN_STATUS)
		return test_each(from, n, self);
	for (int i = 0; i < done && done != MPI_UNDEFINED; i++) {
		mine.requests.wait[from + index[i]]->status = status[i];
		complete_request(&mine.requests, from + index[i], mine.request[from + index[i]],
				 e ? status[i].MPI_ERROR : MPI_SUCCESS, self);
	}
	return done != MPI_UNDEFINED && done > 0;
}

static bool test_requests(const struct kbm_wait *self)
{
	struct table *t = &mine.requests;
	int from, n = next_places(t, WINDOW, &from);
	bool any;

	if (!n)
		return false;
	any = n == 1 || a_load_rlx(&kbm_layer.told) ? test_each(from, n, self) :
						      test_together(from, n, self);
	t->round = any ? ++t->found % ROUND == 0 : !t->round;
	if (any)
		close_gaps(t);
	return any;
}

static bool test_other_waits(const struct kbm_wait *self)
{
	struct table *t = &mine.others;
	int from, n = next_places(t, OTHERS, &from);
	bool any = false;

	for (int i = from; i < from + n; i++) {
		if (!t->wait[i] || !t->wait[i]->test(t->wait[i]))
			continue;
		finish_wait(remove_wait(t, i), KBM_DONE, self);
		any = true;
	}
	t->round = true;
	if (any)
		close_gaps(t);
	return any;
}

static void finish_leaving_waits(struct table *t, const struct kbm_wait *self)
{
	for (int i = 0; i < t->n; i++) {
		/* acquire: pairs with the release in abandon_wait */
		if (t->wait[i] && a_load_acq(&t->wait[i]->leaves))
			finish_wait(remove_wait(t, i), KBM_LEFT, self);
	}
	close_gaps(t);
}

static bool poll_waits(const struct kbm_wait *self)
{
	bool any;

	collect_inbox();
	if (kbi_unlikely(a_load_rlx(&poller.leaving))) {
		finish_leaving_waits(&mine.requests, self);
		finish_leaving_waits(&mine.others, self);
	}
	any = test_requests(self);
	return test_other_waits(self) || any;
}

/* ---- between two tests ----------------------------------------------------------------------- */

/* Returns how long the virtual processors have had no thread to run, summed, ns. */
static uint64_t idle_time(void)
{
	uint64_t sum = 0, ns;

	for (unsigned i = 0; i < kb_vp_count(); i++)
		sum += kb_vp_idle(i, &ns) ? 0 : ns;
	return sum;
}

/* Returns whether the virtual processors had no thread to run for most of the last second. False,
 * too, when it is called for the first time in that second. */
static bool are_vps_idle(uint64_t now)
{
	static uint64_t at, idle;
	uint64_t is, passed = now - at;
	bool most;

	if (passed < TELL_WINDOW)
		return false;
	is = idle_time();
	most = at && passed < 2 * TELL_WINDOW && is - idle > passed / 4 * 3 * kb_vp_count();
	at = now;
	idle = is;
	return most;
}

static void print_waits(const struct table *t, int *left)
{
	for (int i = 0; i < t->n && *left > 0; i++) {
		const struct kbm_wait *w = t->wait[i];

		if (!w)
			continue;
		--*left;
		if (w->about)
			dprintf(STDERR_FILENO, "kochab:   %s(peer %d, tag %d)\n", w->call, w->peer, w->tag);
		else
			dprintf(STDERR_FILENO, "kochab:   %s\n", w->call);
	}
}

/* Reports the waiting calls, because nothing has completed for `waited` ns and no thread has run.
 * Once, until a wait completes. */
static void report_waits(uint64_t waited)
{
	int rank = 0, left = TELL_MOST;
	int n = mine.requests.n - mine.requests.empty + mine.others.n - mine.others.empty;

	mine.told = true;
	kbm_real.Comm_rank(MPI_COMM_WORLD, &rank);
	dprintf(STDERR_FILENO, "kochab: rank %d: no thread has run for %llu s; %d wait in MPI:\n", rank,
		(unsigned long long)(waited / 1000000000), n);
	print_waits(&mine.requests, &left);
	print_waits(&mine.others, &left);
	if (n > TELL_MOST)
		dprintf(STDERR_FILENO, "kochab:   ... and %d more\n", n - TELL_MOST);
}

/* Sleeps; the longer nothing has completed, the longer: a nap adds less than a hundredth to any
 * wait. A thread that begins or gives up a wait ends the nap. */
static void nap_at_bell(uint64_t waited)
{
	uint64_t ns = waited / NAP_PART;

	ns = ns < NAP_LEAST ? NAP_LEAST : ns > NAP_MOST ? NAP_MOST : ns;
	kb_sem_trywait(&poller.bell);
	a_store_rlx(&poller.napping, 1);
	a_fence_sc(); /* pairs with the fences in lead_or_follow and abandon_wait */
	if (!a_load_rlx(&poller.inbox) && !a_load_rlx(&poller.leaving))
		kb_sem_timedwait(&poller.bell, kb_now() + ns);
	a_store_rlx(&poller.napping, 0);
}

static void rouse_leader(void)
{
	if (a_load_rlx(&poller.napping) && a_xchg_rlx(&poller.napping, 0))
		kb_sem_post(&poller.bell);
}

static void pause_between_tests(bool found)
{
	uint64_t waited, now;

	if (found) {
		mine.since = 0;
		mine.looks = 0;
		mine.told = false;
	} else if (++mine.looks % LOOKS_A_CLOCK == 0) {
		now = kb_now();
		if (!mine.since)
			mine.since = now;
		waited = now - mine.since;
		if (kbm_layer.tell_ns && !mine.told && waited > kbm_layer.tell_ns &&
		    are_vps_idle(now))
			report_waits(waited);
		if (waited > kbm_layer.poll_ns) {
			mine.looks--; /* the next test without success naps, too */
			nap_at_bell(waited);
			return;
		}
	}
	kb_yield();
}

/* ---- the role -------------------------------------------------------------------------------- */

static bool take_lead(void)
{
	/* acquire: pairs with the release in hand_over_lead; the table is ours */
	return !a_load_rlx(&poller.leading) && !a_xchg_acq(&poller.leading, 1);
}

/* Returns the newest wait, which will probably lead for longest. */
static struct kbm_wait *newest_wait(const struct table *t)
{
	for (int i = t->n - 1; i >= 0; i--)
		if (t->wait[i])
			return t->wait[i];
	return NULL;
}

/* Hands the role to a waiting thread; to none if no thread waits. */
static void hand_over_lead(void)
{
	do {
		struct kbm_wait *w;

		collect_inbox();
		w = newest_wait(&mine.requests);
		if (!w)
			w = newest_wait(&mine.others);
		if (w) {
			/* release: pairs with the acquire in sleep_as_follower; the table belongs to the new
			 * leader */
			a_store_rel(&w->state, KBM_LEADS);
			kb_sem_post(&w->sem);
			return;
		}
		/* release: pairs with the acquire in take_lead */
		a_store_rel(&poller.leading, 0);
		a_fence_sc(); /* pairs with the fence in lead_or_follow */
	} while (a_load_rlx(&poller.inbox) && take_lead());
}

static void abandon_wait(struct kbm_wait *w)
{
	/* release: pairs with the acquire in finish_leaving_waits */
	a_store_rel(&w->leaves, 1);
	a_add_rlx(&poller.leaving, 1);
	a_fence_sc(); /* pairs with the fence in nap_at_bell */
	rouse_leader();
}

static void lead_until_done(struct kbm_wait *w)
{
	mine.looks = 0;
	mine.since = 0;
	for (;;) {
		bool found = poll_waits(w);

		if (a_load_rlx(&w->state) >= KBM_DONE)
			break;
		if (w->deadline != KB_FOREVER && !a_load_rlx(&w->leaves) && kb_now() >= w->deadline) {
			abandon_wait(w);
			continue;
		}
		pause_between_tests(found);
	}
	hand_over_lead();
}

/* Sleeps until the wait is over (true) or this thread must lead (false). A new state is followed by
 * a post, which must have been taken before the semaphore's memory is left. */
static bool sleep_as_follower(struct kbm_wait *w)
{
	for (;;) {
		bool late = false;
		uint32_t state;

		if (a_load_rlx(&w->leaves) || w->deadline == KB_FOREVER) {
			kb_sem_wait(&w->sem);
		} else if (kb_sem_timedwait(&w->sem, w->deadline) == ETIMEDOUT) {
			abandon_wait(w);
			late = true;
		}
		/* acquire: pairs with the releases in finish_wait and hand_over_lead */
		state = a_load_acq(&w->state);
		if (state == KBM_PENDING)
			continue;
		if (late)
			kb_sem_wait(&w->sem);
		return state != KBM_LEADS;
	}
}

static int lead_or_follow(struct kbm_wait *w)
{
	push_wait(w);
	a_fence_sc(); /* pairs with the fences in hand_over_lead and nap_at_bell */
	if (take_lead()) {
		lead_until_done(w);
	} else {
		rouse_leader();
		if (!sleep_as_follower(w))
			lead_until_done(w);
	}
	if (a_load_rlx(&w->leaves))
		a_sub_rlx(&poller.leaving, 1);
	return a_load_rlx(&w->state) == KBM_LEFT ? ETIMEDOUT : 0;
}

/* A thread that is cancelled meanwhile continues until its call is complete, because it may be
 * calling MPI for other threads. */
int kbm_wait(struct kbm_wait *w)
{
	int was, e;

	if (!kbm_layer.drop_in)
		return lead_or_follow(w);
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &was);
	e = lead_or_follow(w);
	pthread_setcancelstate(was, NULL);
	return e;
}
