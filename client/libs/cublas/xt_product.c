/* SPDX-License-Identifier: Apache-2.0 */
/* Products of cublasXt by blocks; see xt.h. */
#include "client/libs/cublas/xt.h"

/* A block of C, and what was put into it so far. */
struct block {
	const struct ckt_xt_job *job;
	struct ckt_xt_device *device;
	struct ckt_xt_product *product;
	size_t i, j, rows, columns;
	struct ckt_xt_tile c;
	const void *beta; /* of the next term */
};

/* Where block (i, j) of a factor is stored, and how it is read from there. */
struct place {
	size_t i, j;
	cublasOperation_t op;
	bool diagonal; /* half of it is stored */
};

static struct place place_of(const struct ckt_xt_factor *factor, size_t i, size_t j)
{
	struct place place = {i, j, CUBLAS_OP_N, false};
	bool lower = factor->matrix.uplo == CUBLAS_FILL_MODE_LOWER;
	if (!factor->symmetric) {
		if (factor->op != CUBLAS_OP_N)
			place = (struct place){j, i, factor->op, false};
		return place;
	}
	place.diagonal = i == j;
	if (i != j && (i > j) != lower)
		place = (struct place){j, i, factor->hermitian ? CUBLAS_OP_C : CUBLAS_OP_T, false};
	return place;
}

/* One block of the left factor times one of the right. */
static cublasStatus_t add_term(struct block *b, const struct ckt_xt_factor *left,
	const struct ckt_xt_factor *right, const void *alpha, size_t k)
{
	const struct ckt_xt_product *p = b->product;
	const struct ckt_xt_type *type = b->job->type;
	size_t depth = p->k ? ckt_xt_part(p->k, b->job->block, k) : 0;
	struct place of_left = place_of(left, b->i, k), of_right = place_of(right, k, b->j);
	struct ckt_xt_tile x = {NULL, (int64_t)b->job->block}, y = x;
	cublasStatus_t status = CUBLAS_STATUS_SUCCESS;
	if (depth)
		status = ckt_xt_fetch(
			b->job, b->device, CKT_XT_LEFT, &left->matrix, of_left.i, of_left.j, &x);
	if (!status && depth)
		status = ckt_xt_fetch(b->job, b->device, CKT_XT_RIGHT, &right->matrix, of_right.i,
			of_right.j, &y);
	if (status)
		return status;
	int64_t rows = (int64_t)b->rows, columns = (int64_t)b->columns;
	if (of_left.diagonal)
		status = type->symm(b->device->handle, CUBLAS_SIDE_LEFT, left->matrix.uplo, rows,
			columns, alpha, x.data, x.ld, y.data, y.ld, b->beta, (void *)b->c.data,
			b->c.ld);
	else if (of_right.diagonal)
		status = type->symm(b->device->handle, CUBLAS_SIDE_RIGHT, right->matrix.uplo, rows,
			columns, alpha, y.data, y.ld, x.data, x.ld, b->beta, (void *)b->c.data,
			b->c.ld);
	else
		status = type->gemm(b->device->handle, of_left.op, of_right.op, rows, columns,
			(int64_t)depth, alpha, x.data, x.ld, y.data, y.ld, b->beta,
			(void *)b->c.data, b->c.ld);
	b->beta = ckt_xt_one(type);
	return status;
}

/*
 * A block on the diagonal of a triangle that is computed: from what is stored of the operands, not
 * from its transpose.
 */
static cublasStatus_t add_diagonal(struct block *b, size_t k, const void *beta)
{
	const struct ckt_xt_product *p = b->product;
	size_t depth = p->k ? ckt_xt_part(p->k, b->job->block, k) : 0;
	struct place of_left = place_of(&p->left, b->i, k);
	struct ckt_xt_tile x = {NULL, (int64_t)b->job->block}, y = x;
	cublasStatus_t status = CUBLAS_STATUS_SUCCESS;
	if (depth)
		status = ckt_xt_fetch(
			b->job, b->device, CKT_XT_LEFT, &p->left.matrix, of_left.i, of_left.j, &x);
	if (!status && depth && p->diagonal2)
		status = ckt_xt_fetch(b->job, b->device, CKT_XT_RIGHT, &p->other.matrix, of_left.i,
			of_left.j, &y);
	if (status)
		return status;
	if (p->diagonal2)
		return p->diagonal2(b->device->handle, p->uplo, p->trans, (int64_t)b->rows,
			(int64_t)depth, p->diagonal_alpha, x.data, x.ld, y.data, y.ld, beta,
			(void *)b->c.data, b->c.ld);
	return p->diagonal(b->device->handle, p->uplo, p->trans, (int64_t)b->rows, (int64_t)depth,
		p->diagonal_alpha, x.data, x.ld, beta, (void *)b->c.data, b->c.ld);
}

static cublasStatus_t compute(struct block *b)
{
	const struct ckt_xt_product *p = b->product;
	const struct ckt_xt_job *job = b->job;
	bool diagonal = p->ranked && b->i == b->j;
	size_t depth = p->k ? ckt_xt_blocks(p->k, job->block) : 1;
	cublasStatus_t status = ckt_xt_result(job, b->device, &p->result, b->i, b->j, &b->c);
	/*
	 * Of a block on the diagonal the other triangle goes back as it was; where beta is 0 what C
	 * holds does not matter.
	 */
	struct ckt_xt_tile before;
	if (!status && (diagonal || !ckt_xt_is_zero(job->type, p->beta)))
		status = ckt_xt_fetch(
			job, b->device, CKT_XT_RESULT, &p->result, b->i, b->j, &before);
	b->beta = p->beta;
	for (size_t k = 0; !status && k < depth; k++) {
		if (diagonal) {
			/*
			 * The program's beta may be real where the type is complex; 1 begins alike
			 * in both.
			 */
			status = add_diagonal(b, k, k ? ckt_xt_one(job->type) : p->diagonal_beta);
			continue;
		}
		status = add_term(b, &p->left, &p->right, p->alpha, k);
		if (!status && p->two)
			status = add_term(b, &p->left2, &p->right2, p->alpha2, k);
	}
	return status ? status : ckt_xt_store(job, b->device, &p->result, b->i, b->j, &b->c);
}

static void place_all(struct ckt_xt_product *p)
{
	struct ckt_xt_matrix *all[] = {&p->left.matrix, &p->right.matrix, &p->left2.matrix,
		&p->right2.matrix, &p->other.matrix, &p->result};
	for (unsigned i = 0; i < sizeof all / sizeof *all; i++)
		ckt_xt_place(all[i]);
}

cublasStatus_t ckt_xt_product(const struct ckt_xt_job *job, struct ckt_xt_product *p)
{
	cublasStatus_t status = CUBLAS_STATUS_SUCCESS;
	size_t next = 0;
	place_all(p);
	for (size_t j = 0; j < ckt_xt_blocks(p->n, job->block); j++)
		for (size_t i = 0; !status && i < ckt_xt_blocks(p->m, job->block); i++) {
			if (p->ranked && i != j && (i > j) != (p->uplo == CUBLAS_FILL_MODE_LOWER))
				continue;
			struct ckt_xt_device *device =
				&job->own->devices[next++ % (size_t)job->own->count];
			struct block b = {.job = job,
				.device = device,
				.product = p,
				.i = i,
				.j = j,
				.rows = ckt_xt_part(p->m, job->block, i),
				.columns = ckt_xt_part(p->n, job->block, j)};
			status = ckt_xt_enter(device);
			if (status)
				break;
			status = compute(&b);
			ckt_xt_leave();
		}
	return ckt_xt_finish(job, status);
}
