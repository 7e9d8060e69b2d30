/* SPDX-License-Identifier: Apache-2.0 */
/* Updates of a matrix by vectors. */
#include "softgpu/libs/blas/openblas.h"

int ckt_blas_ger(const struct ckt_blas_job *job)
{
	struct ckt_blas_factor alpha = ckt_blas_factor(&job->alpha, 0);
	ckt_blas_enter();
	if (job->conjugate) {
		CKT_BLAS_ONE(job->A.type, sger, dger, cgerc, zgerc,
			(CblasColMajor, (int)job->m, (int)job->n), alpha,
			(job->x.p, (int)job->x.ld, job->y.p, (int)job->y.ld, job->A.p,
				(int)job->A.ld))
	} else {
		CKT_BLAS_ONE(job->A.type, sger, dger, cgeru, zgeru,
			(CblasColMajor, (int)job->m, (int)job->n), alpha,
			(job->x.p, (int)job->x.ld, job->y.p, (int)job->y.ld, job->A.p,
				(int)job->A.ld))
	}
	ckt_blas_leave();
	return 0;
}

/*
 * The complex symmetric updates, which OpenBLAS's C interface lacks: A += alpha (x y^T [+ y x^T]),
 * for one triangle.
 */
static void symmetric_update(const struct ckt_blas_job *job, bool twice)
{
	size_t size = ckt_blas_type_size(job->A.type);
	int64_t n = job->n, ix = job->x.ld, iy = twice ? job->y.ld : ix,
		x0 = ix < 0 ? (1 - n) * ix : 0, y0 = iy < 0 ? (1 - n) * iy : 0;
	const char *xp = (char *)job->x.p + x0 * (int64_t)size,
		   *yp = (twice ? (char *)job->y.p : (char *)job->x.p) + y0 * (int64_t)size;
	double alpha[2];
	ckt_blas_scalar_get(&job->alpha, 0, alpha);
	for (int64_t j = 0; j < n; j++) {
		int64_t from = job->uplo == CKT_BLAS_LOWER ? j : 0,
			to = job->uplo == CKT_BLAS_LOWER ? n : j + 1;
		for (int64_t i = from; i < to; i++) {
			double xi[2], yj[2], xj[2], yi[2], a[2], sum[2];
			ckt_blas_load(
				xi, CUDA_C_64F, xp + i * ix * (int64_t)size, job->A.type, 1, 1);
			ckt_blas_load(
				yj, CUDA_C_64F, yp + j * iy * (int64_t)size, job->A.type, 1, 1);
			sum[0] = xi[0] * yj[0] - xi[1] * yj[1];
			sum[1] = xi[0] * yj[1] + xi[1] * yj[0];
			if (twice) {
				ckt_blas_load(xj, CUDA_C_64F, xp + j * ix * (int64_t)size,
					job->A.type, 1, 1);
				ckt_blas_load(yi, CUDA_C_64F, yp + i * iy * (int64_t)size,
					job->A.type, 1, 1);
				sum[0] += yi[0] * xj[0] - yi[1] * xj[1];
				sum[1] += yi[0] * xj[1] + yi[1] * xj[0];
			}
			void *at = (char *)job->A.p + (i + j * job->A.ld) * (int64_t)size;
			ckt_blas_load(a, CUDA_C_64F, at, job->A.type, 1, 1);
			a[0] += alpha[0] * sum[0] - alpha[1] * sum[1];
			a[1] += alpha[0] * sum[1] + alpha[1] * sum[0];
			ckt_blas_store(at, job->A.type, 1, a, CUDA_C_64F, 1);
		}
	}
}

int ckt_blas_syr(const struct ckt_blas_job *job)
{
	struct ckt_blas_factor alpha = ckt_blas_factor(&job->alpha, 0);
	enum CBLAS_UPLO uplo = ckt_blas_uplo(job->uplo);
	int n = (int)job->n, incx = (int)job->x.ld, lda = (int)job->A.ld;
	if (ckt_blas_type_complex(job->A.type) && !job->hermitian) {
		symmetric_update(job, false);
		return 0;
	}
	ckt_blas_enter();
	switch (job->A.type) {
	case CUDA_R_32F:
		cblas_ssyr(CblasColMajor, uplo, n, alpha.f[0], job->x.p, incx, job->A.p, lda);
		break;
	case CUDA_R_64F:
		cblas_dsyr(CblasColMajor, uplo, n, alpha.d[0], job->x.p, incx, job->A.p, lda);
		break;
	case CUDA_C_32F:
		cblas_cher(CblasColMajor, uplo, n, alpha.f[0], job->x.p, incx, job->A.p, lda);
		break;
	default:
		cblas_zher(CblasColMajor, uplo, n, alpha.d[0], job->x.p, incx, job->A.p, lda);
	}
	ckt_blas_leave();
	return 0;
}

int ckt_blas_spr(const struct ckt_blas_job *job)
{
	struct ckt_blas_factor alpha = ckt_blas_factor(&job->alpha, 0);
	enum CBLAS_UPLO uplo = ckt_blas_uplo(job->uplo);
	int n = (int)job->n, incx = (int)job->x.ld;
	ckt_blas_enter();
	switch (job->A.type) {
	case CUDA_R_32F:
		cblas_sspr(CblasColMajor, uplo, n, alpha.f[0], job->x.p, incx, job->A.p);
		break;
	case CUDA_R_64F:
		cblas_dspr(CblasColMajor, uplo, n, alpha.d[0], job->x.p, incx, job->A.p);
		break;
	case CUDA_C_32F:
		cblas_chpr(CblasColMajor, uplo, n, alpha.f[0], job->x.p, incx, job->A.p);
		break;
	default:
		cblas_zhpr(CblasColMajor, uplo, n, alpha.d[0], job->x.p, incx, job->A.p);
	}
	ckt_blas_leave();
	return 0;
}

int ckt_blas_syr2(const struct ckt_blas_job *job)
{
	struct ckt_blas_factor alpha = ckt_blas_factor(&job->alpha, 0);
	if (ckt_blas_type_complex(job->A.type) && !job->hermitian) {
		symmetric_update(job, true);
		return 0;
	}
	ckt_blas_enter();
	CKT_BLAS_ONE(job->A.type, ssyr2, dsyr2, cher2, zher2,
		(CblasColMajor, ckt_blas_uplo(job->uplo), (int)job->n), alpha,
		(job->x.p, (int)job->x.ld, job->y.p, (int)job->y.ld, job->A.p, (int)job->A.ld))
	ckt_blas_leave();
	return 0;
}

int ckt_blas_spr2(const struct ckt_blas_job *job)
{
	struct ckt_blas_factor alpha = ckt_blas_factor(&job->alpha, 0);
	ckt_blas_enter();
	CKT_BLAS_ONE(job->A.type, sspr2, dspr2, chpr2, zhpr2,
		(CblasColMajor, ckt_blas_uplo(job->uplo), (int)job->n), alpha,
		(job->x.p, (int)job->x.ld, job->y.p, (int)job->y.ld, job->A.p))
	ckt_blas_leave();
	return 0;
}
