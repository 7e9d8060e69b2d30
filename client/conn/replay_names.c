/* SPDX-License-Identifier: Apache-2.0 */
/* Names of what a replay compares, for messages; see replay.h. */
#include <stdio.h>

#include "client/conn/replay.h"
#include "rpc/gen/cuda_codec.h"

/* The words of rpc/api/cuda.api. */
static const char *const cuda_names[] = {
	[CKT_PROC_CTX_CREATE] = "ctx_create",
	[CKT_PROC_CTX_DESTROY] = "ctx_destroy",
	[CKT_PROC_CTX_SYNCHRONIZE] = "ctx_synchronize",
	[CKT_PROC_PRIMARY_CTX_RETAIN] = "primary_ctx_retain",
	[CKT_PROC_PRIMARY_CTX_RESET] = "primary_ctx_reset",
	[CKT_PROC_MODULE_LOAD] = "module_load",
	[CKT_PROC_MODULE_UNLOAD] = "module_unload",
	[CKT_PROC_MODULE_GET_FUNCTION] = "module_get_function",
	[CKT_PROC_MODULE_GET_GLOBAL] = "module_get_global",
	[CKT_PROC_FUNCTION_SET_ATTRIBUTE] = "function_set_attribute",
	[CKT_PROC_LINK] = "link",
	[CKT_PROC_LAUNCH_KERNEL_EX] = "launch_kernel_ex",
	[CKT_PROC_MEM_ALLOC] = "mem_alloc",
	[CKT_PROC_MEM_FREE] = "mem_free",
	[CKT_PROC_MEMCPY_DTOH] = "memcpy_dtoh",
	[CKT_PROC_MEMCPY2D_DTOH] = "memcpy2d_dtoh",
	[CKT_PROC_STREAM_SYNCHRONIZE] = "stream_synchronize",
	[CKT_PROC_STREAM_QUERY] = "stream_query",
	[CKT_PROC_EVENT_QUERY] = "event_query",
	[CKT_PROC_EVENT_SYNCHRONIZE] = "event_synchronize",
	[CKT_PROC_CUCTXSETLIMIT] = "cuCtxSetLimit",
	[CKT_PROC_CUCTXSETCACHECONFIG] = "cuCtxSetCacheConfig",
	[CKT_PROC_CUCTXRESETPERSISTINGL2CACHE] = "cuCtxResetPersistingL2Cache",
	[CKT_PROC_CUCTXSETSHAREDMEMCONFIG] = "cuCtxSetSharedMemConfig",
	[CKT_PROC_CUFUNCSETSHAREDMEMCONFIG] = "cuFuncSetSharedMemConfig",
	[CKT_PROC_GRAPH_INSTANTIATE] = "graph_instantiate",
	[CKT_PROC_GRAPH_EXEC_UPDATE] = "graph_exec_update",
	[CKT_PROC_GRAPH_EXEC_SET_ENABLED] = "graph_exec_set_enabled",
	[CKT_PROC_GRAPH_FETCH] = "graph_fetch",
	[CKT_PROC_GRAPH_DOT] = "graph_dot",
	[CKT_PROC_MEM_ALLOC_ASYNC] = "mem_alloc_async",
	[CKT_PROC_ADDRESS_RESERVE] = "address_reserve",
	[CKT_PROC_PHYSICAL_CREATE] = "physical_create",
	[CKT_PROC_MEM_MAP] = "mem_map",
	[CKT_PROC_MEM_SET_ACCESS] = "mem_set_access",
	[CKT_PROC_MEM_SET_PEER_ACCESS] = "mem_set_peer_access",
	[CKT_PROC_HOST_MAP] = "host_map",
	[CKT_PROC_MODULE_GET_VARIABLE] = "module_get_variable",
	[CKT_PROC_IPC_EVENT_GET] = "ipc_event_get",
	[CKT_PROC_IPC_EVENT_OPEN] = "ipc_event_open",
	[CKT_PROC_IPC_MEM_GET] = "ipc_mem_get",
	[CKT_PROC_IPC_MEM_OPEN] = "ipc_mem_open",
	[CKT_PROC_IPC_MEM_CLOSE] = "ipc_mem_close",
	[CKT_PROC_PHYSICAL_EXPORT] = "physical_export",
	[CKT_PROC_PHYSICAL_IMPORT] = "physical_import",
	[CKT_PROC_ARRAY_CREATE] = "array_create",
	[CKT_PROC_MEMCPY_ATOH] = "memcpy_atoh",
	[CKT_PROC_TEXTURE_CREATE] = "texture_create",
	[CKT_PROC_SURFACE_CREATE] = "surface_create",
	[CKT_PROC_GRAPH_MEM_ALLOC] = "graph_mem_alloc",
	[CKT_PROC_CTX_RECORD_EVENT] = "ctx_record_event",
	[CKT_PROC_CTX_WAIT_EVENT] = "ctx_wait_event",
	[CKT_PROC_PHYSICAL_CREATE_COMPRESSIBLE] = "physical_create_compressible",
	[CKT_PROC_STREAM_SET_ATTRIBUTE] = "stream_set_attribute",
	[CKT_PROC_PROFILER] = "profiler",
	[CKT_PROC_DEVICE_NOTIFY] = "device_notify",
	[CKT_PROC_DEVICE_NOTIFY_END] = "device_notify_end",
	[CKT_PROC_LANE_HTOD] = "lane_htod",
	[CKT_PROC_LANE_DTOH] = "lane_dtoh",
};

static const char *const libraries[CKT_LIB_COUNT] = {
	[CKT_LIB_CUDA] = "CUDA",
	[CKT_LIB_CUBLAS] = "cuBLAS",
	[CKT_LIB_CUBLASLT] = "cuBLASLt",
	[CKT_LIB_CUFFT] = "cuFFT",
	[CKT_LIB_CUSOLVER] = "cuSOLVER",
	[CKT_LIB_CUSPARSE] = "cuSPARSE",
	[CKT_LIB_CURAND] = "cuRAND",
	[CKT_LIB_CUDNN] = "cuDNN",
	[CKT_LIB_NCCL] = "NCCL",
};

void ckt_replay_name(uint32_t prog, uint32_t proc, char *ret_name, size_t size)
{
	enum ckt_lib lib = ckt_lib_of_prog(prog);
	if (lib == CKT_LIB_CUDA && proc < sizeof cuda_names / sizeof *cuda_names &&
		cuda_names[proc])
		snprintf(ret_name, size, "%s", cuda_names[proc]);
	else if (lib < CKT_LIB_COUNT)
		snprintf(ret_name, size, "procedure %u of %s", proc, libraries[lib]);
	else
		snprintf(ret_name, size, "procedure %u of program 0x%x", proc, prog);
}
