/* bench/tasks.c - the cost of a task where work is split into far more pieces than threads are
 * worth. Fibonacci with a task for half of each call, all boards of ten queens, an unbalanced tree
 * with a task for each node, and a product of matrices in blocks; time / number of tasks, or of
 * blocks. `serial` is the same by plain calls, on a single processor; `nptl` deals the first pieces
 * out to as many kernel threads as processors. */
#include <kochab/task.h>

#include "crew.h"
#include "tasks.h"

static unsigned nodes; /* of the tree */

/* ---- with tasks ------------------------------------------------------------------------------ */

struct fib {
	unsigned n, result;
};

static int fib_task(void *arg)
{
	struct fib *f = arg;

	if (f->n < 2) {
		f->result = f->n;
		return 0;
	}
	struct fib a = { f->n - 1, 0 }, b = { f->n - 2, 0 };
	kb_group_t g;

	kb_group_init(&g);
	kb_group_run(&g, fib_task, &a);
	fib_task(&b);
	kb_group_wait(&g);
	f->result = a.result + b.result;
	return 0;
}

struct queens {
	struct board board;
	unsigned result;
};

static int queens_task(void *arg)
{
	struct queens *q = arg, next[QUEENS];
	unsigned n = 0;
	kb_group_t g;

	if (board_is_full(&q->board)) {
		q->result = 1;
		return 0;
	}
	kb_group_init(&g);
	for (uint32_t left = board_free(&q->board); left; left &= left - 1, n++) {
		next[n].board = board_with(&q->board, left & -left);
		kb_group_run(&g, queens_task, &next[n]);
	}
	kb_group_wait(&g);
	for (q->result = 0; n; n--)
		q->result += next[n - 1].result;
	return 0;
}

struct node {
	uint64_t hash;
	unsigned result;
};

static int tree_task(void *arg)
{
	struct node *node = arg, child[TREE_WIDTH];
	unsigned n = tree_children(node->hash);
	kb_group_t g;

	node->result = 1;
	if (!n)
		return 0;
	kb_group_init(&g);
	for (unsigned i = 0; i < n; i++) {
		child[i].hash = tree_child(node->hash, i);
		kb_group_run(&g, tree_task, &child[i]);
	}
	kb_group_wait(&g);
	for (unsigned i = 0; i < n; i++)
		node->result += child[i].result;
	return 0;
}

static unsigned tree_tasks(void)
{
	static struct node root[TREE_ROOTS];
	unsigned sum = 0;
	kb_group_t g;

	kb_group_init(&g);
	for (unsigned i = 0; i < TREE_ROOTS; i++) {
		root[i].hash = tree_child(1, i);
		kb_group_run(&g, tree_task, &root[i]);
	}
	kb_group_wait(&g);
	for (unsigned i = 0; i < TREE_ROOTS; i++)
		sum += root[i].result;
	return sum;
}

static int product_task(void *arg)
{
	const struct product *p = arg;
	struct product part[4];
	kb_group_t g;

	if (p->side == BLOCK) {
		product_block(p);
		return 0;
	}
	kb_group_init(&g);
	for (unsigned i = 0; i < 8; i++) {
		part[i % 4] = product_part(p, i);
		kb_group_run(&g, product_task, &part[i % 4]);
		if (i % 4 == 3)
			kb_group_wait(&g);
	}
	return 0;
}

static unsigned fib_kb(void)
{
	struct fib f = { FIB, 0 };

	fib_task(&f);
	return f.result;
}

static unsigned queens_kb(void)
{
	struct queens q = { { 0, 0, 0 }, 0 };

	queens_task(&q);
	return q.result;
}

static unsigned blocks_kb(void)
{
	struct product p = product_whole();

	product_task(&p);
	return BLOCK_TASKS;
}

/* ---- by plain calls -------------------------------------------------------------------------- */

static __attribute__((noinline)) unsigned fib_of(unsigned n)
{
	return n < 2 ? n : fib_of(n - 1) + fib_of(n - 2);
}

static void product_serial(const struct product *p)
{
	if (p->side == BLOCK) {
		product_block(p);
		return;
	}
	for (unsigned i = 0; i < 8; i++) {
		struct product part = product_part(p, i);
		product_serial(&part);
	}
}

static unsigned fib_serial(void)
{
	return fib_of(FIB);
}

static unsigned queens_serial(void)
{
	struct board b = { 0, 0, 0 };

	return board_serial(&b);
}

static unsigned blocks_serial(void)
{
	struct product p = product_whole();

	product_serial(&p);
	return BLOCK_TASKS;
}

/* ---- dealt out to kernel threads ------------------------------------------------------------- */

static unsigned dealers; /* threads */

struct deal {
	pthread_t thread;
	unsigned (*share)(unsigned me);
	unsigned me, result;
};

static void *deal_body(void *arg)
{
	struct deal *d = arg;

	d->result = d->share(d->me);
	return NULL;
}

static unsigned deal(unsigned (*share)(unsigned me))
{
	struct deal d[64];
	unsigned sum = 0, n = dealers < 64 ? dealers : 64;

	dealers = n;
	for (unsigned i = 0; i < n; i++) {
		d[i] = (struct deal){ .share = share, .me = i };
		if (pthread_create(&d[i].thread, NULL, deal_body, &d[i]))
			bench_skip("no thread");
	}
	for (unsigned i = 0; i < n; i++) {
		pthread_join(d[i].thread, NULL);
		sum += d[i].result;
	}
	return sum;
}

static unsigned queens_share(unsigned me)
{
	unsigned sum = 0, n = 0;

	for (unsigned i = 0; i < QUEENS * QUEENS; i++) {
		struct board none = { 0, 0, 0 }, first = board_with(&none, 1u << i / QUEENS), second;

		if (!(board_free(&first) & 1u << i % QUEENS) || n++ % dealers != me)
			continue;
		second = board_with(&first, 1u << i % QUEENS);
		sum += board_serial(&second);
	}
	return sum;
}

static unsigned tree_share(unsigned me)
{
	unsigned sum = 0;

	for (unsigned i = me; i < TREE_ROOTS; i += dealers)
		sum += tree_serial(tree_child(1, i));
	return sum;
}

/* Whole blocks of the result. */
static unsigned blocks_share(unsigned me)
{
	enum { N = SIDE / BLOCK };
	unsigned done = 0;

	for (unsigned i = me; i < N * N; i += dealers)
		for (unsigned k = 0; k < N; k++, done++) {
			unsigned row = i / N * BLOCK, column = i % N * BLOCK;
			struct product p = { matrix_c + row * SIDE + column, matrix_a + row * SIDE + k * BLOCK,
					     matrix_b + k * BLOCK * SIDE + column, BLOCK };
			product_block(&p);
		}
	return done;
}

static unsigned queens_nptl(void) { return deal(queens_share); }
static unsigned tree_nptl(void) { return deal(tree_share); }

static unsigned blocks_nptl(void)
{
	product_whole();
	return deal(blocks_share);
}

/* ---- measuring ------------------------------------------------------------------------------- */

static double once(void *arg, uint64_t n)
{
	unsigned (*solve)(void) = *(unsigned (**)(void))arg, want = solve();
	double start = bench_now();

	for (; n; n--)
		if (solve() != want)
			bench_fail("another result than before");
	return bench_now() - start;
}

static void ask(const struct bench_case *c, const char *metric, unsigned (*solve)(void), unsigned result, unsigned tasks)
{
	if (!solve)
		return;
	if (solve() != result)
		bench_fail("%s: a wrong result", metric);
	bench_report(metric, "ns", bench_scale(c, once, &solve) / tasks * 1e9);
}

static void ask_all(const struct bench_case *c, unsigned (*fib)(void), unsigned (*queens)(void), unsigned (*tree)(void),
		    unsigned (*blocks)(void))
{
	nodes = tree_size();
	ask(c, "fib", fib, FIB_RESULT, FIB_TASKS);
	ask(c, "queens", queens, QUEENS_RESULT, QUEENS_TASKS);
	ask(c, "tree", tree, nodes, nodes);
	ask(c, "blocks", blocks, BLOCK_TASKS, BLOCK_TASKS);
	if (!product_is_right(1))
		bench_fail("a wrong product");
}

static void kochab(const struct bench_case *c)
{
	struct crew_attr attr;

	crew_start(&attr, CREW_LIGHT, c);
	ask_all(c, fib_kb, queens_kb, tree_tasks, blocks_kb);
}

static void serial(const struct bench_case *c)
{
	ask_all(c, fib_serial, queens_serial, tree_size, blocks_serial);
}

static void nptl(const struct bench_case *c)
{
	dealers = c->vps;
	ask_all(c, NULL, queens_nptl, tree_nptl, blocks_nptl);
}

static const struct bench_method methods[] = {
	{ "serial", serial, 0, 0, BENCH_KERNEL | BENCH_FREE_ONLY, 0, 0, 0, 1 },
	{ "nptl", nptl, 0, 0, BENCH_KERNEL | BENCH_FREE_ONLY, 0, 0, 0, 0 },
	{ "kochab", kochab, 0, 0, BENCH_FREE_ONLY, 0, 0, 0, 0 },
	{ 0 },
};

const struct bench bench_tasks = {
	.name = "tasks",
	.question = "fork-join with tasks: time per task of fib, queens, an unbalanced tree; per block of a product",
	.methods = methods,
	.threads = "1",
	.vps = "1,cores",
	.reference = "kochab",
	.peers = 1,
};
