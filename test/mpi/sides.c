/* mpi/sides - threads use windows of their own at once (fences, locks, flushes, exposure), while a
 * thread reads and writes a file, each rank by itself and all together. A single thread, because
 * MPICH's files have a lock that is held over collective calls. */
#include <unistd.h>

#include "crowd.h"

enum { THREADS = 6, ROUNDS = 5, WORDS = 64 };

static MPI_Comm own[THREADS];
static char name[THREADS][64];

static void fenced(MPI_Win w, int *base, int id)
{
	int out;

	for (int i = 0; i < ROUNDS; i++) {
		out = id * 100 + i + rank;
		OK(MPI_Win_fence(0, w));
		OK(MPI_Put(&out, 1, MPI_INT, peer, 0, 1, MPI_INT, w));
		OK(MPI_Win_fence(0, w));
		CHECK_EQ(base[0], id * 100 + i + peer);
	}
	OK(MPI_Win_fence(0, w));
}

static void locked(MPI_Win w, int *base, int id)
{
	int one = 1, got = -1;

	OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, rank, 0, w));
	base[1] = 0;
	OK(MPI_Win_unlock(rank, w));
	OK(MPI_Barrier(own[id]));
	for (int i = 0; i < ROUNDS; i++) {
		OK(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, w));
		OK(MPI_Accumulate(&one, 1, MPI_INT, 0, 1, 1, MPI_INT, MPI_SUM, w));
		OK(MPI_Win_flush(0, w));
		OK(MPI_Win_unlock(0, w));
	}
	OK(MPI_Barrier(own[id]));
	OK(MPI_Win_lock_all(0, w));
	OK(MPI_Fetch_and_op(&one, &got, MPI_INT, 0, 1, MPI_NO_OP, w));
	OK(MPI_Win_flush_all(w));
	OK(MPI_Win_unlock_all(w));
	CHECK_EQ(got, ROUNDS * ranks);
}

static void exposed(MPI_Win w, int *base, int id)
{
	MPI_Group all, other;
	int out = id + rank + 7;

	OK(MPI_Comm_group(own[id], &all));
	OK(MPI_Group_incl(all, 1, &peer, &other));
	OK(MPI_Win_post(other, 0, w));
	OK(MPI_Win_start(other, 0, w));
	OK(MPI_Put(&out, 1, MPI_INT, peer, 2, 1, MPI_INT, w));
	OK(MPI_Win_complete(w));
	OK(MPI_Win_wait(w));
	CHECK_EQ(base[2], id + peer + 7);
	OK(MPI_Group_free(&all));
	OK(MPI_Group_free(&other));
}

static void *window(void *arg)
{
	int id = (int)(intptr_t)arg, *base = NULL;
	MPI_Win w;

	OK(MPI_Win_allocate(WORDS * sizeof(int), sizeof(int), MPI_INFO_NULL, own[id], &base, &w));
	fenced(w, base, id);
	locked(w, base, id);
	exposed(w, base, id);
	OK(MPI_Win_free(&w));
	return NULL;
}

static void *file(void *arg)
{
	int id = (int)(intptr_t)arg, out[WORDS], in[WORDS];
	MPI_File f;
	MPI_Offset mine = rank * (MPI_Offset)sizeof(out), theirs = peer * (MPI_Offset)sizeof(out);
	MPI_Status s;

	OK(MPI_File_open(own[id], name[id], MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &f));
	for (int i = 0; i < ROUNDS; i++) {
		for (int k = 0; k < WORDS; k++) {
			out[k] = id * 10000 + i * 1000 + k * 2 + rank;
			in[k] = -1;
		}
		if (i % 2) {
			OK(MPI_File_write_at_all(f, mine, out, WORDS, MPI_INT, &s));
		} else {
			OK(MPI_File_seek(f, mine, MPI_SEEK_SET));
			OK(MPI_File_write(f, out, WORDS, MPI_INT, &s));
		}
		OK(MPI_File_sync(f));
		OK(MPI_Barrier(own[id]));
		OK(i % 2 ? MPI_File_read_at(f, theirs, in, WORDS, MPI_INT, &s)
			 : MPI_File_read_at_all(f, theirs, in, WORDS, MPI_INT, &s));
		for (int k = 0; k < WORDS; k++)
			CHECK_EQ(in[k], id * 10000 + i * 1000 + k * 2 + peer);
		OK(MPI_Barrier(own[id]));
	}
	OK(MPI_File_close(&f));
	return NULL;
}

static void *window_or_file(void *arg)
{
	return (intptr_t)arg == THREADS - 1 ? file(arg) : window(arg);
}

int main(int argc, char **argv)
{
	int pid = (int)getpid();

	begin(&argc, &argv);
	OK(MPI_Bcast(&pid, 1, MPI_INT, 0, MPI_COMM_WORLD));
	for (int i = 0; i < THREADS; i++) {
		snprintf(name[i], sizeof(name[i]), "/tmp/kochab-test-mpi.%d.%d", pid, i);
		OK(MPI_Comm_dup(MPI_COMM_WORLD, &own[i]));
	}
	crowd(THREADS, window_or_file);
	file((void *)(intptr_t)0);
	window((void *)(intptr_t)0);
	end();
	return 0;
}
