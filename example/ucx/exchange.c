/* example/ucx/exchange.c - two processes, in each 64 lightweight threads that wait for messages of UCX. They do not poll:
 * ucp_worker_progress is a poll source, which the agents call while threads wait. The worker belongs to a caller at a
 * time (UCS_THREAD_MODE_SERIALIZED), so UCX takes no locks; the source passes when a thread is in UCX.
 * build: cc -O2 -pthread example/ucx/exchange.c -o exchange-ucx $(pkg-config --cflags --libs kochab) -lucp -lucs
 * run: ./exchange-ucx */
#include <kochab/io.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <ucp/api/ucp.h>
#include <unistd.h>

enum { THREADS = 64, ROUNDS = 200 };

static ucp_worker_h worker;
static ucp_ep_h partner;
static kb_io_agent_t *asking; /* the agent in progress */
static char taken;            /* not 0: a caller is in UCX */

static void check(int ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "%s fails\n", what);
	_exit(1);
}

/* ---- one caller at a time: between the two no call of Kochab's ---- */

static int try_enter(void)
{
	return !__atomic_test_and_set(&taken, __ATOMIC_ACQUIRE);
}

static void enter(void)
{
	while (!try_enter())
		kb_yield();
}

static void leave(void)
{
	__atomic_clear(&taken, __ATOMIC_RELEASE);
}

static void progress(kb_io_agent_t *agent, void *arg)
{
	(void)arg;
	if (!try_enter())
		return;
	asking = agent;
	for (int i = 0; i < 16 && ucp_worker_progress(worker); i++)
		continue;
	asking = NULL;
	leave();
}

/* ---- an operation and its wait ---- */

static void sent(void *request, ucs_status_t status, void *done)
{
	(void)request;
	kb_io_complete(asking, done, status);
}

static void received(void *request, ucs_status_t status, const ucp_tag_recv_info_t *info, void *done)
{
	(void)request, (void)info;
	kb_io_complete(asking, done, status);
}

/* A request that is no pointer is over at once, with that status. */
static int await(void *request, kb_io_completion_t *done)
{
	int64_t status = UCS_PTR_STATUS(request);

	if (!UCS_PTR_IS_PTR(request))
		return (int)status;
	if (kb_io_await(done, &status, KB_FOREVER))
		return -1;
	enter();
	ucp_request_free(request);
	leave();
	return (int)status;
}

static int exchange(unsigned tag, const uint64_t *out, uint64_t *in)
{
	kb_io_completion_t in_done = KB_IO_COMPLETION_INIT, out_done = KB_IO_COMPLETION_INIT;
	ucp_request_param_t p = { .op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA };
	void *receives, *sends;
	int e;

	enter();
	p.cb.recv = received;
	p.user_data = &in_done;
	receives = ucp_tag_recv_nbx(worker, in, sizeof(*in), tag, ~(ucp_tag_t)0, &p);
	p.cb.send = sent;
	p.user_data = &out_done;
	sends = ucp_tag_send_nbx(partner, out, sizeof(*out), tag, &p);
	leave();
	e = await(sends, &out_done);
	return await(receives, &in_done) || e;
}

static void *run(void *arg)
{
	unsigned tag = (unsigned)(uintptr_t)arg;
	uintptr_t wrong = 0;

	for (uint64_t i = 0; i < ROUNDS; i++) {
		uint64_t out = tag * 1000u + i, in = 0;

		wrong += exchange(tag, &out, &in) || in != out;
	}
	return (void *)wrong;
}

/* ---- two workers that know each other ---- */

static void make_worker(void)
{
	ucp_params_t p = { .field_mask = UCP_PARAM_FIELD_FEATURES, .features = UCP_FEATURE_TAG };
	ucp_worker_params_t w = { .field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE,
				  .thread_mode = UCS_THREAD_MODE_SERIALIZED };
	ucp_context_h context;

	check(ucp_init(&p, NULL, &context) == UCS_OK, "ucp_init");
	check(ucp_worker_create(context, &w, &worker) == UCS_OK, "ucp_worker_create");
}

static void connect_to(int fd)
{
	ucp_ep_params_t p = { .field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS };
	ucp_address_t *mine, *its;
	size_t n, m;

	check(ucp_worker_get_address(worker, &mine, &n) == UCS_OK, "ucp_worker_get_address");
	check(write(fd, &n, sizeof(n)) == sizeof(n) && write(fd, mine, n) == (ssize_t)n, "write");
	check(read(fd, &m, sizeof(m)) == sizeof(m), "read");
	its = malloc(m);
	check(its && recv(fd, its, m, MSG_WAITALL) == (ssize_t)m, "recv");
	p.address = its;
	check(ucp_ep_create(worker, &p, &partner) == UCS_OK, "ucp_ep_create");
	ucp_worker_release_address(worker, mine);
	free(its);
}

/* The first message makes the connection, which is more than an agent's stack is for: here main makes progress. */
static void meet(void)
{
	ucp_request_param_t none = { 0 };
	char out = 1, in = 0;
	void *r[2] = { ucp_tag_recv_nbx(worker, &in, 1, THREADS, ~(ucp_tag_t)0, &none),
		       ucp_tag_send_nbx(partner, &out, 1, THREADS, &none) };

	for (int i = 0; i < 2; i++) {
		while (UCS_PTR_IS_PTR(r[i]) && ucp_request_check_status(r[i]) == UCS_INPROGRESS)
			ucp_worker_progress(worker);
		if (UCS_PTR_IS_PTR(r[i]))
			ucp_request_free(r[i]);
	}
	check(in == 1, "the first message");
}

int main(void)
{
	static kb_thread_t thread[THREADS];
	uintptr_t wrong = 0;
	int ends[2], status = 0;
	pid_t child;

	check(!socketpair(AF_UNIX, SOCK_STREAM, 0, ends), "socketpair");
	child = fork();
	make_worker();
	connect_to(ends[child == 0]);
	meet();
	check(!kb_io_poll_source(progress, NULL), "kb_io_poll_source");
	for (uintptr_t i = 0; i < THREADS; i++)
		check(!kb_thread_create(&thread[i], NULL, run, (void *)i), "kb_thread_create");
	for (int i = 0; i < THREADS; i++) {
		void *its;

		kb_thread_join(thread[i], &its);
		wrong += (uintptr_t)its;
	}
	kb_io_poll_source_end(progress, NULL);
	if (child == 0)
		_exit(wrong != 0);
	wrong += waitpid(child, &status, 0) != child || status != 0;
	printf("%d threads, %d messages each; %d wrong\n", 2 * THREADS, ROUNDS, (int)wrong);
	return wrong != 0;
}
