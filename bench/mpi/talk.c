/* bench/mpi/talk.c - threads that talk: a word to a thread's partner in the other rank and back, a
 * word through all threads of both ranks, messages in windows, pieces of work with an exchange
 * after each, collective calls on a communicator for each thread. Words are compared with those
 * sent. */
#include <stdlib.h>

#include "load.h"

enum { WINDOW = 64 };

static void send_word(uint64_t word, int tag)
{
	load_need(MPI_Send(&word, 1, MPI_UINT64_T, load.peer, tag, MPI_COMM_WORLD) == MPI_SUCCESS, "MPI_Send");
}

static void receive_word(uint64_t want, int tag)
{
	uint64_t word = ~want;

	load_need(MPI_Recv(&word, 1, MPI_UINT64_T, load.peer, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE) == MPI_SUCCESS,
		  "MPI_Recv");
	load_need(word == want, "a word is not the one that was sent");
}

/* ---- each thread with its partner ------------------------------------------------------------ */

static void go_and_return(int id, uint64_t n)
{
	for (uint64_t i = 0; i < n; i++) {
		if (load.rank == 0)
			send_word(i, id);
		receive_word(i, id);
		if (load.rank != 0)
			send_word(i, id);
	}
}

void load_round_trip(const char *metric)
{
	load_report(metric, "us", load_scale(go_and_return) / load.threads * 1e6);
}

/* ---- a word through all threads -------------------------------------------------------------- */

/* Thread 0 of rank 0 begins; its partner is next, then thread 1 of rank 0 ... A word's tag is the
 * thread that gets it. */
static void pass_on(int id, uint64_t n)
{
	int next = load.rank == 0 ? id : (id + 1) % load.threads;

	for (uint64_t i = 0; i < n; i++) {
		if (load.rank == 0 && id == 0) {
			send_word(i, 0);
			receive_word(i, 0);
		} else {
			receive_word(i, id);
			send_word(i, next);
		}
	}
}

void load_hop(const char *metric)
{
	load_report(metric, "us", load_scale(pass_on) / load.threads / LOAD_RANKS * 1e6);
}

/* ---- messages in windows --------------------------------------------------------------------- */

static void stream(int id, uint64_t n)
{
	MPI_Request request[WINDOW];
	uint64_t word[WINDOW];

	for (uint64_t i = 0; i < n; i++) {
		for (int k = 0; k < WINDOW; k++) {
			word[k] = i + (uint64_t)k;
			load_need((load.rank == 0 ? MPI_Isend(&word[k], 1, MPI_UINT64_T, load.peer, id, MPI_COMM_WORLD, &request[k])
						  : MPI_Irecv(&word[k], 1, MPI_UINT64_T, load.peer, id, MPI_COMM_WORLD,
							      &request[k])) == MPI_SUCCESS, "MPI_Isend or MPI_Irecv");
		}
		load_need(MPI_Waitall(WINDOW, request, MPI_STATUSES_IGNORE) == MPI_SUCCESS, "MPI_Waitall");
		for (int k = 0; k < WINDOW; k++)
			load_need(word[k] == i + (uint64_t)k, "a word is not the one that was sent");
		if (load.rank == 0)
			receive_word(i, id);
		else
			send_word(i, id);
	}
}

void load_message(const char *metric)
{
	load_report(metric, "ns", load_scale(stream) / load.threads / WINDOW * 1e9);
}

/* ---- work between two exchanges -------------------------------------------------------------- */

static struct {
	uint64_t turns; /* of a piece */
	volatile uint64_t sink;
} work;

static uint64_t turn(uint64_t turns)
{
	uint64_t x = turns | 1;

	for (uint64_t i = 0; i < turns; i++)
		x = x * 6364136223846793005u + 1442695040888963407u;
	return x;
}

static void compute(int id, uint64_t n)
{
	(void)id;
	for (uint64_t i = 0; i < n; i++)
		work.sink = turn(work.turns);
}

static void compute_and_exchange(int id, uint64_t n)
{
	for (uint64_t i = 0; i < n; i++) {
		uint64_t in = ~i;

		work.sink = turn(work.turns);
		load_need(MPI_Sendrecv(&i, 1, MPI_UINT64_T, load.peer, id, &in, 1, MPI_UINT64_T, load.peer, id, MPI_COMM_WORLD,
				       MPI_STATUS_IGNORE) == MPI_SUCCESS, "MPI_Sendrecv");
		load_need(in == i, "a word is not the one that was sent");
	}
}

/* Computes a piece by a single thread of each rank, with no further work. */
static double piece_alone(void)
{
	int threads = load.threads;
	double took;

	load.threads = 1;
	took = load_scale(compute);
	load.threads = threads;
	return took;
}

void load_compute(const char *metric)
{
	double us = atof(metric + sizeof("compute"));

	work.turns = 1000;
	work.turns = (uint64_t)(us * 1e-6 / piece_alone() * 1000) + 1;
	load_report(metric, "x", load_scale(compute_and_exchange) / load.threads / piece_alone());
}

/* ---- collective calls ------------------------------------------------------------------------ */

static MPI_Comm *own;

static void add_up(int id, uint64_t n)
{
	for (uint64_t i = 0; i < n; i++) {
		uint64_t mine = i + (uint64_t)load.rank, sum = 0;

		load_need(MPI_Allreduce(&mine, &sum, 1, MPI_UINT64_T, MPI_SUM, own[id]) == MPI_SUCCESS, "MPI_Allreduce");
		load_need(sum == 2 * i + 1, "a sum is wrong");
	}
}

void load_collective(const char *metric)
{
	own = calloc((size_t)load.threads, sizeof(*own));
	load_need(!!own, "no memory");
	for (int i = 0; i < load.threads; i++)
		load_need(MPI_Comm_dup(MPI_COMM_WORLD, &own[i]) == MPI_SUCCESS, "MPI_Comm_dup");
	load_report(metric, "us", load_scale(add_up) / load.threads * 1e6);
	for (int i = 0; i < load.threads; i++)
		MPI_Comm_free(&own[i]);
	free(own);
}
