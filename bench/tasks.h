/* bench/tasks.h - the problems of the question `tasks`, without anything that runs tasks: for
 * bench/tasks.c and for shims in C++. Each has its known result. */
#ifndef KOCHAB_BENCH_TASKS_H
#define KOCHAB_BENCH_TASKS_H

#include <stdint.h>
#include <string.h>

enum {
	FIB = 25, FIB_RESULT = 75025, FIB_TASKS = 121392,                 /* F(26) - 1 */
	QUEENS = 10, QUEENS_RESULT = 724, QUEENS_TASKS = 35538,           /* boards with at least a queen */
	TREE_ROOTS = 1000, TREE_WIDTH = 4, TREE_PER_MILLE = 240,
	SIDE = 256, BLOCK = 32, BLOCK_TASKS = (SIDE / BLOCK) * (SIDE / BLOCK) * (SIDE / BLOCK),
};

/* ---- queens: the rows that are placed, a bit for each column and diagonal that is taken ------ */

struct board {
	uint32_t columns, left, right;
};

static inline uint32_t board_free(const struct board *b)
{
	return ~(b->columns | b->left | b->right) & ((1u << QUEENS) - 1);
}

static inline struct board board_with(const struct board *b, uint32_t place)
{
	struct board next = { b->columns | place, (b->left | place) << 1, (b->right | place) >> 1 };

	return next;
}

static inline int board_is_full(const struct board *b)
{
	return b->columns == (1u << QUEENS) - 1;
}

static inline unsigned board_serial(const struct board *b)
{
	unsigned sum = 0;

	if (board_is_full(b))
		return 1;
	for (uint32_t left = board_free(b); left; left &= left - 1) {
		struct board next = board_with(b, left & -left);
		sum += board_serial(&next);
	}
	return sum;
}

/* ---- an unbalanced tree: a node has TREE_WIDTH children or none, as its hash says ------------ */

static inline uint64_t tree_child(uint64_t node, unsigned i)
{
	uint64_t z = node + (i + 1) * 0x9E3779B97F4A7C15u;

	z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
	z = (z ^ z >> 27) * 0x94D049BB133111EBu;
	return z ^ z >> 31;
}

static inline unsigned tree_children(uint64_t node)
{
	return node % 1000 < TREE_PER_MILLE ? TREE_WIDTH : 0;
}

static inline unsigned tree_serial(uint64_t node)
{
	unsigned sum = 1;

	for (unsigned i = 0, n = tree_children(node); i < n; i++)
		sum += tree_serial(tree_child(node, i));
	return sum;
}

static inline unsigned tree_size(void)
{
	unsigned sum = 0;

	for (unsigned i = 0; i < TREE_ROOTS; i++)
		sum += tree_serial(tree_child(1, i));
	return sum;
}

/* ---- matrices: c += a * b for squares of `side` in matrices of SIDE; product_block: of side BLOCK ------ */

struct product {
	float *c;
	const float *a, *b;
	unsigned side;
};

/* Said in vectors, so that compilers make the same of it everywhere. */
typedef float product_four __attribute__((vector_size(16), aligned(4), may_alias));

static __attribute__((noinline)) void product_block(const struct product *p)
{
	for (unsigned i = 0; i < BLOCK; i++)
		for (unsigned k = 0; k < BLOCK; k++) {
			float a = p->a[i * SIDE + k];
			product_four *c = (product_four *)(p->c + i * SIDE);
			const product_four *b = (const product_four *)(p->b + k * SIDE);

			for (unsigned j = 0; j < BLOCK / 4; j++)
				c[j] += b[j] * a;
		}
}

/* The i-th of eight halves of the sides; 0 .. 3 write different quarters of c, so do 4 .. 7. */
static inline struct product product_part(const struct product *p, unsigned i)
{
	unsigned half = p->side / 2, row = i / 2 % 2 * half, column = i % 2 * half, inner = i / 4 * half;
	struct product part = { p->c + row * SIDE + column, p->a + row * SIDE + inner, p->b + inner * SIDE + column, half };

	return part;
}

static float matrix_a[SIDE * SIDE], matrix_b[SIDE * SIDE], matrix_c[SIDE * SIDE];

static inline struct product product_whole(void)
{
	struct product p = { matrix_c, matrix_a, matrix_b, SIDE };

	for (unsigned i = 0; i < SIDE * SIDE; i++) {
		matrix_a[i] = (float)(i % 3);
		matrix_b[i] = (float)(i / SIDE % 5);
	}
	memset(matrix_c, 0, sizeof(matrix_c));
	return p;
}

/* After the product has been added `times` times; small integers, so sums are exact. */
static inline int product_is_right(float times)
{
	for (unsigned i = 0; i < SIDE; i += 37)
		for (unsigned j = 0; j < SIDE; j += 41) {
			float sum = 0;
			for (unsigned k = 0; k < SIDE; k++)
				sum += matrix_a[i * SIDE + k] * matrix_b[k * SIDE + j];
			if (matrix_c[i * SIDE + j] != times * sum)
				return 0;
		}
	return 1;
}

#endif
