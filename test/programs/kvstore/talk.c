/* talk.c - plays a script to a server that speaks the Redis protocol and prints every answer, byte by byte.
 *
 *   talk [-1] SOCKET <script   SOCKET: the path of a Unix socket, or a port of this machine
 *
 * With -1 every byte is sent on its own.
 *
 * A line of the script is a request, in words: it is sent as an array of bulk strings, and one answer is read. In words
 * "..." and \n \r \\ \xHH stand for what they do in C. Lines of another kind begin with a mark:
 *   # a comment
 *   >3 BYTES      the bytes are sent as they are, three answers are read
 *   >! BYTES      the bytes are sent as they are, and everything is read until the server closes the connection
 *   & REQUEST     no answer is read
 *   ?             one answer is read
 *   @N LINE       the line is for connection N (0 to 9; 0 without this)
 *   ms N          nothing happens for so long */
#include <arpa/inet.h>
#include <ctype.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

static const char *where;
static size_t most = (size_t)-1; /* bytes at once */
static FILE *conn[10];

static void die(const char *what)
{
	fflush(stdout);
	perror(what);
	exit(1);
}

static FILE *open_conn(void)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct timeval limit = { .tv_sec = 20 };
	int tcp = isdigit((unsigned char)where[0]), fd = socket(tcp ? AF_INET : AF_UNIX, SOCK_STREAM, 0);

	in.sin_port = htons((uint16_t)atoi(where));
	strncpy(un.sun_path, where, sizeof un.sun_path - 1);
	if (fd < 0 || connect(fd, tcp ? (void *)&in : (void *)&un, tcp ? sizeof in : sizeof un) != 0)
		die(where);
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
	return fdopen(fd, "r");
}

static void transmit(FILE *f, const char *bytes, size_t n)
{
	while (n > 0) {
		ssize_t done = send(fileno(f), bytes, n < most ? n : most, MSG_NOSIGNAL);

		if (done < 0)
			return; /* the server has closed: what it said is still to be read */
		bytes += done;
		n -= (size_t)done;
	}
}

/* One character of the script; *s is behind it. */
static char unescape(const char **s)
{
	const char *p = *s;

	*s += 2;
	if (p[0] != '\\')
		return *s = p + 1, p[0];
	switch (p[1]) {
	case 'n': return '\n';
	case 'r': return '\r';
	case 'x': *s += 2; return (char)strtol((char[]){ p[2], p[3], 0 }, NULL, 16);
	default: return p[1];
	}
}

static void send_words(FILE *f, const char *s)
{
	char *words[64], *bytes = malloc(2 * strlen(s) + 64 * 16), *all;
	size_t size[64], n = 0, room = 2 * strlen(s) + 64 * 32, used;
	char *to = bytes;

	while (n < 64) {
		int quoted;

		while (*s == ' ')
			s++;
		if (*s == '\0')
			break;
		quoted = *s == '"';
		s += quoted;
		words[n] = to;
		while (*s != '\0' && *s != (quoted ? '"' : ' '))
			*to++ = unescape(&s);
		s += quoted && *s == '"';
		size[n] = (size_t)(to - words[n]);
		n++;
	}
	all = malloc(room);
	used = (size_t)snprintf(all, room, "*%zu\r\n", n);
	for (size_t i = 0; i < n; i++) {
		used += (size_t)snprintf(all + used, room - used, "$%zu\r\n", size[i]);
		memcpy(all + used, words[i], size[i]);
		used += size[i];
		memcpy(all + used, "\r\n", 2);
		used += 2;
	}
	transmit(f, all, used);
	free(bytes);
	free(all);
}

static void send_raw(FILE *f, const char *s)
{
	char *bytes = malloc(strlen(s) + 1), *to = bytes;

	while (*s != '\0')
		*to++ = unescape(&s);
	transmit(f, bytes, (size_t)(to - bytes));
	free(bytes);
}

static void show(int ch)
{
	if (ch == '\r')
		fputs("\\r", stdout);
	else if (ch == '\n')
		fputs("\\n", stdout);
	else if (ch == '\\')
		fputs("\\\\", stdout);
	else if (ch < ' ' || ch > '~')
		printf("\\x%02x", (unsigned)ch);
	else
		putchar(ch);
}

static int next(FILE *f)
{
	int ch = getc(f);

	if (ch == EOF) {
		puts(" ... and the end");
		exit(1);
	}
	show(ch);
	return ch;
}

/* Reads and shows one answer. */
static void answer(FILE *f)
{
	char line[128];
	size_t n = 0;
	int kind = next(f), ch;
	long count;

	while ((ch = next(f)) != '\n')
		if (n < sizeof line - 1)
			line[n++] = (char)ch;
	line[n] = '\0';
	count = atol(line);
	if (kind == '$' && count >= 0)
		for (count += 2; count > 0; count--)
			next(f);
	if (kind == '*')
		for (; count > 0; count--)
			answer(f);
}

static void answers(FILE *f, long n)
{
	for (; n > 0; n--) {
		fputs("< ", stdout);
		answer(f);
		putchar('\n');
	}
}

static void until_closed(FILE **f)
{
	int ch;

	fputs("< ", stdout);
	while ((ch = getc(*f)) != EOF)
		show(ch);
	puts(" (closed)");
	fclose(*f);
	*f = NULL;
}

static void play(char *line)
{
	FILE **f = &conn[0];

	if (line[0] == '@') {
		f = &conn[line[1] - '0'];
		line += 3;
	}
	if (*f == NULL)
		*f = open_conn();
	if (strncmp(line, "ms ", 3) == 0) {
		nanosleep(&(struct timespec){ .tv_nsec = atol(line + 3) * 1000000 }, NULL);
	} else if (line[0] == '>') {
		char *bytes = strchr(line, ' ');

		send_raw(*f, bytes != NULL ? bytes + 1 : "");
		line[1] == '!' ? until_closed(f) : answers(*f, atol(line + 1));
	} else if (line[0] == '&') {
		send_words(*f, line + 1);
	} else if (line[0] == '?') {
		answers(*f, 1);
	} else {
		send_words(*f, line);
		answers(*f, 1);
	}
}

int main(int argc, char **argv)
{
	char *line = NULL;
	size_t room = 0;

	if (argc == 3 && strcmp(argv[1], "-1") == 0)
		most = 1;
	else if (argc != 2) {
		fputs("usage: talk [-1] SOCKET|PORT <script\n", stderr);
		return 2;
	}
	where = argv[argc - 1];
	while (getline(&line, &room, stdin) > 0) {
		line[strcspn(line, "\n")] = '\0';
		if (line[0] == '#' || line[0] == '\0')
			continue;
		puts(line);
		play(line);
	}
	free(line);
	return 0;
}
