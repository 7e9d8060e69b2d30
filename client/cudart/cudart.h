/*
 * The CUDA runtime written over the documented driver API: what its files share.
 *
 * Every exported function runs on any thread.  It records its own failure as the thread's last
 * error (ckt_rt_return) and needs, where it reaches for a device, a current context first
 * (ckt_rt_enter): the one that the program made current through the driver API, else the primary
 * context of the thread's device.  Nothing happens before the first such call.
 *
 * Errors have the driver's numbers throughout: CUDA keeps both enumerations equal, so a CUresult is
 * a cudaError_t.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include <cuda.h>
#include <cuda_runtime_api.h>

#include "base/bounds.h"
#include "client/cudart/variants.h"

#define CKT_RT_API __attribute__((visibility("default")))
#define CKT_RT_UNLIKELY(x) __builtin_expect(!!(x), 0)

enum {
	/* launches nested in the arguments of a launch; deeper ones use the heap */
	CKT_RT_CALLS_INLINE = 3,
};

/* What <<<>>> leaves for the kernel's host stub. */
struct ckt_rt_call {
	dim3 grid;
	dim3 block;
	size_t shared_bytes;
	cudaStream_t stream;
};

/* One a thread, in static TLS: keep it small. */
struct ckt_rt_thread {
	uint32_t epoch; /* ckt_rt_epoch when the fields below were set; 0: never */
	int device;
	CUcontext context; /* current when last looked */
	cudaError_t last_error;
	bool primary; /* context is the device's primary one */
	bool chosen;  /* cudaSetDevice named the device */
	uint8_t calls_inline;
	struct ckt_rt_call_more *more; /* owned; NULL but while deeply nested */
	struct ckt_rt_call calls[CKT_RT_CALLS_INLINE];
};

extern _Thread_local struct ckt_rt_thread ckt_rt_thread __attribute__((tls_model("initial-exec")));
/* Grows whenever a thread's cached context may be wrong: reset of a device, fork. Never 0. */
extern _Atomic uint32_t ckt_rt_epoch;

struct ckt_rt_device {
	CUdevice handle;
	pthread_mutex_t lock;
	_Atomic bool retained; /* context below is ours to use */
	/*
	 * reset after a kernel failed: a driver gives this process no second context (seen on an
	 * H200)
	 */
	_Atomic bool lost;
	CUcontext context;
	struct cudaDeviceProp *_Atomic properties; /* owned, for ever; NULL until asked for */
};

extern struct ckt_rt_device ckt_rt_devices[CKT_DEVICES_MAX];
extern int ckt_rt_device_count;

/* init.c.  All return without recording. */
cudaError_t ckt_rt_driver(void); /* cuInit, the list of devices; 0, or always the same error */
/* the error of ckt_rt_driver, if it was called; never initialises */
cudaError_t ckt_rt_driver_error(void);
cudaError_t ckt_rt_enter_slow(void);
cudaError_t ckt_rt_primary(int device, CUcontext *ret_context); /* retains it at first use */
cudaError_t ckt_rt_check_device(int device);
/* device.c: a thread that never chose a device takes the first valid one that gives a context. */
cudaError_t ckt_rt_choose_valid(CUcontext *ret_context);
void ckt_rt_log_init(void);
/* Logs the name once; always cudaErrorNotSupported, recorded. */
int ckt_rt_unsupported(const char *name, bool *once);

/* Makes sure that this thread has a current context and knows its device. */
static inline cudaError_t ckt_rt_enter(void)
{
	struct ckt_rt_thread *thread = &ckt_rt_thread;
	CUcontext current;
	if (__builtin_expect(
		    thread->epoch == atomic_load_explicit(&ckt_rt_epoch, memory_order_relaxed),
		    1) &&
		__builtin_expect(
			cuCtxGetCurrent(&current) == CUDA_SUCCESS && current == thread->context, 1))
		return cudaSuccess;
	return ckt_rt_enter_slow();
}

/* error.c: records a failed call's error and returns the call's result. */
cudaError_t ckt_rt_failed(cudaError_t error);
/* The error that destroyed the current context, if any. */
cudaError_t ckt_rt_fault(void);

static inline cudaError_t ckt_rt_return(cudaError_t error)
{
	return CKT_RT_UNLIKELY(error) ? ckt_rt_failed(error) : error;
}

static inline cudaError_t ckt_rt_cu(CUresult result)
{
	return ckt_rt_return((cudaError_t)result);
}

/* Enters, or leaves the calling function with the error. */
#define CKT_RT_ENTER()                                        \
	do {                                                  \
		cudaError_t ckt_rt_entered = ckt_rt_enter();  \
		if (CKT_RT_UNLIKELY(ckt_rt_entered))          \
			return ckt_rt_return(ckt_rt_entered); \
	} while (0)
/* The same for functions that need the driver but no context. */
#define CKT_RT_DRIVER()                                       \
	do {                                                  \
		cudaError_t ckt_rt_entered = ckt_rt_driver(); \
		if (CKT_RT_UNLIKELY(ckt_rt_entered))          \
			return ckt_rt_return(ckt_rt_entered); \
	} while (0)
/* The body of a function that is one call of the driver. */
#define CKT_RT_CALL(call)               \
	do {                            \
		CKT_RT_ENTER();         \
		return ckt_rt_cu(call); \
	} while (0)
#define CKT_RT_REQUIRE(condition, error)             \
	do {                                         \
		if (CKT_RT_UNLIKELY(!(condition)))   \
			return ckt_rt_return(error); \
	} while (0)

static inline CUdeviceptr ckt_rt_address(const void *pointer)
{
	return (CUdeviceptr)(uintptr_t)pointer;
}

/* error_table.c */
struct ckt_rt_error_text {
	int number;
	const char *name;
	const char *text;
};
extern const struct ckt_rt_error_text ckt_rt_error_texts[];
extern const unsigned ckt_rt_error_text_count;

/* ---- Modules: registration.c knows what the program holds, module.c loads it. */

/* A word per device, made at first use; freed with the process. */
typedef _Atomic(_Atomic uint64_t *) ckt_rt_slots;

struct ckt_rt_kernel {
	/* the stub's address, or the CUkernel itself for one that cudaLibraryGetKernel gave out */
	const void *host;
	const char *name;             /* in the program's image */
	struct ckt_rt_module *module; /* NULL: not (or no longer) registered */
	struct ckt_rt_kernel *next;   /* of the module */
	_Atomic(CUkernel) kernel;
	ckt_rt_slots functions; /* CUfunction in the device's primary context */
};

struct ckt_rt_variable {
	const void *host;
	/* where the program keeps the address of a managed variable; NULL for others */
	void **managed;
	const char *name;
	struct ckt_rt_module *module;
	struct ckt_rt_variable *next;
	size_t size;            /* as the compiler saw it; 0 for an array of unknown size */
	ckt_rt_slots addresses; /* in the device's primary context */
};

/*
 *	REGISTERED --first use--> library loaded (cuLibrary*)  --unregister--> unloaded
 *		   \--driver has no cuLibrary*--> one CUmodule per device
 * Modules and records are never freed: nvcc's stubs keep pointers to kernel records, and an address
 * registered again finds its record.
 */
struct ckt_rt_module {
	const void *image; /* fat binary */
	/*
	 * -rdc=true: relocatable fat binaries to link where image has nothing for the device; NULL
	 * ends
	 */
	const void *const *prelinked;
	pthread_mutex_t lock; /* of loading */
	_Atomic(CUlibrary) library;
	_Atomic bool by_device; /* the driver has no libraries */
	bool gone;              /* unregistered; protected by lock */
	bool exit_noted;        /* protected by lock */
	bool told;              /* why it is not loaded; protected by lock */
	/* module.c's; NULL until it is loaded with parts to link; protected by lock */
	struct ckt_rt_link_log *link_log;
	ckt_rt_slots modules; /* CUmodule, when by_device */
	struct ckt_rt_kernel *kernels;
	struct ckt_rt_variable *variables;
	struct ckt_rt_module *next;
};

/* registration.c.  Look-ups are lock-free; NULL if nothing is registered. */
struct ckt_rt_kernel *ckt_rt_kernel_find(const void *host);
struct ckt_rt_variable *ckt_rt_variable_find(const void *host);
/* The same for kernels, but also NULL for kernels that are no longer registered. */
struct ckt_rt_kernel *ckt_rt_kernel_living(const void *host);
/* By the variable's address, once it is known; takes a lock. */
struct ckt_rt_variable *ckt_rt_managed_find(const void *address);
/* Enters a driver's kernel, so that launches accept it; NULL without memory. */
struct ckt_rt_kernel *ckt_rt_kernel_adopt(CUkernel kernel);
/*
 * The stub of a driver's function or kernel (either may be NULL), by search; NULL if there is none.
 */
const void *ckt_rt_kernel_host(CUfunction function, CUkernel handle);
/* Forgets the cached values for a device whose primary context is gone. */
void ckt_rt_modules_reset(int device);

/* module.c.  Precondition of all: entered.  Nothing is recorded. */
_Atomic uint64_t *ckt_rt_slot(ckt_rt_slots *slots, int device); /* NULL without memory */
cudaError_t ckt_rt_kernel_function_slow(struct ckt_rt_kernel *kernel, CUfunction *ret_function);
cudaError_t ckt_rt_kernel_handle(struct ckt_rt_kernel *kernel, CUkernel *ret_kernel);
cudaError_t ckt_rt_variable_address(
	struct ckt_rt_variable *variable, CUdeviceptr *ret_address, size_t *ret_size);
cudaError_t ckt_rt_module_managed(struct ckt_rt_module *module);
void ckt_rt_module_unload(struct ckt_rt_module *module);

static inline cudaError_t ckt_rt_kernel_function(
	struct ckt_rt_kernel *kernel, CUfunction *ret_function)
{
	_Atomic uint64_t *slots = atomic_load_explicit(&kernel->functions, memory_order_acquire);
	if (__builtin_expect(slots != NULL && ckt_rt_thread.primary, 1)) {
		uint64_t function =
			atomic_load_explicit(&slots[ckt_rt_thread.device], memory_order_acquire);
		if (__builtin_expect(function != 0, 1)) {
			*ret_function = (CUfunction)(uintptr_t)function;
			return cudaSuccess;
		}
	}
	return ckt_rt_kernel_function_slow(kernel, ret_function);
}

/*
 * function.c: from what a program passes as `func`; cudaErrorInvalidDeviceFunction for what was
 * never registered.  Enters.
 */
cudaError_t ckt_rt_function(const void *func, CUfunction *ret_function);
/* launch.c: the driver's form of a configuration, with another stream; points into config. */
/* Of a node; the thread enters. */
cudaError_t ckt_rt_kernel_params(
	const struct cudaKernelNodeParamsV2 *p, CUDA_KERNEL_NODE_PARAMS *ret);
cudaError_t ckt_rt_launch_config(
	const cudaLaunchConfig_t *config, cudaStream_t stream, CUlaunchConfig *ret_config);
/* array.c: the driver's form of a channel description. */
cudaError_t ckt_rt_format(const struct cudaChannelFormatDesc *desc, CUarray_format *ret_format,
	unsigned *ret_channels);
cudaError_t ckt_rt_channel(
	CUarray_format format, unsigned channels, struct cudaChannelFormatDesc *ret_desc);
/* Bytes of one element of an array.  Precondition: entered. */
cudaError_t ckt_rt_array_element(cudaArray_const_t array, size_t *ret_bytes);
/* memcpy.c: the memory types that a kind names. */
CUmemorytype ckt_rt_source_type(enum cudaMemcpyKind kind);
CUmemorytype ckt_rt_destination_type(enum cudaMemcpyKind kind);
/* memcpy3d.c: the driver's form of a three-dimensional copy.  Precondition: entered. */
cudaError_t ckt_rt_copy_3d(const struct cudaMemcpy3DParms *p, CUDA_MEMCPY3D *ret_copy);
/* symbol.c: address of symbol + offset, and that count bytes fit.  Enters. */
cudaError_t ckt_rt_symbol(
	const void *symbol, size_t offset, size_t count, CUdeviceptr *ret_address);
/* memcpy.c: one linear copy in stream; waits as the synchronous functions do unless async. */
cudaError_t ckt_rt_copy(void *dst, const void *src, size_t count, enum cudaMemcpyKind kind,
	cudaStream_t stream, bool async);
