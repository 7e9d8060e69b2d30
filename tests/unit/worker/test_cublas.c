/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server/worker/libs/cublas/cublas.c: handles of cuBLAS, made and set, on a double of the genuine
 * library (tests/unit/libs/double_cublas.h).
 */
#include "server/worker/libs/cublas/cublas.h"
#include "server/worker/libs/state.h"
#include "server/worker/objects/context.h"
#include "server/worker/objects/stream.h"

#include <stdlib.h>

#include "tests/unit/libs/double_cublas.h"
#include "tests/unit/worker/inside.h"

#define RUN(NAME, name, batched, ...)                                                              \
	({                                                                                         \
		struct ckt_##name##_args args_ = {__VA_ARGS__};                                    \
		size_t size_ = ckt_##name##_args_size(&args_);                                     \
		uint8_t *bytes_ = malloc(size_);                                                   \
		ckt_##name##_args_put(bytes_, &args_);                                             \
		struct inside_reply *reply_ = inside_run(ckt_lib_prog(CKT_LIB_CUBLAS),             \
			CKT_CUBLAS_PROC_##NAME, &ckt_cublas_procs[CKT_CUBLAS_PROC_##NAME], bytes_, \
			size_, batched);                                                           \
		free(bytes_);                                                                      \
		reply_;                                                                            \
	})

static void test_handle(void)
{
	struct ckt_cublasCreate_v2_res res;
	uint64_t id = ID(LIB_OBJECT, 60);
	double_basics();
	double_cublas.math_mode = 3;
	struct inside_reply *reply = RUN(CUBLASCREATE_V2, cublasCreate_v2, false, .handle = id);
	MUST(reply->result, CUDA_SUCCESS);
	MUST(ckt_cublasCreate_v2_res_get(&reply->results, &res), true);
	IS(res.status, 0);
	IS(res.math_mode, 3);
	struct ckt_object *object =
		ckt_library_object_find(&ckt_worker, CKT_LIB_CUBLAS, CKT_CUBLAS_TYPE_HANDLE, id);
	MUST(object != NULL, true);
	YES(object->real == double_handle());
	/* An id that is taken: the genuine handle does not stay. */
	IS(RUN(CUBLASCREATE_V2, cublasCreate_v2, false, .handle = id)->result,
		CUDA_ERROR_INVALID_VALUE);
	IS(double_cublas.created - double_cublas.destroyed, 1);
	/* What did not change is not told. */
	unsigned calls = double_cublas.calls;
	IS(RUN(CUBLAS_SET, cublas_set, true, .handle = id, .math_mode = 3)->result, CUDA_SUCCESS);
	IS(double_cublas.calls, calls);
	IS(RUN(CUBLAS_SET, cublas_set, true, .handle = id, .math_mode = 2, .sm_count_target = 7)
			->result,
		CUDA_SUCCESS);
	IS(double_cublas.calls, calls + 2);
	IS(double_cublas.math_mode, 2);
	IS(double_cublas.sm_count_target, 7);
	ckt_worker_cublas_use_pointer_mode(object, 1);
	ckt_worker_cublas_use_pointer_mode(object, 1);
	IS(double_cublas.calls, calls + 3);
	IS(double_cublas.pointer_mode, CUBLAS_POINTER_MODE_DEVICE);
	IS(RUN(CUBLASDESTROY_V2, cublasDestroy_v2, true, .handle = id)->result, CUDA_SUCCESS);
	IS(double_cublas.destroyed, double_cublas.created);
	YES(ckt_library_object_find(&ckt_worker, CKT_LIB_CUBLAS, CKT_CUBLAS_TYPE_HANDLE, id) ==
		NULL);
	/* Again: it went with its context, as far as the program knows. */
	IS(RUN(CUBLASDESTROY_V2, cublasDestroy_v2, true, .handle = id)->result, CUDA_SUCCESS);
	IS(RUN(CUBLAS_SET, cublas_set, true, .handle = id)->result, CUDA_ERROR_INVALID_HANDLE);
}

static void test_streams(void)
{
	uint64_t id = ID(LIB_OBJECT, 61), stream = ID(STREAM, 61);
	double_basics();
	MUST(ckt_worker_stream_make(&ckt_worker, stream, 0, 0), CUDA_SUCCESS);
	MUST(RUN(CUBLASCREATE_V2, cublasCreate_v2, false, .handle = id)->result, CUDA_SUCCESS);
	struct ckt_object *object =
		ckt_library_object_find(&ckt_worker, CKT_LIB_CUBLAS, CKT_CUBLAS_TYPE_HANDLE, id);
	IS(RUN(CUBLAS_SET, cublas_set, true, .handle = id, .stream = stream, .workspace = 0x1000,
		   .workspace_bytes = 512)
			->result,
		CUDA_SUCCESS);
	cudaStream_t real = double_cublas.stream;
	YES(real == ckt_objects_find(&ckt_worker.objects, stream)->real);
	IS(object->library->stream, stream);
	YES(double_cublas.workspace == (void *)0x1000);
	IS(double_cublas.workspace_bytes, 512);
	/* For a capture, and back: the workspace comes along. */
	IS(ckt_library_cublas.use_stream(&ckt_worker, object, (CUstream)0x5550), 0);
	YES(double_cublas.stream == (cudaStream_t)0x5550);
	YES(double_cublas.workspace == (void *)0x1000);
	IS(ckt_library_cublas.use_stream(&ckt_worker, object, (CUstream)-1), 0);
	YES(double_cublas.stream == real);
	/* Back to the default stream, and to no workspace. */
	IS(RUN(CUBLAS_SET, cublas_set, true, .handle = id)->result, CUDA_SUCCESS);
	YES(double_cublas.stream != real && double_cublas.workspace == NULL);
	IS(RUN(CUBLAS_SET, cublas_set, true, .handle = id, .stream = stream + 1)->result,
		CUDA_ERROR_INVALID_HANDLE);
	IS(RUN(CUBLASDESTROY_V2, cublasDestroy_v2, true, .handle = id)->result, CUDA_SUCCESS);
	ckt_object_destroy(&ckt_worker, ckt_objects_find(&ckt_worker.objects, stream));
}

/*
 * A program may end a stream that a handle is still set to.  A restore sets the handle again all
 * the same, and a call on it fails as it did before.
 */
static void test_stream_has_ended(void)
{
	uint64_t id = ID(LIB_OBJECT, 62), gone = ID(STREAM, 62);
	struct ckt_lib_replay how = {0};
	double_basics();
	MUST(RUN(CUBLASCREATE_V2, cublasCreate_v2, false, .handle = id)->result, CUDA_SUCCESS);
	struct ckt_object *object =
		ckt_library_object_find(&ckt_worker, CKT_LIB_CUBLAS, CKT_CUBLAS_TYPE_HANDLE, id);
	CUstream stream;
	ckt_worker_lib_replay_set(&how);
	IS(RUN(CUBLAS_SET, cublas_set, true, .handle = id, .stream = gone, .math_mode = 2)->result,
		CUDA_SUCCESS);
	ckt_worker_lib_replay_set(NULL);
	IS(double_cublas.math_mode, 2);
	YES(double_cublas.stream == NULL);
	IS(ckt_object_stream(&ckt_worker, object->library->stream, &stream),
		CUDA_ERROR_INVALID_HANDLE);
	IS(RUN(CUBLASDESTROY_V2, cublasDestroy_v2, true, .handle = id)->result, CUDA_SUCCESS);
}

static void test_cut(void)
{
	uint8_t bytes[256] = {0};
	for (unsigned number = 1; number < ckt_cublas_proc_count; number++) {
		const struct ckt_proc *proc = &ckt_cublas_procs[number];
		if (proc->name)
			IS(inside_run(ckt_lib_prog(CKT_LIB_CUBLAS), number, proc, bytes, 3, false)
					->result,
				INSIDE_GARBAGE);
	}
}

UNIT_SUITE(cublas, {"handle", test_handle}, {"streams", test_streams},
	{"a stream has ended", test_stream_has_ended}, {"cut off", test_cut})
