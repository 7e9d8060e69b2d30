/*
 * What the two libcuda.so.1 have in common: client/cuda, which sends what it is asked, and softgpu,
 * which does it.  Everything in cudacommon/ is compiled into each of them: graphs, stream capture,
 * the rules of the memory that graphs allocate, what JIT options, memory operations and hints about
 * managed memory are right; none of which needs a GPU to be decided. Below stands what the library
 * at hand brings to that; each function is written once in client/cuda/context/common_hooks.c or a
 * file beside it, and once in softgpu/context/common_hooks.c.
 *
 * Objects are known by number: CUDA's handle as an integer.  Functions return a CUresult, write
 * outputs only on success, and may be called from any thread; "locked" means ckt_graph_lock
 * (graph.h).
 */
#pragma once

#pragma GCC visibility push(default)
#include <cuda.h>
#pragma GCC visibility pop
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bounds.h"
#include "cudacommon/object.h"
#include "rpc/not_supported.h"

#define CKT_EXPORT __attribute__((visibility("default")))

struct ckt_exec;
struct ckt_graph;
struct ckt_kernel_spec;
struct ckt_node;

/* Says once that something is not supported; CUDA_ERROR_NOT_SUPPORTED. */
CUresult ckt_cudacommon_unsupported(const char *what, bool *once);
#define CKT_CUDACOMMON_UNSUPPORTED(what)                  \
	({                                                \
		static bool once_;                        \
		ckt_cudacommon_unsupported(what, &once_); \
	})
/* CUDA itself does not support it, with any driver; nothing is said. */
#define CKT_AS_CUDA_NOT_SUPPORTED CUDA_ERROR_NOT_SUPPORTED
/* CUDA_ERROR_NOT_INITIALIZED before cuInit. */
CUresult ckt_cudacommon_initialized(void);
/* Whether that is a device of this process. */
CUresult ckt_cudacommon_device(CUdevice device);
/* The thread's current context, looked at. */
CUresult ckt_cudacommon_context(uint64_t *ret_context);
/* The one that calls go to, not looked at; 0 where there is none. */
uint64_t ckt_cudacommon_context_now(void);
/* A context by its handle; CUDA_ERROR_INVALID_VALUE where it is none. */
CUresult ckt_cudacommon_context_check(CUcontext handle);
CUresult ckt_cudacommon_event_check(CUevent handle);
/* CUevent_flags that it was made with; CUDA_ERROR_INVALID_HANDLE where it is none. */
CUresult ckt_cudacommon_event_flags(CUevent handle, unsigned *ret_flags);
/*
 * 0 and 1 stay, they mean the legacy default stream; the thread's own default stream gets its
 * number.
 */
CUresult ckt_stream_resolve(CUstream stream, uint64_t *ret_stream);
/* The stream of a batch: any but the legacy default one. */
static inline CUresult ckt_stream_check_batch(CUstream stream)
{
	uint64_t id;
	CUresult result = ckt_stream_resolve(stream, &id);
	return !result && id <= ckt_handle_id(CU_STREAM_LEGACY) ? CUDA_ERROR_INVALID_VALUE : result;
}
/* CUstream_flags that it was made with. */
unsigned ckt_stream_flags(uint64_t stream);
/*
 * What its kernels take of the stream where they become nodes: attributes other than a fresh
 * stream's.
 */
enum { CKT_STREAM_ATTRIBUTES_MAX = 4 };
unsigned ckt_stream_node_attributes(
	uint64_t stream, CUlaunchAttribute ret_attributes[CKT_STREAM_ATTRIBUTES_MAX]);

/* ---- Parameters of nodes */

/*
 * Finds the function of a kernel node and checks the launch for the current context: function,
 * param_count and param_bytes of the spec.
 */
CUresult ckt_cudacommon_kernel(struct ckt_kernel_spec *spec);
/* Precondition: i < spec->param_count. */
void ckt_cudacommon_kernel_param(
	const struct ckt_kernel_spec *spec, unsigned i, size_t *ret_offset, size_t *ret_size);
/* A kernel node has these parameters from now on. */
CUresult ckt_cudacommon_kernel_packed(const void *packed, size_t size);
/* Whether the function of a launch is a CUkernel. */
bool ckt_cudacommon_is_kernel(CUfunction handle);
/* Whether the device reaches the address by itself. */
bool ckt_cudacommon_on_device(uint64_t address);
/* Whether that is so of memory that the program has from the host's side. */
bool ckt_cudacommon_is_reached(uint64_t address);
/* Whether it is memory of CUDA's, or registered with it. */
bool ckt_cudacommon_is_known(uint64_t address);
/*
 * CUDA_ERROR_INVALID_HANDLE where it is no array, CUDA_ERROR_INVALID_VALUE where the box is not in
 * it.
 */
CUresult ckt_cudacommon_array_box(CUarray array, const size_t at[3], const size_t extent[3]);
/*
 * Whether all of it is memory that devices may use, of one allocation or of mappings side by side.
 */
bool ckt_cudacommon_is_memory(uint64_t address, uint64_t size);
/* Of an element of an array; 0 where there is none of that kind. */
unsigned ckt_cudacommon_element_bytes(CUarray_format format, unsigned channels);
/*
 * A copy between contexts that is not asynchronous comes behind what both have been given (before:
 * true, ahead of the copy), and ahead of what they will be given (false, behind it).
 */
CUresult ckt_copy_join(CUcontext dst_context, CUcontext src_context, bool before);

/*
 * The managed memory in which the address lies; CUDA_ERROR_INVALID_VALUE where it is none,
 * CUDA_ERROR_NOT_INITIALIZED before cuInit.
 */
CUresult ckt_cudacommon_managed(uint64_t address, uint64_t *ret_base, uint64_t *ret_size);

/* ---- Memory operations */

/* Whether one may write there, or wait for a value there: width bytes, aligned. */
CUresult ckt_cudacommon_memop_address(uint64_t address, unsigned width, bool waits);
/* Puts checked ones on a stream. */
CUresult ckt_memop_submit(uint64_t stream, const CUstreamBatchMemOpParams *ops, unsigned count);

/* ---- Executable graphs */

/* An empty one with room for what the library keeps of it (ckt_exec first), or NULL. */
struct ckt_exec *ckt_exec_new(void);
/*
 * Locked.  Its graph is there and has a number: makes what is launched.  stream: where to upload
 * it, if flags say so.
 */
CUresult ckt_exec_make(
	struct ckt_exec *exec, const struct ckt_graph *graph, uint64_t flags, uint64_t stream);
/* Locked, and before the exec's graph goes. */
CUresult ckt_exec_unmake(struct ckt_exec *exec);
/* Locked: its node is about to become what `to` is. */
CUresult ckt_exec_change_node(
	struct ckt_exec *exec, const struct ckt_node *node, const struct ckt_node *to);
CUresult ckt_exec_enable_node(struct ckt_exec *exec, const struct ckt_node *node, bool enabled);
/* Locked: it is about to become what the graph is, whose nodes stand in the order of its own. */
CUresult ckt_exec_update(struct ckt_exec *exec, const struct ckt_graph *graph,
	CUgraphExecUpdateResultInfo *ret_info);
/* Locked: its nodes have changed. */
void ckt_exec_look(struct ckt_exec *exec);
/*
 * Not locked: where it holds objects of the program, launches under way may use them, and are
 * waited for.
 */
void ckt_exec_settle_users(const struct ckt_exec *exec);
/* Not locked: it is about to be destroyed. */
void ckt_exec_settle(const struct ckt_exec *exec);
/* Not locked. */
CUresult ckt_exec_upload(struct ckt_exec *exec, uint64_t stream);
CUresult ckt_exec_launch(struct ckt_exec *exec, uint64_t stream);

/* ---- Library calls in graphs */

/* Locked: no graph stands for the call any more. */
void ckt_cudacommon_call_end(uint64_t id);

/* ---- Memory pools, by the number of their handle */

CUresult ckt_pool_make(uint64_t pool, CUdevice device, size_t max_bytes);
/* What was allocated from it outlives it. */
CUresult ckt_pool_unmake(uint64_t pool);
CUresult ckt_pool_trim(uint64_t pool, size_t keep_bytes);
CUresult ckt_pool_set(uint64_t pool, CUmemPool_attribute attribute, uint64_t value);
CUresult ckt_pool_get(uint64_t pool, CUmemPool_attribute attribute, uint64_t *ret_value);
CUresult ckt_pool_alloc(
	uint64_t pool, CUdevice device, size_t size, uint64_t stream, uint64_t *ret_address);
/* Also what was not allocated from any. */
CUresult ckt_pool_free(uint64_t address, uint64_t stream);

/* ---- Memory that graphs allocate */

CUresult ckt_cudacommon_graph_memory(
	CUdevice device, size_t size, uint64_t *ret_address, uint64_t *ret_granted);
/* Behind all launches so far; context: the one in which it was allocated. */
void ckt_cudacommon_graph_memory_free(uint64_t address, uint64_t context);
