/* example/connections.c - a server with a plain blocking thread for each of a thousand connections, and its clients. A
 * thread that waits for its socket takes no processor along. */
#include <arpa/inet.h>
#include <kochab/io.h>
#include <kochab/kochab.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>

enum { CONNECTIONS = 1000, REQUESTS = 20, SIZE = 16 };

static struct sockaddr_in address;
static unsigned served, answered;

/* All of it, or false: the other end has closed. */
static bool read_all(int fd, char *to)
{
	ssize_t n, done = 0;

	while (done < SIZE && (n = kb_io_read(fd, to + done, (size_t)(SIZE - done), KB_FOREVER)) > 0)
		done += n;
	return done == SIZE;
}

static void *serve(void *arg)
{
	int fd = (int)(intptr_t)arg;
	char text[SIZE];

	while (read_all(fd, text)) {
		for (int i = 0; i < SIZE; i++)
			text[i] = text[i] >= 'a' && text[i] <= 'z' ? text[i] - 'a' + 'A' : text[i];
		kb_io_write(fd, text, SIZE, KB_FOREVER);
		__atomic_add_fetch(&served, 1, __ATOMIC_RELAXED);
	}
	kb_io_close(fd);
	return NULL;
}

static void *accept_all(void *arg)
{
	int listener = (int)(intptr_t)arg;
	kb_attr_t detached;
	kb_thread_t t;

	kb_attr_init(&detached);
	kb_attr_setdetached(&detached, 1);
	for (int i = 0; i < CONNECTIONS; i++) {
		int fd = kb_io_accept4(listener, NULL, NULL, 0, KB_FOREVER);

		if (fd < 0 || kb_thread_create(&t, &detached, serve, (void *)(intptr_t)fd) != 0)
			return NULL;
	}
	return arg;
}

static void *be_client(void *arg)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	char text[SIZE];

	if (fd < 0 || kb_io_connect(fd, (struct sockaddr *)&address, sizeof(address), KB_FOREVER) != 0)
		return NULL;
	for (int i = 0; i < REQUESTS; i++) {
		memcpy(text, "a request of 16", SIZE);
		if (kb_io_write(fd, text, SIZE, KB_FOREVER) != SIZE || !read_all(fd, text))
			break;
		if (memcmp(text, "A REQUEST OF 16", SIZE) == 0)
			__atomic_add_fetch(&answered, 1, __ATOMIC_RELAXED);
	}
	kb_io_close(fd);
	return arg;
}

static int listen_anywhere(void)
{
	socklen_t length = sizeof(address);
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	address.sin_family = AF_INET;
	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof(address)) != 0 || listen(fd, 1024) != 0 ||
	    getsockname(fd, (struct sockaddr *)&address, &length) != 0)
		return -1;
	return fd;
}

int main(void)
{
	static kb_thread_t client[CONNECTIONS];
	struct rlimit files;
	kb_thread_t acceptor;
	uint64_t start;
	int listener = listen_anywhere();

	getrlimit(RLIMIT_NOFILE, &files);
	files.rlim_cur = files.rlim_max;
	setrlimit(RLIMIT_NOFILE, &files); /* two descriptors a connection */
	if (listener < 0 || kb_thread_create(&acceptor, NULL, accept_all, (void *)(intptr_t)listener) != 0)
		return 1;
	start = kb_now();
	for (int i = 0; i < CONNECTIONS; i++) {
		if (kb_thread_create(&client[i], NULL, be_client, NULL) != 0)
			return 1;
	}
	for (int i = 0; i < CONNECTIONS; i++)
		kb_thread_join(client[i], NULL);
	kb_thread_join(acceptor, NULL);
	printf("%u requests on %d connections, %.1f us each\n", answered, CONNECTIONS,
	       (double)(kb_now() - start) / 1000 / (CONNECTIONS * REQUESTS));
	return answered == CONNECTIONS * REQUESTS && served == answered ? 0 : 1;
}
