/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What cuBLAS and cuBLASLt answer to calls that are wrong, or at the edge of it: a line a call with its status and what the next wait says.
 * Natively and through Cricket the text is to be the same.
 *
 * Some of them kill the genuine library (it follows a pointer that is NULL) or the context.  These are left out: LEFT_OUT_CALLS names a file that lists
 * them, a line a call.  Where LEFT_OUT_WRITE is set, as natively, a call that kills is added to the file and the program begins anew; all that was
 * printed is forgotten.
 */
#include <cublasLt.h>
#include <cublasXt.h>
#include <signal.h>

#include "common.h"

enum { LEFT_OUT_MAX = 64, CALL_BYTES = 256 };
static char left_out[LEFT_OUT_MAX][CALL_BYTES];
static int left_out_count;
static const char *left_out_file;
static const char *current = "";
static bool writes_left_out;

static void read_left_out()
{
	left_out_file = getenv("LEFT_OUT_CALLS");
	writes_left_out = left_out_file && getenv("LEFT_OUT_WRITE");
	FILE *file = left_out_file ? fopen(left_out_file, "r") : NULL;
	while (file && left_out_count < LEFT_OUT_MAX && fgets(left_out[left_out_count], CALL_BYTES, file)) {
		left_out[left_out_count][strcspn(left_out[left_out_count], "\n")] = 0;
		left_out_count++;
	}
	if (file)
		fclose(file);
}

/* Adds the call that is running to the list and begins anew; also in a signal handler. */
static void leave_out(int)
{
	char line[CALL_BYTES];
	size_t length = strnlen(current, CALL_BYTES - 2);
	int file = open(left_out_file, O_WRONLY | O_APPEND | O_CREAT, 0644);

	memcpy(line, current, length);
	line[length] = '\n';
	/* A list that is full, or cannot be written, would never end. */
	if (!length || left_out_count == LEFT_OUT_MAX || file < 0 || write(file, line, length + 1) != (ssize_t)length + 1)
		_exit(1);
	close(file);
	execl("/proc/self/exe", "blas_statuses", (char *)NULL);
	_exit(1);
}

/* Whether the call is to be made. */
static bool begins(const char *what)
{
	for (int i = 0; i < left_out_count; i++)
		if (!strncmp(left_out[i], what, CALL_BYTES - 2))
			return false;
	current = what;
	return true;
}

static cublasHandle_t handle;
static cublasLtHandle_t light;
static float *d;			/* 64 x 64 of zeros; scalars on the host */
static double *dd;
static cuComplex *dc;
static void **list;			/* eight matrices of d */
static int *pivots;
static const float one = 1, zero = 0;
static const double done = 1;
static const cuComplex cone = {1, 0};
static float result;
static int info;

static void say(const char *what, int status)
{
	cudaError_t later = cudaDeviceSynchronize();

	if (later && writes_left_out)
		leave_out(0);
	printf("status %-64s %2d %d\n", what, status, (int)later);
	cudaGetLastError();
}

#define SAY(call)                                                                                                                \
	do {                                                                                                                     \
		if (begins(#call))                                                                                               \
			say(#call, (int)(call));                                                                                 \
	} while (0)
#define N CUBLAS_OP_N
#define T CUBLAS_OP_T
#define C CUBLAS_OP_C
#define L CUBLAS_FILL_MODE_LOWER
#define LEFT CUBLAS_SIDE_LEFT
#define RIGHT CUBLAS_SIDE_RIGHT
#define NU CUBLAS_DIAG_NON_UNIT
#define BAD_OP ((cublasOperation_t)7)
#define BAD_FILL ((cublasFillMode_t)9)

static void handles()
{
	int value;

	SAY(cublasCreate(NULL));
	SAY(cublasDestroy(NULL));
	SAY(cublasGetVersion(handle, NULL));
	SAY(cublasSetPointerMode(handle, (cublasPointerMode_t)2));
	SAY(cublasSetAtomicsMode(handle, (cublasAtomicsMode_t)2));
	SAY(cublasSetMathMode(handle, (cublasMath_t)5));
	SAY(cublasSetMathMode(handle, (cublasMath_t)32));
	SAY(cublasSetMathMode(handle, CUBLAS_DEFAULT_MATH));
	SAY(cublasSetSmCountTarget(handle, -1));
	SAY(cublasSetSmCountTarget(handle, 100000));
	SAY(cublasSetSmCountTarget(handle, 0));
	SAY(cublasSetWorkspace(handle, (char *)d + 16, 4096));
	SAY(cublasSetWorkspace(handle, NULL, 4096));
	SAY(cublasSetWorkspace(handle, NULL, 0));
	SAY(cublasGetMathMode(handle, NULL));
	SAY(cublasGetSmCountTarget(handle, NULL));
	SAY(cublasGetProperty((libraryPropertyType)3, &value));
	SAY(cublasSetVector(4, 0, &one, 1, d, 1));
	SAY(cublasSetVector(-1, 4, &one, 1, d, 1));
	SAY(cublasSetVector(1, 4, &one, 0, d, 1));
	SAY(cublasSetMatrix(4, 4, 4, &one, 3, d, 4));
	SAY(cublasSetMatrix(0, 4, 4, &one, 1, d, 1));
	SAY(cublasLoggerConfigure(0, 0, 0, NULL));
}

static void level1()
{
	SAY(cublasSdot(handle, 4, d, 1, d, 1, NULL));
	SAY(cublasSdot(handle, -1, d, 1, d, 1, &result));
	SAY(cublasSdot(handle, 4, d, 0, d, 1, &result));
	SAY(cublasSdot(NULL, 4, d, 1, d, 1, &result));
	SAY(cublasSnrm2(handle, 0, d, 1, &result));
	SAY(cublasSnrm2(handle, 4, d, 0, &result));
	SAY(cublasIsamax(handle, 0, d, 1, &info));
	SAY(cublasSaxpy(handle, 4, NULL, d, 1, d, 1));
	SAY(cublasSaxpy(handle, -4, &one, d, 1, d, 1));
	SAY(cublasSscal(handle, 4, &one, d, 0));
	SAY(cublasScopy(handle, 4, d, 0, d, 1));
	SAY(cublasScopy(handle, -4, d, 1, d, 1));
	SAY(cublasSrot(handle, 4, d, 1, d, 1, &one, NULL));
	SAY(cublasSrotg(handle, NULL, &result, &result, &result));
	SAY(cublasDotEx(handle, 4, d, CUDA_R_32F, 1, d, CUDA_R_64F, 1, &result, CUDA_R_32F, CUDA_R_32F));
	SAY(cublasScalEx(handle, 4, &one, CUDA_R_32F, d, CUDA_R_8I, 1, CUDA_R_32F));
}

static void level2()
{
	SAY(cublasSgemv(handle, N, 4, 4, &one, d, 3, d, 1, &one, d, 1));
	SAY(cublasSgemv(handle, N, 4, 4, &one, d, 4, d, 0, &one, d, 1));
	SAY(cublasSgemv(handle, BAD_OP, 4, 4, &one, d, 4, d, 1, &one, d, 1));
	SAY(cublasSgemv(handle, N, -1, 4, &one, d, 4, d, 1, &one, d, 1));
	SAY(cublasSgemv(handle, N, 0, 4, &one, d, 1, d, 1, &one, d, 1));
	SAY(cublasSgemv(handle, N, 0, 4, &one, d, 0, d, 1, &one, d, 1));
	SAY(cublasSgbmv(handle, N, 4, 4, 1, 1, &one, d, 2, d, 1, &one, d, 1));
	SAY(cublasSgbmv(handle, N, 4, 4, -1, 1, &one, d, 4, d, 1, &one, d, 1));
	SAY(cublasSger(handle, 4, 4, &one, d, 1, d, 1, d, 3));
	SAY(cublasSger(handle, 4, 4, &one, d, 0, d, 1, d, 4));
	SAY(cublasStrmv(handle, L, N, NU, 4, d, 3, d, 1));
	SAY(cublasStrmv(handle, BAD_FILL, N, NU, 4, d, 4, d, 1));
	SAY(cublasStrmv(handle, CUBLAS_FILL_MODE_FULL, N, NU, 4, d, 4, d, 1));
	SAY(cublasStrsv(handle, L, N, (cublasDiagType_t)2, 4, d, 4, d, 1));
	SAY(cublasStrsv(handle, L, N, NU, 4, d, 4, d, 0));
	SAY(cublasStbmv(handle, L, N, NU, 4, 2, d, 2, d, 1));
	SAY(cublasStbmv(handle, L, N, NU, 4, -1, d, 2, d, 1));
	SAY(cublasStpmv(handle, L, N, NU, 4, d, d, 0));
	SAY(cublasSsymv(handle, L, 4, &one, d, 3, d, 1, &one, d, 1));
	SAY(cublasSsbmv(handle, L, 4, 2, &one, d, 2, d, 1, &one, d, 1));
	SAY(cublasSspmv(handle, L, 4, &one, d, d, 1, &one, d, 0));
	SAY(cublasSsyr(handle, L, 4, &one, d, 1, d, 3));
	SAY(cublasSsyr2(handle, L, 4, &one, d, 1, d, 0, d, 4));
	SAY(cublasSspr(handle, L, 4, &one, d, 0, d));
	SAY(cublasChemv(handle, L, 4, &cone, dc, 3, dc, 1, &cone, dc, 1));
}

static void level3()
{
	SAY(cublasSgemm(NULL, N, N, 4, 4, 4, &one, d, 4, d, 4, &one, d, 4));
	SAY(cublasSgemm(handle, BAD_OP, N, 4, 4, 4, &one, d, 4, d, 4, &one, d, 4));
	SAY(cublasSgemm(handle, N, N, -1, 4, 4, &one, d, 4, d, 4, &one, d, 4));
	SAY(cublasSgemm(handle, N, N, 4, 4, 4, &one, d, 3, d, 4, &one, d, 4));
	SAY(cublasSgemm(handle, T, N, 4, 4, 5, &one, d, 4, d, 5, &one, d, 4));
	SAY(cublasSgemm(handle, N, N, 4, 4, 5, &one, d, 4, d, 4, &one, d, 4));
	SAY(cublasSgemm(handle, N, T, 4, 5, 4, &one, d, 4, d, 4, &one, d, 4));
	SAY(cublasSgemm(handle, N, N, 4, 4, 4, &one, d, 4, d, 4, &one, d, 3));
	SAY(cublasSgemm(handle, N, N, 4, 4, 4, NULL, d, 4, d, 4, &one, d, 4));
	SAY(cublasSgemm(handle, N, N, 4, 4, 4, &one, d, 4, d, 4, NULL, d, 4));
	SAY(cublasSgemm(handle, N, N, 0, 4, 4, &one, d, 1, d, 4, &one, d, 1));
	SAY(cublasSgemm(handle, N, N, 0, 4, 4, &one, d, 0, d, 4, &one, d, 0));
	SAY(cublasSgemm(handle, N, N, 4, 4, 0, &one, d, 4, d, 1, &one, d, 4));
	SAY(cublasSgemm(handle, N, N, 4, 4, 0, &one, d, 4, d, 0, &one, d, 4));
	SAY(cublasSgemm(handle, N, N, 0, 4, 4, NULL, d, 1, d, 4, &one, d, 1));
	SAY(cublasSgemm(handle, N, N, 4, 4, 4, &zero, NULL, 4, NULL, 4, &one, d, 4));
	SAY(cublasCgemm3m(handle, N, N, 4, 4, 4, &cone, dc, 3, dc, 4, &cone, dc, 4));
	SAY(cublasSsyrk(handle, L, N, 4, 5, &one, d, 3, &one, d, 4));
	SAY(cublasSsyrk(handle, L, T, 4, 5, &one, d, 4, &one, d, 4));
	SAY(cublasSsyrk(handle, L, N, 4, 5, &one, d, 4, &one, d, 3));
	SAY(cublasSsyrk(handle, CUBLAS_FILL_MODE_FULL, N, 4, 5, &one, d, 4, &one, d, 4));
	SAY(cublasCsyrk(handle, L, C, 4, 4, &cone, dc, 4, &cone, dc, 4));
	SAY(cublasCherk(handle, L, T, 4, 4, &one, dc, 4, &one, dc, 4));
	SAY(cublasSsyr2k(handle, L, N, 4, 5, &one, d, 4, d, 3, &one, d, 4));
	SAY(cublasSsyrkx(handle, L, N, 4, 5, &one, d, 4, d, 3, &one, d, 4));
	SAY(cublasSsymm(handle, LEFT, L, 4, 3, &one, d, 3, d, 4, &one, d, 4));
	SAY(cublasSsymm(handle, RIGHT, L, 4, 5, &one, d, 4, d, 4, &one, d, 4));
	SAY(cublasSsymm(handle, LEFT, L, 4, 3, &one, d, 4, d, 3, &one, d, 4));
	SAY(cublasSsymm(handle, (cublasSideMode_t)2, L, 4, 3, &one, d, 4, d, 4, &one, d, 4));
	SAY(cublasStrsm(handle, LEFT, L, N, NU, 4, 4, &one, d, 3, d, 4));
	SAY(cublasStrsm(handle, LEFT, L, N, NU, 4, 4, &one, d, 4, d, 3));
	SAY(cublasStrsm(handle, LEFT, L, N, NU, 0, 4, &one, d, 1, d, 1));
	SAY(cublasStrmm(handle, RIGHT, L, N, NU, 4, 5, &one, d, 4, d, 4, d, 4));
	SAY(cublasStrmm(handle, RIGHT, L, N, NU, 4, 5, &one, d, 5, d, 4, d, 3));
	SAY(cublasSgeam(handle, N, N, 4, 4, &one, d, 3, &one, d, 4, d, 4));
	SAY(cublasSgeam(handle, T, N, 4, 5, &one, d, 4, &one, d, 4, d + 64, 4));
	SAY(cublasSdgmm(handle, LEFT, 4, 4, d, 3, d, 1, d, 4));
	SAY(cublasSdgmm(handle, LEFT, 4, 4, d, 4, d, 0, d, 4));
	SAY(cublasDgemm(handle, N, N, 4, 4, 4, &done, dd, 4, dd, 4, &done, NULL, 4));
}

static void batched()
{
	float **a = (float **)list;

	SAY(cublasSgemmBatched(handle, N, N, 4, 4, 4, &one, a, 4, a, 4, &one, a, 4, -1));
	SAY(cublasSgemmBatched(handle, N, N, 4, 4, 4, &one, a, 4, a, 4, &one, a, 4, 0));
	SAY(cublasSgemmBatched(handle, N, N, 4, 4, 4, &one, a, 3, a, 4, &one, a, 4, 1));
	SAY(cublasSgemmStridedBatched(handle, N, N, 4, 4, 4, &one, d, 4, 16, d, 4, 16, &one, d, 3, 16, 2));
	SAY(cublasSgemmStridedBatched(handle, N, N, 4, 4, 4, &one, d, 4, 16, d, 4, 16, &one, d, 4, 16, -2));
	SAY(cublasSgemvBatched(handle, N, 4, 4, &one, a, 3, a, 1, &one, a, 1, 1));
	SAY(cublasStrsmBatched(handle, LEFT, L, N, NU, 4, 4, &one, a, 3, a, 4, 1));
	SAY(cublasSgetrfBatched(handle, -1, a, 4, pivots, pivots, 1));
	SAY(cublasSgetrfBatched(handle, 4, a, 3, pivots, pivots, 1));
	SAY(cublasSgetrfBatched(handle, 4, a, 4, pivots, pivots, -1));
	SAY(cublasSgetriBatched(handle, 4, a, 3, pivots, a, 4, pivots, 1));
	SAY(cublasSmatinvBatched(handle, 33, a, 33, a, 33, pivots, 1));
	SAY(cublasSmatinvBatched(handle, 4, a, 3, a, 4, pivots, 1));
	info = 77;
	SAY(cublasSgetrsBatched(handle, N, -1, 1, a, 4, pivots, a, 4, &info, 1));
	say("info of it", info);
	info = 77;
	SAY(cublasSgetrsBatched(handle, N, 4, 1, a, 3, pivots, a, 4, &info, 1));
	say("info of it", info);
	info = 77;
	SAY(cublasSgeqrfBatched(handle, 4, 4, a, 3, a, &info, 1));
	say("info of it", info);
	info = 77;
	SAY(cublasSgelsBatched(handle, T, 4, 4, 1, a, 4, a, 4, &info, pivots, 1));
	say("info of it", info);
	SAY(cublasStpttr(handle, L, 4, d, d, 3));
	SAY(cublasGemmEx(handle, N, N, 4, 4, 4, &one, d, CUDA_R_16F, 4, d, CUDA_R_32F, 4, &one, d, CUDA_R_32F, 4, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT));
	SAY(cublasGemmEx(handle, N, N, 4, 4, 4, &one, d, CUDA_R_32F, 4, d, CUDA_R_32F, 4, &one, d, CUDA_R_64F, 4, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT));
	SAY(cublasGemmEx(handle, N, N, 4, 4, 4, &one, d, CUDA_R_32F, 4, d, CUDA_R_32F, 4, &one, d, CUDA_R_32F, 4, CUBLAS_COMPUTE_16F, CUBLAS_GEMM_DEFAULT));
	SAY(cublasGemmEx(handle, N, N, 4, 4, 4, &one, d, CUDA_R_32F, 4, d, CUDA_R_32F, 4, &one, d, CUDA_R_32F, 4, CUBLAS_COMPUTE_32F, (cublasGemmAlgo_t)50));
	SAY(cublasGemmEx(handle, N, N, 4, 4, 4, &one, d, CUDA_R_32F, 3, d, CUDA_R_32F, 4, &one, d, CUDA_R_32F, 4, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT));
}

static void xt()
{
	cublasXtHandle_t x;
	int none = 0, bad = 1000, device = 0;
	float host[16] = {0};

	SAY(cublasXtCreate(&x));
	SAY(cublasXtGetBlockDim(x, &none));
	say("block of a new handle", none);
	SAY(cublasXtSgemm(x, N, N, 2, 2, 2, &one, host, 2, host, 2, &one, host, 2));
	SAY(cublasXtDeviceSelect(x, 0, &none));
	SAY(cublasXtDeviceSelect(x, 1, &bad));
	SAY(cublasXtDeviceSelect(x, 1, &device));
	SAY(cublasXtSetBlockDim(x, 0));
	SAY(cublasXtSetPinningMemMode(x, (cublasXtPinnedMemMode_t)2));
	SAY(cublasXtSetCpuRoutine(x, CUBLASXT_TRMM, CUBLASXT_FLOAT, NULL));
	SAY(cublasXtSetCpuRatio(x, CUBLASXT_HERK, CUBLASXT_FLOAT, 0.5f));
	SAY(cublasXtSetCpuRatio(x, CUBLASXT_GEMM, CUBLASXT_FLOAT, 2));
	SAY(cublasXtSgemm(x, N, N, 2, 2, 2, &one, host, 1, host, 2, &one, host, 2));
	SAY(cublasXtSgemm(x, BAD_OP, N, 2, 2, 2, &one, host, 2, host, 2, &one, host, 2));
	SAY(cublasXtSgemm(x, N, N, 0, 2, 2, &one, host, 1, host, 2, &one, host, 1));
	SAY(cublasXtSgemm(x, N, N, 2, 2, 2, &one, host, 2, host, 2, &one, host, 2));
	SAY(cublasXtDestroy(x));
	SAY(cublasXtDestroy(NULL));
}

/* D = A B, of 16 x 16 floats where nothing else is said. */
static int multiply(int rows_of_b, int epilogue, const void *aux, int64_t aux_ld, const float *c, const float *beta, int ld)
{
	cublasLtMatmulDesc_t op;
	cublasLtMatrixLayout_t a, b, e;

	cublasLtMatmulDescCreate(&op, CUBLAS_COMPUTE_32F, CUDA_R_32F);
	cublasLtMatrixLayoutCreate(&a, CUDA_R_32F, 16, 16, ld);
	cublasLtMatrixLayoutCreate(&b, CUDA_R_32F, rows_of_b, 16, rows_of_b);
	cublasLtMatrixLayoutCreate(&e, CUDA_R_32F, 16, 16, 16);
	cublasLtMatmulDescSetAttribute(op, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof epilogue);
	if (aux) {
		cublasLtMatmulDescSetAttribute(op, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, &aux, sizeof aux);
		cublasLtMatmulDescSetAttribute(op, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, &aux_ld, sizeof aux_ld);
	}
	int status = (int)cublasLtMatmul(light, op, &one, d, a, d, b, beta, c, e, d + 1024, e, NULL, NULL, 0, 0);
	cublasLtMatrixLayoutDestroy(e);
	cublasLtMatrixLayoutDestroy(b);
	cublasLtMatrixLayoutDestroy(a);
	cublasLtMatmulDescDestroy(op);
	return status;
}

static void lt()
{
	SAY(multiply(16, CUBLASLT_EPILOGUE_DEFAULT, NULL, 0, d + 1024, &zero, 16));
	SAY(multiply(15, CUBLASLT_EPILOGUE_DEFAULT, NULL, 0, d + 1024, &zero, 16));
	SAY(multiply(16, CUBLASLT_EPILOGUE_DEFAULT, NULL, 0, d + 1024, &zero, 15));
	SAY(multiply(16, CUBLASLT_EPILOGUE_DEFAULT, NULL, 0, NULL, &zero, 16));
	SAY(multiply(16, CUBLASLT_EPILOGUE_DEFAULT, NULL, 0, NULL, &one, 16));
	SAY(multiply(16, CUBLASLT_EPILOGUE_DEFAULT, NULL, 0, d + 1024, NULL, 16));
	SAY(multiply(16, CUBLASLT_EPILOGUE_BIAS, NULL, 0, d + 1024, &zero, 16));
	SAY(multiply(16, CUBLASLT_EPILOGUE_GELU, d + 2048, 16, d + 1024, &zero, 16));
	SAY(multiply(16, CUBLASLT_EPILOGUE_GELU_AUX, d + 2048, 16, d + 1024, &zero, 16));
	SAY(multiply(16, CUBLASLT_EPILOGUE_GELU_AUX, d + 2048, 15, d + 1024, &zero, 16));
	SAY(multiply(16, CUBLASLT_EPILOGUE_GELU_AUX, NULL, 0, d + 1024, &zero, 16));
	SAY(multiply(16, 4711, NULL, 0, d + 1024, &zero, 16));
}

int main()
{
	void *matrices[8];

	static char printed[1 << 20];

	/* Nothing is printed before the end. */
	setvbuf(stdout, printed, _IOFBF, sizeof printed);
	read_left_out();
	if (writes_left_out) {
		struct sigaction action = {};
		action.sa_handler = leave_out;
		/* The program that begins anew inherits which signals are blocked. */
		action.sa_flags = SA_NODEFER;
		for (int which : {SIGSEGV, SIGBUS, SIGFPE, SIGABRT, SIGILL})
			sigaction(which, &action, NULL);
	}
	CHECK(cudaMalloc(&d, 64 * 64 * 4));
	CHECK(cudaMemset(d, 0, 64 * 64 * 4));
	CHECK(cudaMalloc(&pivots, 4096));
	CHECK(cudaMemset(pivots, 0, 4096));
	CHECK(cudaMalloc(&list, sizeof matrices));
	dd = (double *)d;
	dc = (cuComplex *)d;
	for (int i = 0; i < 8; i++)
		matrices[i] = d + 64 * i;
	CHECK(cudaMemcpy(list, matrices, sizeof matrices, cudaMemcpyHostToDevice));
	if (cublasCreate(&handle) || cublasLtCreate(&light))
		return 1;
	handles();
	level1();
	level2();
	level3();
	batched();
	xt();
	phase();
	lt();
	cublasLtDestroy(light);
	cublasDestroy(handle);
	return 0;
}
