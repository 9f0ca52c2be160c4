/* server.c - an in-memory key-value server that speaks the Redis protocol: a thread for each connection, plain blocking
 * calls, nothing of Kochab's in the source. main reads the options, opens the sockets, starts a thread for each that
 * accepts and one that removes keys whose time is over, and waits for the signal to end. */
#include "server.h"

#include <errno.h>
#include <getopt.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "buf.h"
#include "client.h"
#include "command.h"
#include "space.h"
#include "store.h"

enum {
	LISTENERS = 16,
	BACKLOG = 511,
	OWN_FILES = 32, /* descriptors that are not connections */
	GRACE_SECONDS = 10, /* to finish what has arrived */
};

struct server server = { .bind = "127.0.0.1", .port = 6379, .maxclients = 10000, .stack = 64 << 10 };

static int listener[LISTENERS];
static size_t listeners;
static atomic_bool stopping;

static const char help[] =
	"usage: kvstore [options]\n"
	"An in-memory key-value server that speaks the Redis protocol, with a thread for each connection.\n"
	"\n"
	"  --port N          the TCP port (6379); 0: none\n"
	"  --bind ADDRESS    numeric, several with commas between them (127.0.0.1)\n"
	"  --unixsocket PATH listen on this socket, too\n"
	"  --space NAME      serve clients over this named space of Kochab, too\n"
	"  --maxclients N    connections at once (10000)\n"
	"  --client-memory MIB  for requests and answers, of all clients (1024); one that\n"
	"                    sends and does not read its answers is cut off at 64\n"
	"  --stack KIB       stack of a connection's thread (64)\n"
	"  --help, --version\n"
	"\n"
	"SIGTERM, SIGINT and the command SHUTDOWN end it: requests that have arrived are answered first.\n";

static void say(const char *what)
{
	fprintf(stderr, "kvstore: %s\n", what);
}

static void die(const char *what, const char *which, const char *why)
{
	fprintf(stderr, "kvstore: %s %s: %s\n", what, which, why);
	exit(1);
}

/* ---- options ---- */

static long number(const char *name, const char *text, long least, long most)
{
	char *end;
	long n;

	errno = 0;
	n = strtol(text, &end, 10);
	if (errno != 0 || end == text || *end != '\0' || n < least || n > most) {
		fprintf(stderr, "kvstore: --%s %s: a number from %ld to %ld is wanted\n", name, text, least, most);
		exit(2);
	}
	return n;
}

static void options(int argc, char **argv)
{
	static const struct option known[] = {
		{ "port", required_argument, NULL, 'p' },
		{ "bind", required_argument, NULL, 'b' },
		{ "unixsocket", required_argument, NULL, 'u' },
		{ "space", required_argument, NULL, 'S' },
		{ "maxclients", required_argument, NULL, 'm' },
		{ "client-memory", required_argument, NULL, 'M' },
		{ "stack", required_argument, NULL, 's' },
		{ "help", no_argument, NULL, 'h' },
		{ "version", no_argument, NULL, 'v' },
		{ 0 },
	};
	int o;

	while ((o = getopt_long(argc, argv, "", known, NULL)) != -1) {
		switch (o) {
		case 'p': server.port = (int)number("port", optarg, 0, 65535); break;
		case 'b': server.bind = optarg; break;
		case 'u': server.unixsocket = optarg; break;
		case 'S': server.space = optarg; break;
		case 'm': server.maxclients = (size_t)number("maxclients", optarg, 1, 1000000); break;
		case 'M': buf_most = (size_t)number("client-memory", optarg, 1, 1 << 20) << 20; break;
		case 's': server.stack = (size_t)number("stack", optarg, 32, 65536) << 10; break;
		case 'h': fputs(help, stdout); exit(0);
		case 'v': puts("kvstore, an example of Kochab; commands of Redis " KVSTORE_VERSION); exit(0);
		default: fputs("kvstore: try --help\n", stderr); exit(2);
		}
	}
	if (optind < argc) {
		fprintf(stderr, "kvstore: '%s' is not an option; try --help\n", argv[optind]);
		exit(2);
	}
	if (server.space != NULL && space_listen == NULL) {
		say("--space: this program is not linked with Kochab; kvstore-posix is");
		exit(2);
	}
	if (server.port == 0 && server.unixsocket == NULL && server.space == NULL) {
		say("nothing to listen on: give --port, --unixsocket or --space");
		exit(2);
	}
}

/* As many descriptors as clients, or fewer clients. */
static void limit_clients(void)
{
	struct rlimit l;
	rlim_t want = server.maxclients + OWN_FILES;

	if (getrlimit(RLIMIT_NOFILE, &l) != 0 || l.rlim_cur >= want)
		return;
	l.rlim_cur = want;
	if (l.rlim_max < want)
		l.rlim_max = want;
	if (setrlimit(RLIMIT_NOFILE, &l) == 0)
		return;
	getrlimit(RLIMIT_NOFILE, &l);
	l.rlim_cur = l.rlim_max;
	setrlimit(RLIMIT_NOFILE, &l);
	if (l.rlim_cur < OWN_FILES + 1)
		die("the limit of open files", "(ulimit -n)", "too low");
	server.maxclients = l.rlim_cur - OWN_FILES;
	fprintf(stderr, "kvstore: maxclients is %zu, the limit of open files is %ju\n", server.maxclients,
		(uintmax_t)l.rlim_cur);
}

/* ---- listening ---- */

static void add_listener(int fd, const char *where)
{
	if (listeners == LISTENERS)
		die("cannot listen on", where, "too many addresses");
	if (listen(fd, BACKLOG) != 0)
		die("cannot listen on", where, strerror(errno));
	listener[listeners++] = fd;
}

static void listen_tcp(const char *address)
{
	struct addrinfo want = { .ai_flags = AI_NUMERICHOST | AI_PASSIVE, .ai_socktype = SOCK_STREAM }, *a;
	char port[8];
	int error, fd, on = 1;

	snprintf(port, sizeof port, "%d", server.port);
	error = getaddrinfo(address, port, &want, &a);
	if (error != 0)
		die("cannot listen on", address, gai_strerror(error));
	fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		die("cannot listen on", address, strerror(errno));
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
	if (a->ai_family == AF_INET6)
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);
	if (bind(fd, a->ai_addr, a->ai_addrlen) != 0)
		die("cannot listen on", address, strerror(errno));
	freeaddrinfo(a);
	add_listener(fd, address);
}

static void listen_every_tcp(void)
{
	char *addresses = strdup(server.bind), *rest = addresses, *one;

	while ((one = strsep(&rest, ", ")) != NULL)
		if (*one != '\0')
			listen_tcp(one);
	free(addresses);
	if (listeners == 0)
		die("cannot listen on", server.bind, "no address");
}

/* A socket that nobody listens on any more makes room; another file does not. */
static void listen_unix(const char *path)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	struct stat st;
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		die("cannot listen on", path, strerror(errno));
	if (strlen(path) >= sizeof a.sun_path)
		die("cannot listen on", path, "the path is too long");
	strcpy(a.sun_path, path);
	if (lstat(path, &st) == 0 && S_ISSOCK(st.st_mode)) {
		if (connect(fd, (struct sockaddr *)&a, sizeof a) == 0)
			die("cannot listen on", path, strerror(EADDRINUSE));
		unlink(path);
	}
	if (bind(fd, (struct sockaddr *)&a, sizeof a) != 0)
		die("cannot listen on", path, strerror(errno));
	add_listener(fd, path);
}

static void listen_space(const char *name)
{
	int error = space_listen(name);

	if (error != 0)
		die("cannot serve the space", name, strerror(error));
}

/* ---- threads ---- */

/* accept failed: true, go on. Without descriptors or memory it waits for others to leave; it says so once. */
static bool accept_failed(int error)
{
	static atomic_bool said;

	switch (error) {
	case EMFILE:
	case ENFILE:
	case ENOBUFS:
	case ENOMEM:
		if (!atomic_exchange(&said, true))
			fprintf(stderr, "kvstore: accept: %s; trying again\n", strerror(error));
		nanosleep(&(struct timespec){ .tv_nsec = 10000000 }, NULL);
		return true;
	case EBADF:
	case EINVAL: /* the socket has been shut down */
	case ENOTSOCK:
	case EOPNOTSUPP:
		return false;
	default: /* a connection that broke before it was accepted */
		return true;
	}
}

static void *accept_thread(void *arg)
{
	int fd = *(int *)arg, on = 1, c;

	while (!stopping) {
		c = accept4(fd, NULL, NULL, SOCK_CLOEXEC);
		if (c < 0) {
			if (!accept_failed(errno))
				break;
			continue;
		}
		setsockopt(c, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on); /* fails on a Unix socket */
		setsockopt(c, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
		client_start(c);
	}
	return NULL;
}

static void *sweep_thread(void *arg)
{
	(void)arg;
	for (;;) {
		nanosleep(&(struct timespec){ .tv_nsec = 100000000 }, NULL);
		store_sweep();
	}
	return NULL;
}

static pthread_t start(void *(*fn)(void *), void *arg)
{
	pthread_t t;
	int error = pthread_create(&t, NULL, fn, arg);

	if (error != 0)
		die("cannot start", "a thread", strerror(error));
	return t;
}

void server_stop(void)
{
	kill(getpid(), SIGTERM);
}

int main(int argc, char **argv)
{
	pthread_t acceptor[LISTENERS];
	sigset_t ending;
	int sig;

	options(argc, argv);
	signal(SIGPIPE, SIG_IGN);
	sigemptyset(&ending);
	sigaddset(&ending, SIGTERM);
	sigaddset(&ending, SIGINT);
	pthread_sigmask(SIG_BLOCK, &ending, NULL); /* before there are threads, which inherit it */
	limit_clients();
	server.since = store_now();
	store_init();
	command_init();
	if (server.port != 0)
		listen_every_tcp();
	if (server.unixsocket != NULL)
		listen_unix(server.unixsocket);
	if (server.space != NULL)
		listen_space(server.space);
	for (size_t i = 0; i < listeners; i++)
		acceptor[i] = start(accept_thread, &listener[i]);
	start(sweep_thread, NULL);
	say("ready");

	sigwait(&ending, &sig);
	say("ending");
	pthread_sigmask(SIG_UNBLOCK, &ending, NULL); /* a second one ends it at once */
	stopping = true;
	for (size_t i = 0; i < listeners; i++)
		shutdown(listener[i], SHUT_RDWR);
	for (size_t i = 0; i < listeners; i++) {
		pthread_join(acceptor[i], NULL);
		close(listener[i]);
	}
	if (server.unixsocket != NULL)
		unlink(server.unixsocket);
	if (server.space != NULL)
		space_stop();
	client_stop_all(GRACE_SECONDS);
	return 0;
}
