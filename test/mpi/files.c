/* mpi/files - a thread writes and reads files by split and by non-blocking collective calls while
 * another thread waits in MPI_Recv; each word that is read is checked. */
#include <unistd.h>

#include "crowd.h"

enum { LARGEST = 65536, ROUNDS = 3 };

static const struct shape {
	int words, parts; /* of each rank: so many parts of so many words */
} shape[] = { { 1, 150 }, { 4000, 8 }, { 4096, 8 }, { LARGEST, 8 } };

static int buffer[LARGEST];
static char name[64];
static MPI_Comm own;

static void *wait_for_word(void *arg)
{
	int word = 0;

	OK(MPI_Recv(&word, 1, MPI_INT, rank, 1, own, MPI_STATUS_IGNORE));
	CHECK_EQ(word, 77);
	return arg;
}

static int word_of(int part, int i)
{
	return part << 20 ^ rank << 17 ^ i;
}

/* The ranks' parts take turns in the file. */
static MPI_Offset place_of(const struct shape *s, int part)
{
	return ((MPI_Offset)part * ranks + rank) * s->words * (MPI_Offset)sizeof(buffer[0]);
}

static void write_part(MPI_File f, const struct shape *s, int part)
{
	MPI_Request request;
	MPI_Status status;

	for (int i = 0; i < s->words; i++)
		buffer[i] = word_of(part, i);
	if (part % 4 == 0) {
		OK(MPI_File_iwrite_at_all(f, place_of(s, part), buffer, s->words, MPI_INT, &request));
		OK(MPI_Wait(&request, &status));
		return;
	}
	OK(MPI_File_write_at_all_begin(f, place_of(s, part), buffer, s->words, MPI_INT));
	OK(MPI_File_write_at_all_end(f, buffer, &status));
}

static void read_part(MPI_File f, const struct shape *s, int part)
{
	MPI_Request request;
	MPI_Status status;

	memset(buffer, -1, sizeof(buffer[0]) * (size_t)s->words);
	if (part % 4 == 0) {
		OK(MPI_File_iread_at_all(f, place_of(s, part), buffer, s->words, MPI_INT, &request));
		OK(MPI_Wait(&request, &status));
	} else {
		OK(MPI_File_read_at_all_begin(f, place_of(s, part), buffer, s->words, MPI_INT));
		OK(MPI_File_read_at_all_end(f, buffer, &status));
	}
	for (int i = 0; i < s->words; i++)
		CHECK_EQ(buffer[i], word_of(part, i));
}

static void write_and_read(const struct shape *s)
{
	MPI_File f;

	OK(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &f));
	for (int part = 0; part < s->parts; part++)
		write_part(f, s, part);
	OK(MPI_File_close(&f));
	OK(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE,
			 MPI_INFO_NULL, &f));
	for (int part = 0; part < s->parts; part++)
		read_part(f, s, part);
	OK(MPI_File_close(&f));
}

int main(int argc, char **argv)
{
	const char *dir = getenv("TMPDIR");
	int word = 77;
	pthread_t thread;

	begin(&argc, &argv);
	if (rank == 0)
		snprintf(name, sizeof(name), "%.40s/files.%d", dir ? dir : "/tmp", (int)getpid());
	OK(MPI_Bcast(name, sizeof(name), MPI_CHAR, 0, MPI_COMM_WORLD));
	OK(MPI_Comm_dup(MPI_COMM_WORLD, &own));
	CHECK_EQ(pthread_create(&thread, NULL, wait_for_word, NULL), 0);
	for (size_t i = 0; i < ROUNDS * sizeof(shape) / sizeof(shape[0]); i++)
		write_and_read(&shape[i / ROUNDS]);
	OK(MPI_Send(&word, 1, MPI_INT, rank, 1, own));
	CHECK_EQ(pthread_join(thread, NULL), 0);
	OK(MPI_Comm_free(&own));
	end();
	return 0;
}
