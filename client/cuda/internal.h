/*
 * What the files of client/cuda share.  Every function named cu* here is CUDA's own and follows the
 * CUDA Driver API reference of 13.0; functions return a CUresult, write outputs only on success,
 * and may be called from any thread.
 */
#pragma once

#ifndef __CUDA_API_VERSION_INTERNAL
#error "exported names are defined here: compile with -D__CUDA_API_VERSION_INTERNAL"
#endif
#include <cuda.h>

#include "client/conn/call.h"
#include "cudacommon/interface.h"
#include "rpc/gen/cuda_codec.h"
#include "rpc/session.h"

/*
 * Encodes and queues a batched call: CKT_BATCHED(stream_create, STREAM_CREATE, .id = id, .flags =
 * flags).
 */
#define CKT_BATCHED(name, NAME, ...)                                         \
	({                                                                   \
		struct ckt_##name##_args args_ = {__VA_ARGS__};              \
		struct ckt_call call_;                                       \
		CUresult result_ = ckt_call_begin(&call_, CKT_PROC_##NAME,   \
			ckt_##name##_args_size(&args_), CKT_CALL_F_BATCHED); \
		if (!result_) {                                              \
			ckt_##name##_args_put(call_.p, &args_);              \
			result_ = ckt_call_queue(&call_);                    \
		}                                                            \
		result_;                                                     \
	})

/*
 * The same and waits; flags: 0 or CKT_CALL_F_NUMBERED; reply: NULL or where results go (to be
 * released after success).
 */
#define CKT_WAITED(name, NAME, flags, reply, ...)                                        \
	({                                                                               \
		struct ckt_##name##_args args_ = {__VA_ARGS__};                          \
		struct ckt_call call_;                                                   \
		CUresult result_ = ckt_call_begin(                                       \
			&call_, CKT_PROC_##NAME, ckt_##name##_args_size(&args_), flags); \
		if (!result_) {                                                          \
			ckt_##name##_args_put(call_.p, &args_);                          \
			result_ = ckt_call_wait(&call_, reply);                          \
		}                                                                        \
		result_;                                                                 \
	})

/* ---- device.c */
/* NULL with the error to return in ret_result (may be NULL): not initialised, or no such device. */
const struct ckt_device *ckt_client_device_get(CUdevice device, CUresult *ret_result);
int ckt_client_device_attribute(CUdevice device, CUdevice_attribute attribute);
unsigned ckt_client_device_count(void);

/* ---- stream_attribute.c */
struct ckt_stream_hints {
	CUaccessPolicyWindow window;
	CUsynchronizationPolicy policy; /* 0: never set */
	CUlaunchMemSyncDomain domain;
	CUlaunchMemSyncDomainMap map;
	bool map_set;
	int priority; /* at first the one that it was made with */
};

/* ---- context.c */
struct ckt_context {
	struct ckt_cudacommon_object object;
	CUdevice device;
	unsigned flags;
	bool primary;
	unsigned retained; /* of a primary context */
	unsigned api_version;
	bool destroyed;
	bool first;                    /* made by the first cuCtxCreate */
	uint64_t aside;                /* ckt_client_stream_aside */
	unsigned attached;             /* by cuCtxAttach, beside who made it */
	struct ckt_stream_hints hints; /* of the legacy default stream */
	/* devices whose memory this context may reach: cuCtxEnablePeerAccess */
	_Atomic uint64_t peers;
};

/*
 * The calling thread's context; CUDA_ERROR_NOT_INITIALIZED, CUDA_ERROR_INVALID_CONTEXT or
 * CUDA_ERROR_CONTEXT_IS_DESTROYED where there is none.
 */
CUresult ckt_client_context_current(struct ckt_context **ret_context);
/* Makes the objects of the primary contexts; called once by cuInit. */
void ckt_client_context_init(void);

/* ---- driver_log.c: what is not supported stands there */
void ckt_client_driver_log_init(void);

/* ---- stream.c */
/*
 * Whether work of the program may run beside the legacy default stream, or another process sees its
 * memory: a second context, a stream that waits for no other, memory that is shared.  Once true it
 * stays so.
 */
extern _Atomic bool ckt_stream_beside;
/*
 * The stream has done what it was given, and the program has what came of it.  The stream:
 * resolved.
 */
CUresult ckt_client_stream_wait(uint64_t stream);
/* A stream of the context's for our own copies, which waits for no other. */
CUresult ckt_client_stream_aside(uint64_t context, uint64_t *ret_id);
/*
 * What was set on the stream that is an attribute: the stream's own, or the context's for the
 * default stream.
 */
CUresult ckt_client_stream_hints(CUstream stream, struct ckt_stream_hints **ret_hints);

/* ---- module.c, function.c */
struct ckt_function {
	struct ckt_cudacommon_object object;
	uint64_t module;
	struct ckt_function *next; /* of the same module */
	char *name;
	unsigned param_count;
	uint32_t param_bytes;
	uint32_t *param_offsets, *param_sizes;
	int32_t attributes[32];   /* index = CUfunction_attribute */
	uint32_t attribute_valid; /* bit per attribute */
};

struct ckt_module {
	struct ckt_cudacommon_object object;
	pthread_mutex_t lock;
	struct ckt_function *functions;
	uint8_t hash[32];
};

/*
 * Bytes of a module image by its own header: fat binary (container or nvcc's wrapper), ELF, or
 * text.  *ret_data is where it begins.
 */
CUresult ckt_client_image_extent(const void *image, const void **ret_data, size_t *ret_size);
/* Makes sure that the worker holds these bytes; ret_hash: 32 bytes. */
CUresult ckt_client_blob_send(const void *data, size_t size, uint8_t *ret_hash);
CUresult ckt_client_module_load(const void *data, size_t size, unsigned n_options,
	CUjit_option *options, void **values, CUmodule *ret_module);
CUresult ckt_client_module_function(
	struct ckt_module *module, const char *name, struct ckt_function **ret_function);
CUresult ckt_client_module_unload(struct ckt_module *module);
/* What lived in a context that has ended or was reset: its handles are no handles any more. */
void ckt_client_module_forget_context(uint64_t context);
void ckt_client_stream_forget_context(uint64_t context);
void ckt_client_event_forget_context(uint64_t context);
/*
 * Of an event of several processes: what was put on a stream for it is there when the call returns,
 * as another process may be told so next.
 */
CUresult ckt_client_event_arrived(uint64_t event);
/*
 * Address, size and whether it is declared __managed__; then the program can use it from here on.
 */
CUresult ckt_client_module_variable(
	CUmodule handle, const char *name, CUdeviceptr *address, size_t *size, bool *ret_managed);
/*
 * Calls visit for the names of at most max functions, in the module's order; stops at the first
 * error.
 */
CUresult ckt_client_module_each_function(struct ckt_module *module, unsigned max,
	CUresult (*visit)(void *data, const char *name), void *data);
/* The file's bytes in malloc'd memory with at least one NUL behind them. */
CUresult ckt_client_file_read(const char *path, void **ret_data, size_t *ret_size);
/* A CUfunction, or a CUkernel cast to one, as the function in the current context. */
CUresult ckt_client_function_resolve(CUfunction handle, struct ckt_function **ret_function);

/* ---- library.c */
CUresult ckt_client_kernel_function(uint64_t kernel, struct ckt_function **ret_function);

/* Which server the context is at; see route.c. */
unsigned ckt_client_context_node(uint64_t context);

struct ckt_client_range;

/* ---- worker_pool.c */
/* Whether anything was ever freed on a stream: it may be had back by waiting. */
bool ckt_pool_may_settle(void);

/* ---- ipc.c */
struct ckt_ipc_handle;
bool ckt_client_ipc_own(const struct ckt_ipc_handle *handle);
CUresult ckt_client_ipc_file_make(const uint8_t *handle, int *ret_fd);
/* False where the file is none of ours. */
bool ckt_client_ipc_file_read(int fd, struct ckt_ipc_handle *ret);
void ckt_client_ipc_forget_context(uint64_t context);

/* ---- managed.c */
extern _Atomic unsigned ckt_managed_count;
CUresult ckt_managed_before_launch_slow(void);
CUresult ckt_managed_after_host_slow(void);
CUresult ckt_managed_before_access_slow(uint64_t address, uint64_t size, bool write);
/* Makes a module's variable, which the driver has placed, the program's as well. */
CUresult ckt_managed_variable(uint64_t address, uint64_t size, uint64_t context, uint64_t module);
void ckt_managed_forget_owner(uint64_t module);
/* The memory is freed, or its context is gone. */
void ckt_managed_forget(uint64_t address);
void ckt_managed_forget_context(uint64_t context);

/*
 * Makes host memory coherent with the device memory at the same address; alias (ours from here on):
 * the same pages, always open.
 */
CUresult ckt_managed_adopt(uint64_t base, uint64_t size, void *alias, uint64_t context);

struct ckt_managed_region;
/*
 * The same for memory (MAP_SHARED) that the device has itself for the time being: nothing is done
 * until it is woken.
 */
CUresult ckt_managed_prepare(
	uint64_t base, uint64_t size, uint64_t context, struct ckt_managed_region **ret_region);
/*
 * From here on the device has a copy.  Gives the bytes that it is to begin with, readable while the
 * region is there; NULL without memory for it. Waits for nobody.  Again: no harm.
 */
const void *ckt_managed_wake(struct ckt_managed_region *region);

/*
 * The device has what the program wrote to the regions there, and the program has to fetch again
 * what it reads next.
 */
CUresult ckt_managed_hand_over(uint64_t address, uint64_t size);

/* ---- host.c */
/*
 * Host memory that is allocated or registered: gives the device's address in its place, from here
 * on good there.
 */
CUresult ckt_client_host_reach(uint64_t *address);

/*
 * ---- registered.c: memory that the program registered and whose address on the device it asked
 * for
 */
extern _Atomic unsigned ckt_registered_count;
/*
 * Where the device has the registered memory from here on.  Precondition: of kind
 * CKT_RANGE_HOST_REGISTERED.
 */
CUresult ckt_registered_map(const struct ckt_client_range *range, uint64_t *ret_address);
/* The range is not registered any more: it has what the GPU wrote. */
CUresult ckt_registered_forget(const struct ckt_client_range *range);
void ckt_registered_forget_context(uint64_t context);
/* Host memory that lies in one of those, all of it: gives the device's address in its place. */
bool ckt_registered_side(uint64_t *address, uint64_t size);
CUresult ckt_registered_before_work_slow(void);
CUresult ckt_registered_after_wait_slow(uint64_t context);

static inline bool ckt_registered_any(void)
{
	return __builtin_expect(
		atomic_load_explicit(&ckt_registered_count, memory_order_relaxed) != 0, 0);
}

/* What the program wrote is on the device before the GPU does anything. */
static inline CUresult ckt_registered_before_work(void)
{
	return ckt_registered_any() ? ckt_registered_before_work_slow() : CUDA_SUCCESS;
}

/*
 * The program has what the GPU wrote once it knows of the GPU's being done; context: with all that
 * was in it, 0 with less.
 */
static inline CUresult ckt_registered_after_wait(CUresult result, uint64_t context)
{
	return result || !ckt_registered_any() ? result : ckt_registered_after_wait_slow(context);
}

/*
 * ---- early_writes.c: pinned memory that the program wrote while the GPU works, which it need not
 * wait for
 */
extern _Atomic unsigned ckt_managed_early;
void ckt_managed_send_early(void);

/*
 * Around every wait for the GPU: the kernel that is waited for may be waiting for what the program
 * wrote.
 */
#define CKT_WAIT_FOR_GPU(expression, context)                                      \
	({                                                                         \
		if (__builtin_expect(ckt_managed_early != 0, 0))                   \
			ckt_managed_send_early();                                  \
		CUresult waited_ = ckt_registered_after_wait(expression, context); \
		if (__builtin_expect(ckt_managed_early != 0, 0))                   \
			ckt_managed_send_early();                                  \
		waited_;                                                           \
	})

/* Whether memory of the program has to be looked at before the GPU works. */
static inline bool ckt_managed_any(void)
{
	return __builtin_expect(
		       atomic_load_explicit(&ckt_managed_count, memory_order_relaxed) != 0, 0) ||
		ckt_registered_any();
}

/* Before anything runs that may use any managed memory: a kernel, a graph. */
static inline CUresult ckt_managed_before_launch(void)
{
	return ckt_managed_any() ? ckt_managed_before_launch_slow() : CUDA_SUCCESS;
}

/* A host function has run, and what its stream does next may use any managed memory. */
static inline CUresult ckt_managed_after_host(void)
{
	return ckt_managed_any() ? ckt_managed_after_host_slow() : CUDA_SUCCESS;
}

/* Before a copy or fill that reads or writes device memory there, wherever the address leads. */
static inline CUresult ckt_managed_before_access(uint64_t address, uint64_t size, bool write)
{
	return ckt_managed_any() ? ckt_managed_before_access_slow(address, size, write)
				 : CUDA_SUCCESS;
}

/* ---- launch.c */
/* What CUDA checks of a launch at once, in the current context. */
CUresult ckt_client_launch_check(const struct ckt_function *f, const unsigned grid[3],
	const unsigned block[3], unsigned shared_bytes);

/* ---- shared.c: pinned memory of which the worker, on this host, has the very pages */
/* size: whole chunks (CKT_HOST_GRAIN).  False where it cannot be had. */
bool ckt_shared_alloc(const struct ckt_context *context, uint64_t size, uint64_t *ret_address);
/* False where no such allocation begins at the address.  Precondition: the GPU is done with it. */
bool ckt_shared_free(uint64_t address);
/* Whether the allocation that begins there is still the worker's memory as well. */
bool ckt_shared_now(uint64_t address);

/* ---- mapped.c: pinned memory at addresses that the device can have as well */
extern _Atomic unsigned ckt_host_mappable; /* allocations that are not mapped yet */
CUresult ckt_client_host_alloc(
	struct ckt_context *context, size_t size, unsigned flags, void **ret_memory);
CUresult ckt_client_host_free(const struct ckt_client_range *range);
/*
 * Maps the pinned allocation that holds the address, if it is not: CUDA_ERROR_NOT_SUPPORTED where
 * its address cannot be had.
 */
CUresult ckt_client_host_map(uint64_t address);
/*
 * Of mapped memory: waits for the GPU and fetches, so that it can be used where nothing may fault.
 * False where it is not mapped.
 */
bool ckt_client_host_open(uint64_t address, uint64_t size, bool write);
/* As ckt_client_host_map, for every address among the packed parameters of a kernel. */
CUresult ckt_client_host_map_params(const void *packed, size_t size);

/* ---- memcpy.c */
/*
 * A place in an array, of which the copy's dst or src counts the bytes in its row; id 0: none, the
 * side is memory.
 */
struct ckt_array_place {
	uint64_t id;
	uint32_t level;
	uint64_t y, z;
};

struct ckt_copy2d {
	uint64_t dst, src; /* host pointers as integers */
	uint64_t dst_pitch, src_pitch;
	uint64_t width, height;
	/* between an array and the host only: bytes from slice to slice of the latter */
	uint64_t depth, memory_slice;
	struct ckt_array_place array;
	bool dst_device, src_device;
	CUstream stream;
	bool async;
};
/*
 * ---- staged.c: between the device and memory that is not pinned.  False where the copy has to go
 * by the connection.
 */
bool ckt_staged_copy(const struct ckt_copy2d *c, uint64_t stream, CUresult *ret_result);

/* Bytes of the host as they are now, at least one, to the device. */
CUresult ckt_client_copy_send(uint64_t dst, const void *data, uint64_t size, uint64_t stream);
CUresult ckt_client_copy(uint64_t dst, bool dst_device, uint64_t src, bool src_device,
	uint64_t size, CUstream stream, bool async);
CUresult ckt_client_copy_2d(const struct ckt_copy2d *copy);
/*
 * To the host from what an executable graph has left of it: src is the same host memory.  Goes on
 * in the background.
 */
CUresult ckt_client_copy_fetch(const struct ckt_copy2d *copy, uint64_t exec, uint64_t stream);
/*
 * The ways of ckt_client_copy_2d where one side is an array and the other the host's memory:
 * everything is checked, height and depth not 0.
 */
CUresult ckt_client_copy_from_array(const struct ckt_copy2d *copy, uint64_t stream);
CUresult ckt_client_copy_to_array(const struct ckt_copy2d *copy, uint64_t stream);
/*
 * What a side that should be device memory is: pinned memory makes *device false; false where it is
 * neither.
 */
bool ckt_client_copy_side_is_right(
	const char *what, uint64_t address, bool *device, uint64_t extent);
/* Waits for copies to the host that are still under way and touch this memory. */
void ckt_client_copy_settle(const void *address, uint64_t size);
