/* SQLite: a database file, 8 threads with a connection each, which add to one counter in transactions and put in
 * rows of their own; busy ones wait by sqlite's own sleeping. Prints the same numbers whatever runs its threads. */
#include <pthread.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { THREADS = 8, TIMES = 40 };

static const char *file;

static void must(sqlite3 *db, int rc)
{
	if (rc == SQLITE_OK)
		return;
	fprintf(stderr, "sqlite: %s\n", sqlite3_errmsg(db));
	exit(1);
}

static sqlite3 *open_it(void)
{
	sqlite3 *db;

	must(NULL, sqlite3_open(file, &db));
	must(db, sqlite3_busy_timeout(db, 60000));
	must(db, sqlite3_exec(db, "PRAGMA synchronous = OFF", NULL, NULL, NULL));
	return db;
}

static void *add(void *arg)
{
	sqlite3 *db = open_it();
	char row[128];

	for (int i = 0; i < TIMES; i++) {
		snprintf(row, sizeof(row), "BEGIN IMMEDIATE; UPDATE c SET n = n + 1; INSERT INTO r VALUES (%ld, %d);"
			 "COMMIT", (long)arg, i);
		must(db, sqlite3_exec(db, row, NULL, NULL, NULL));
	}
	must(db, sqlite3_close(db));
	return NULL;
}

static int print(void *what, int columns, char **value, char **name)
{
	(void)name;
	for (int i = 0; i < columns; i++)
		printf("%s%s", i ? " " : (const char *)what, value[i]);
	return 0;
}

int main(void)
{
	char name[] = "sqlite-test-XXXXXX";
	pthread_t t[THREADS];
	sqlite3 *db;

	close(mkstemp(name));
	file = name;
	db = open_it();
	must(db, sqlite3_exec(db, "CREATE TABLE c (n); INSERT INTO c VALUES (0); CREATE TABLE r (t, i)", NULL, NULL, NULL));
	for (long i = 0; i < THREADS; i++)
		pthread_create(&t[i], NULL, add, (void *)i);
	for (int i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
	must(db, sqlite3_exec(db, "SELECT n FROM c", print, "counter ", NULL));
	must(db, sqlite3_exec(db, "SELECT count(*), sum(t), sum(i) FROM r", print, " rows ", NULL));
	must(db, sqlite3_exec(db, "PRAGMA integrity_check", print, " ", NULL));
	puts("");
	must(db, sqlite3_close(db));
	unlink(file);
	return 0;
}
