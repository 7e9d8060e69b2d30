/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Products with a triangle, and solutions; see xt.h.
 *
 *	left, op(A) lower:	B_i depends on A_ik and B_k, k <= i.  A solution goes down, since it needs the results above; a product goes up,
 *				since its result may take the place of B.  Upper, and right, in the other direction.
 *
 * A device has whole columns of blocks (left) or rows (right), which depend on no other's.
 */
#include "client/libs/cublas/xt.h"

/*
 * A row (left) or column (right) of blocks along the triangle's diagonal, of which `across` is the
 * other index.
 */
struct line {
	const struct ckt_xt_job *job;
	struct ckt_xt_device *device;
	const struct ckt_xt_triangle *t;
	size_t across;
};

static bool is_left(const struct ckt_xt_triangle *t)
{
	return t->side == CUBLAS_SIDE_LEFT;
}

/* Whether op(A) is lower. */
static bool is_lower(const struct ckt_xt_triangle *t)
{
	return (t->a.uplo == CUBLAS_FILL_MODE_LOWER) == (t->trans == CUBLAS_OP_N);
}

/* The blocks that block i needs: those before it, or those behind it. */
static bool needs_before(const struct ckt_xt_triangle *t)
{
	return is_left(t) == is_lower(t);
}

static cublasStatus_t fetch_a(const struct line *line, size_t i, size_t j, struct ckt_xt_tile *ret)
{
	bool transposed = line->t->trans != CUBLAS_OP_N;
	return ckt_xt_fetch(line->job, line->device, CKT_XT_LEFT, &line->t->a, transposed ? j : i,
		transposed ? i : j, ret);
}

static cublasStatus_t fetch_line(const struct line *line, enum ckt_xt_side side,
	const struct ckt_xt_matrix *matrix, size_t i, struct ckt_xt_tile *ret)
{
	bool left = is_left(line->t);
	return ckt_xt_fetch(line->job, line->device, side, matrix, left ? i : line->across,
		left ? line->across : i, ret);
}

static void sizes(const struct line *line, size_t i, int64_t *ret_rows, int64_t *ret_columns)
{
	bool left = is_left(line->t);
	*ret_rows = (int64_t)ckt_xt_part(line->t->m, line->job->block, left ? i : line->across);
	*ret_columns = (int64_t)ckt_xt_part(line->t->n, line->job->block, left ? line->across : i);
}

/* C_i = alpha A_ik X_k + beta C_i, or X_k A_ki on the right. */
static cublasStatus_t add(const struct line *line, size_t i, size_t k,
	const struct ckt_xt_matrix *x, const void *alpha, const void *beta,
	const struct ckt_xt_tile *c)
{
	const struct ckt_xt_triangle *t = line->t;
	struct ckt_xt_tile a, b;
	int64_t rows, columns,
		depth = (int64_t)ckt_xt_part(is_left(t) ? t->m : t->n, line->job->block, k);
	cublasStatus_t status = is_left(t) ? fetch_a(line, i, k, &a) : fetch_a(line, k, i, &a);
	if (!status)
		status = fetch_line(line, CKT_XT_RIGHT, x, k, &b);
	if (status)
		return status;
	sizes(line, i, &rows, &columns);
	if (is_left(t))
		return line->job->type->gemm(line->device->handle, t->trans, CUBLAS_OP_N, rows,
			columns, depth, alpha, a.data, a.ld, b.data, b.ld, beta, (void *)c->data,
			c->ld);
	return line->job->type->gemm(line->device->handle, CUBLAS_OP_N, t->trans, rows, columns,
		depth, alpha, b.data, b.ld, a.data, a.ld, beta, (void *)c->data, c->ld);
}

static cublasStatus_t place_result(const struct line *line, size_t i, struct ckt_xt_tile *ret)
{
	bool left = is_left(line->t);
	return ckt_xt_result(line->job, line->device, &line->t->c, left ? i : line->across,
		left ? line->across : i, ret);
}

/* The next block may need it from where it goes to. */
static cublasStatus_t store_result(
	const struct line *line, size_t i, const struct ckt_xt_tile *tile)
{
	bool left = is_left(line->t);
	cublasStatus_t status = ckt_xt_store(line->job, line->device, &line->t->c,
		left ? i : line->across, left ? line->across : i, tile);
	return status ? status : ckt_xt_wait(line->device);
}

static cublasStatus_t multiply_block(const struct line *line, size_t i, size_t count)
{
	const struct ckt_xt_triangle *t = line->t;
	struct ckt_xt_tile a, b, c;
	int64_t rows, columns;
	cublasStatus_t status = place_result(line, i, &c);
	if (!status)
		status = fetch_a(line, i, i, &a);
	if (!status)
		status = fetch_line(line, CKT_XT_RIGHT, &t->b, i, &b);
	sizes(line, i, &rows, &columns);
	if (!status)
		status = line->job->type->trmm(line->device->handle, t->side, t->a.uplo, t->trans,
			t->diag, rows, columns, t->alpha, a.data, a.ld, b.data, b.ld,
			(void *)c.data, c.ld);
	size_t from = needs_before(t) ? 0 : i + 1, to = needs_before(t) ? i : count;
	for (size_t k = from; !status && k < to; k++)
		status = add(line, i, k, &t->b, t->alpha, ckt_xt_one(line->job->type), &c);
	return status ? status : store_result(line, i, &c);
}

static cublasStatus_t solve_block(const struct line *line, size_t i, size_t count)
{
	const struct ckt_xt_triangle *t = line->t;
	struct ckt_xt_tile a, c;
	int64_t rows, columns;
	/* alpha is the first term's factor of B, else the solution's own. */
	const void *alpha = t->alpha;
	cublasStatus_t status = place_result(line, i, &c);
	if (!status)
		status = fetch_line(line, CKT_XT_RESULT, &t->c, i, &c);
	size_t from = needs_before(t) ? 0 : i + 1, to = needs_before(t) ? i : count;
	for (size_t k = from; !status && k < to; k++) {
		status = add(line, i, k, &t->c, ckt_xt_minus_one(line->job->type), alpha, &c);
		alpha = ckt_xt_one(line->job->type);
	}
	if (!status)
		status = fetch_a(line, i, i, &a);
	sizes(line, i, &rows, &columns);
	if (!status)
		status = line->job->type->trsm(line->device->handle, t->side, t->a.uplo, t->trans,
			t->diag, rows, columns, alpha, a.data, a.ld, (void *)c.data, c.ld);
	return status ? status : store_result(line, i, &c);
}

/* All lines; up: a line's blocks from the last to the first. */
static cublasStatus_t lines(const struct ckt_xt_job *job, struct ckt_xt_triangle *t, bool up,
	cublasStatus_t (*block)(const struct line *line, size_t i, size_t count))
{
	size_t count = ckt_xt_blocks(is_left(t) ? t->m : t->n, job->block),
	       others = ckt_xt_blocks(is_left(t) ? t->n : t->m, job->block);
	cublasStatus_t status = CUBLAS_STATUS_SUCCESS;
	ckt_xt_place(&t->a);
	ckt_xt_place(&t->b);
	ckt_xt_place(&t->c);
	for (size_t across = 0; !status && across < others; across++) {
		struct line line = {
			job, &job->own->devices[across % (size_t)job->own->count], t, across};
		status = ckt_xt_enter(line.device);
		if (status)
			break;
		for (size_t n = 0; !status && n < count; n++)
			status = block(&line, up ? count - 1 - n : n, count);
		ckt_xt_leave();
	}
	return ckt_xt_finish(job, status);
}

cublasStatus_t ckt_xt_multiply(const struct ckt_xt_job *job, struct ckt_xt_triangle *t)
{
	return lines(job, t, needs_before(t), multiply_block);
}

cublasStatus_t ckt_xt_solve(const struct ckt_xt_job *job, struct ckt_xt_triangle *t)
{
	return lines(job, t, !needs_before(t), solve_block);
}
