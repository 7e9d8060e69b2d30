/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The common interface of the two libcuda.so.1: client/cuda, which sends calls to a worker, and
 * softgpu, which executes them.  Everything in cudacommon/ is compiled into both.  It covers
 * graphs, stream capture and the rules of graph memory.  It also checks JIT options, memory
 * operations and hints about managed memory.  None of this needs a GPU.
 *
 * Each library implements the functions below once: in client/cuda/context/common_hooks.c or a file
 * beside it, and in softgpu/context/common_hooks.c.
 *
 * Objects are named by number: CUDA's handle as an integer.  Functions return a CUresult, write
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

/* Logs once that something is not supported; CUDA_ERROR_NOT_SUPPORTED. */
CUresult ckt_cudacommon_unsupported(const char *what, bool *once);
#define CKT_CUDACOMMON_UNSUPPORTED(what)                  \
	({                                                \
		static bool once_;                        \
		ckt_cudacommon_unsupported(what, &once_); \
	})
/* CUDA itself does not support it with any driver; nothing is logged. */
#define CKT_AS_CUDA_NOT_SUPPORTED CUDA_ERROR_NOT_SUPPORTED
/* CUDA_ERROR_NOT_INITIALIZED before cuInit. */
CUresult ckt_cudacommon_initialized(void);
/* Whether the process has that device. */
CUresult ckt_cudacommon_device(CUdevice device);
/* The thread's current context, checked. */
CUresult ckt_cudacommon_context(uint64_t *ret_context);
/* The context that calls use, unchecked; 0 if there is none. */
uint64_t ckt_cudacommon_context_now(void);
/* A context by its handle; CUDA_ERROR_INVALID_VALUE for an invalid one. */
CUresult ckt_cudacommon_context_check(CUcontext handle);
CUresult ckt_cudacommon_event_check(CUevent handle);
/* The event's CUevent_flags; CUDA_ERROR_INVALID_HANDLE for an invalid handle. */
CUresult ckt_cudacommon_event_flags(CUevent handle, unsigned *ret_flags);
/*
 * Keeps 0 and 1, because they mean the legacy default stream; the thread's own default stream gets
 * its number.
 */
CUresult ckt_stream_resolve(CUstream stream, uint64_t *ret_stream);
/* The stream of a batch: any except the legacy default stream. */
static inline CUresult ckt_stream_check_batch(CUstream stream)
{
	uint64_t id;
	CUresult result = ckt_stream_resolve(stream, &id);
	return !result && id <= ckt_handle_id(CU_STREAM_LEGACY) ? CUDA_ERROR_INVALID_VALUE : result;
}
/* The stream's CUstream_flags. */
unsigned ckt_stream_flags(uint64_t stream);
/* The stream's attributes that differ from a new stream's; captured kernels keep them. */
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
/* Gives a kernel node these parameters. */
CUresult ckt_cudacommon_kernel_packed(const void *packed, size_t size);
/* Whether the function of a launch is a CUkernel. */
bool ckt_cudacommon_is_kernel(CUfunction handle);
/* Whether the device can access the address directly. */
bool ckt_cudacommon_on_device(uint64_t address);
/* Like the previous function, for memory that the program accesses from the host. */
bool ckt_cudacommon_is_reached(uint64_t address);
/* Whether the memory belongs to CUDA or is registered with it. */
bool ckt_cudacommon_is_known(uint64_t address);
/*
 * CUDA_ERROR_INVALID_HANDLE for an invalid array, CUDA_ERROR_INVALID_VALUE if the box is outside
 * the array.
 */
CUresult ckt_cudacommon_array_box(CUarray array, const size_t at[3], const size_t extent[3]);
/* Whether devices may access the whole range: one allocation, or adjacent mappings. */
bool ckt_cudacommon_is_memory(uint64_t address, uint64_t size);
/* Bytes of an array's element; 0 if there is no such array. */
unsigned ckt_cudacommon_element_bytes(CUarray_format format, unsigned channels);
/*
 * A synchronous copy between contexts runs after all earlier work of both (before: true, ahead of
 * the copy), and before all later work (false, after it).
 */
CUresult ckt_copy_join(CUcontext dst_context, CUcontext src_context, bool before);

/*
 * The managed memory that contains the address; CUDA_ERROR_INVALID_VALUE if there is none,
 * CUDA_ERROR_NOT_INITIALIZED before cuInit.
 */
CUresult ckt_cudacommon_managed(uint64_t address, uint64_t *ret_base, uint64_t *ret_size);

/* ---- Memory operations */

/* Whether the program may write a value there, or wait for one: width bytes, aligned. */
CUresult ckt_cudacommon_memop_address(uint64_t address, unsigned width, bool waits);
/* Submits checked operations to a stream. */
CUresult ckt_memop_submit(uint64_t stream, const CUstreamBatchMemOpParams *ops, unsigned count);

/* ---- Executable graphs */

/* An empty executable graph with room for the library's own part (ckt_exec first), or NULL. */
struct ckt_exec *ckt_exec_new(void);
/*
 * Locked.  Makes the executable form of an exec with its graph and number.  stream: where to upload
 * it, if flags request that.
 */
CUresult ckt_exec_make(
	struct ckt_exec *exec, const struct ckt_graph *graph, uint64_t flags, uint64_t stream);
/* Locked.  Called before the exec's graph is freed. */
CUresult ckt_exec_unmake(struct ckt_exec *exec);
/* Locked.  Called before the node gets the parameters of `to`. */
CUresult ckt_exec_change_node(
	struct ckt_exec *exec, const struct ckt_node *node, const struct ckt_node *to);
CUresult ckt_exec_enable_node(struct ckt_exec *exec, const struct ckt_node *node, bool enabled);
/*
 * Locked.  Called before the exec is updated to the graph, whose nodes are sorted in the exec's
 * order.
 */
CUresult ckt_exec_update(struct ckt_exec *exec, const struct ckt_graph *graph,
	CUgraphExecUpdateResultInfo *ret_info);
/* Locked.  Called after its nodes have changed. */
void ckt_exec_look(struct ckt_exec *exec);
/*
 * Not locked.  If it holds objects of the program that launches may use, waits for those launches.
 */
void ckt_exec_settle_users(const struct ckt_exec *exec);
/* Not locked.  Called before it is destroyed. */
void ckt_exec_settle(const struct ckt_exec *exec);
/* Not locked. */
CUresult ckt_exec_upload(struct ckt_exec *exec, uint64_t stream);
CUresult ckt_exec_launch(struct ckt_exec *exec, uint64_t stream);

/* ---- Library calls in graphs */

/* Locked.  Called when no graph represents the call any more. */
void ckt_cudacommon_call_end(uint64_t id);

/* ---- Memory pools, by the number of their handle */

CUresult ckt_pool_make(uint64_t pool, CUdevice device, size_t max_bytes);
/* The pool's allocations outlive the pool. */
CUresult ckt_pool_unmake(uint64_t pool);
CUresult ckt_pool_trim(uint64_t pool, size_t keep_bytes);
CUresult ckt_pool_set(uint64_t pool, CUmemPool_attribute attribute, uint64_t value);
CUresult ckt_pool_get(uint64_t pool, CUmemPool_attribute attribute, uint64_t *ret_value);
CUresult ckt_pool_alloc(
	uint64_t pool, CUdevice device, size_t size, uint64_t stream, uint64_t *ret_address);
/* Also frees memory that is from no pool. */
CUresult ckt_pool_free(uint64_t address, uint64_t stream);

/* ---- Memory that graphs allocate */

CUresult ckt_cudacommon_graph_memory(
	CUdevice device, size_t size, uint64_t *ret_address, uint64_t *ret_granted);
/* Frees the memory after all earlier launches; context: that of the allocation. */
void ckt_cudacommon_graph_memory_free(uint64_t address, uint64_t context);
