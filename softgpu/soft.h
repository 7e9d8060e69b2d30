/*
 * The soft GPU's driver, inside: what its files share.
 *
 * The library exports the documented driver API and runs everything on the CPU.  Device memory is
 * memory of this process and a device address is the address itself.  Handles are not pointers but
 * numbers that are never used twice, so a stale one is noticed.  Threading: every API function may
 * be called from any thread; each object says which lock guards it.  Order of locks: device,
 * context, stream, event, object table, memory table; a later one may be taken under an earlier
 * one, never the reverse. Errors: CUresult everywhere, as data.  Nothing happens at load time;
 * threads are made by the first work that needs one.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * The version script decides what is exported, but it can only choose among what the compiler did
 * not hide.
 */
#pragma GCC visibility push(default)
#include <cuda.h>
#include <cudaProfiler.h>
#pragma GCC visibility pop

#include "base/bounds.h"
#include "softgpu/memory/memmap.h"
#include "softgpu/ptx/ptx.h"

enum {
	CKT_SOFT_PAGE = 1 << CKT_SOFT_PAGE_SHIFT,
	CKT_SOFT_GRANULE = 2 << 20, /* of physical memory (cuMemCreate) */
	CKT_SOFT_DRIVER_VERSION = 13000,
};

/* ---- log.c: stderr only */

/* Always one line on stderr. */
void ckt_soft_say(const char *format, ...) __attribute__((format(printf, 1, 2)));
/*
 * The same for what is refused: each text once a process, however often and by however many threads
 * it is asked for.
 */
void ckt_soft_say_once(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* One line where CRICKET_LOG starts with "debug". */
void ckt_soft_debug(const char *format, ...) __attribute__((format(printf, 1, 2)));
/*
 * CUDA itself does not support it, with any driver; nothing is said.  As cudacommon/interface.h
 * has it.
 */
#define CKT_AS_CUDA_NOT_SUPPORTED CUDA_ERROR_NOT_SUPPORTED
/* Logs once per name that something is not supported and returns CUDA_ERROR_NOT_SUPPORTED. */
CUresult ckt_soft_unsupported(atomic_bool *said, const char *what);
#define CKT_SOFT_UNSUPPORTED(what)                    \
	({                                            \
		static atomic_bool said_;             \
		ckt_soft_unsupported(&said_, (what)); \
	})

/* ---- object.c: handles */

enum ckt_soft_kind {
	CKT_SOFT_CONTEXT = 1,
	CKT_SOFT_STREAM,
	CKT_SOFT_EVENT,
	CKT_SOFT_MODULE,
	CKT_SOFT_FUNCTION,
	CKT_SOFT_LIBRARY,
	CKT_SOFT_KERNEL,
	CKT_SOFT_LINK,
	CKT_SOFT_PHYSICAL, /* cuMemCreate */
	CKT_SOFT_ARRAY,
	CKT_SOFT_MIPMAP, /* a mipmapped array */
	CKT_SOFT_KINDS,
};

/* First member of everything that has a handle. */
struct ckt_soft_object {
	enum ckt_soft_kind kind;
	atomic_uint refs;
	uint64_t handle;
	void (*destroy)(struct ckt_soft_object *object); /* last reference gone */
};

/* Gives the object a handle and one reference, the table's.  0 or CUDA_ERROR_OUT_OF_MEMORY. */
CUresult ckt_soft_object_init(struct ckt_soft_object *object, enum ckt_soft_kind kind,
	void (*destroy)(struct ckt_soft_object *object));
/*
 * The object with one more reference, or NULL where the handle is not one of that kind (any more).
 */
void *ckt_soft_object_get(const void *handle, enum ckt_soft_kind kind);
/*
 * Whether the handle was given out for an object of this kind, however long ago; another kind may
 * have had its place.
 */
bool ckt_soft_object_was(const void *handle, enum ckt_soft_kind kind);
void ckt_soft_object_ref(struct ckt_soft_object *object);
void ckt_soft_object_put(struct ckt_soft_object *object);
/*
 * Takes the handle away.  True for the one caller that did; that caller then owns the table's
 * reference.
 */
bool ckt_soft_object_remove(struct ckt_soft_object *object);
static inline void *ckt_soft_object_handle(const struct ckt_soft_object *object)
{
	return (void *)(uintptr_t)object->handle;
}

/* ---- arena.c: page-granular pieces of one big address range per device */

struct ckt_soft_extent {
	uint64_t base, size;
};

struct ckt_soft_arena {
	pthread_mutex_t lock;
	/* sizes are rounded up to it: a page, or less in a heap */
	uint64_t unit;
	/* [base, readable_end) is readable and writable for the host */
	uint64_t base, size, readable_end;
	struct ckt_soft_extent *free_list; /* sorted by address, never adjacent */
	size_t n_free, n_free_max;
};

/* At `wish` where that is free, else anywhere. */
int ckt_soft_arena_init(struct ckt_soft_arena *arena, uint64_t wish, uint64_t size);
/* Over memory that is there already, in units of 16 bytes; not zero-filled. */
int ckt_soft_arena_init_at(struct ckt_soft_arena *arena, uint64_t base, uint64_t size);
void ckt_soft_arena_fini(struct ckt_soft_arena *arena);
/* Zero-filled memory, aligned to a page; 0 when there is none. */
uint64_t ckt_soft_arena_alloc(struct ckt_soft_arena *arena, uint64_t size);
void ckt_soft_arena_free(struct ckt_soft_arena *arena, uint64_t base, uint64_t size);

/* ---- device.c */

struct ckt_soft_arch {
	unsigned capability;              /* 120 */
	unsigned shared_sm, shared_optin; /* KiB */
	unsigned threads_sm, blocks_sm;
};

struct ckt_soft_device {
	int ordinal;
	int serial; /* its place in CRICKET_SOFT_DEVICES */
	const struct ckt_soft_arch *arch;
	uint64_t total_bytes;
	uint64_t budget_bytes; /* 0: none */
	atomic_uint_fast64_t used_bytes;
	unsigned n_sm;
	/* primary context's count and flags, the arena's making */
	pthread_mutex_t lock;
	/* made at the first retain, kept for the process's life; NULL before */
	struct ckt_soft_context *primary;
	unsigned primary_refs, primary_flags;
	bool arena_ready;
	/*
	 * The same in every process: a checkpoint is restored only where module variables lie as
	 * they lay, and where the kernel would put the range depends on what other threads map
	 * meanwhile.
	 */
	struct ckt_soft_arena arena;
};

/* NULL where the ordinal is none. */
struct ckt_soft_device *ckt_soft_device(int ordinal);
int ckt_soft_device_count(void);
CUresult ckt_soft_devices_init(void);
/* Before memory of it is used first. */
CUresult ckt_soft_device_prepare(struct ckt_soft_device *device);
/* Counts bytes as used, CUDA_ERROR_OUT_OF_MEMORY where the device has not so many left. */
CUresult ckt_soft_device_charge(struct ckt_soft_device *device, uint64_t bytes);
void ckt_soft_device_uncharge(struct ckt_soft_device *device, uint64_t bytes);
int ckt_soft_device_attribute(
	const struct ckt_soft_device *device, CUdevice_attribute attribute, CUresult *ret_result);
/* CUDA_ERROR_NOT_INITIALIZED before cuInit and in a forked child. */
CUresult ckt_soft_initialized(void);

/* ---- notify.c */

/* The process has bytes more on the device than its budget. */
void ckt_soft_notify_over(const struct ckt_soft_device *device, uint64_t bytes);

/* ---- context.c */

struct ckt_soft_output;

struct ckt_soft_context {
	struct ckt_soft_object object;
	struct ckt_soft_device *device;
	uint64_t id;
	bool primary;
	bool first; /* made by the first cuCtxCreate */
	atomic_bool alive;
	/* of a primary context: counts resets, so that what came before is known as stale */
	atomic_uint epoch;
	atomic_int sticky; /* first device fault, CUDA_SUCCESS before */
	_Atomic uint32_t flags;
	/* order of submission over all streams; the stream list */
	pthread_mutex_t submit_lock;
	/* the default stream; lives as long as the context */
	struct ckt_soft_stream *legacy;
	struct ckt_soft_stream *streams; /* every other stream */
	pthread_mutex_t lock;            /* everything below */
	struct ckt_soft_module *modules;
	size_t limits[CU_LIMIT_MAX];
	CUfunc_cache cache_config;
	CUsharedconfig shared_config;
	uint64_t peers;              /* bit per device ordinal */
	struct ckt_soft_arena *heap; /* heap.c; NULL until a kernel calls malloc */
	pthread_mutex_t output_lock;
	struct ckt_soft_output *output, *output_last;
	size_t output_bytes;
};

/*
 * The calling thread's current context, good and without a device fault; no reference is taken: the
 * thread's stack holds one.
 */
CUresult ckt_soft_enter(struct ckt_soft_context **ret_context);
/* The same, but a fault does not matter. */
CUresult ckt_soft_enter_faulted(struct ckt_soft_context **ret_context);
/* The calling thread's current context, also where it is destroyed; NULL where there is none. */
struct ckt_soft_context *ckt_soft_context_last(void);
/* NULL: the current one.  Otherwise a reference is taken too: put it after use. */
CUresult ckt_soft_context_get(CUcontext handle, struct ckt_soft_context **ret_context);
static inline CUresult ckt_soft_context_result(struct ckt_soft_context *context)
{
	return (CUresult)atomic_load_explicit(&context->sticky, memory_order_acquire);
}
void ckt_soft_context_fault(struct ckt_soft_context *context, CUresult result);
static inline CUcontext ckt_soft_context_handle(struct ckt_soft_context *context)
{
	return ckt_soft_object_handle(&context->object);
}
/* Waits for everything submitted so far, then prints what kernels printed. */
CUresult ckt_soft_context_synchronize(struct ckt_soft_context *context);
/* Makes a context whose handle is valid; the caller owns the table's reference. */
CUresult ckt_soft_context_create(struct ckt_soft_device *device, unsigned flags, bool primary,
	struct ckt_soft_context **ret_context);
/*
 * Ends its work and frees what it owns.  A primary context keeps its handle and can be revived by
 * the next retain.
 */
void ckt_soft_context_close(struct ckt_soft_context *context);
CUresult ckt_soft_context_revive(struct ckt_soft_context *context);

/* heap.c: malloc and free of kernels. */
void *ckt_soft_heap_alloc(struct ckt_soft_context *context, uint64_t size_bytes);
void ckt_soft_heap_free(struct ckt_soft_context *context, void *address);
void ckt_soft_heap_fini(struct ckt_soft_context *context);

/* kernel_output.c: text that kernels print is kept until a synchronisation, as on a real GPU. */
void ckt_soft_output_write(
	struct ckt_soft_context *context, int fd, const char *text, size_t size_bytes);
void ckt_soft_output_flush(struct ckt_soft_context *context);

/* ---- condition.c: the conditions of executable graphs, by their handles */

struct ckt_graph;
struct ckt_soft_conditions;

/*
 * Those of the graph's conditional nodes, of nodes in bodies too; NULL where there is no memory.
 * Counted.
 */
struct ckt_soft_conditions *ckt_soft_conditions_make(const struct ckt_graph *graph);
void ckt_soft_conditions_ref(struct ckt_soft_conditions *conditions);
void ckt_soft_conditions_put(struct ckt_soft_conditions *conditions);
bool ckt_soft_conditions_any(const struct ckt_soft_conditions *conditions);
/* Defaults, as at the beginning of a launch. */
void ckt_soft_conditions_assign(struct ckt_soft_conditions *conditions);
/* 0 where the handle is none. */
uint32_t ckt_soft_condition_value(uint64_t handle);
/* What a kernel says; false where the handle is none.  data: unused. */
bool ckt_soft_condition_set(void *data, uint64_t handle, uint32_t value);

/* ---- memory.c: the table of all known address ranges */

enum ckt_soft_range_kind {
	CKT_SOFT_RANGE_DEVICE = 1, /* cuMemAlloc */
	CKT_SOFT_RANGE_MANAGED,
	CKT_SOFT_RANGE_GLOBAL, /* a module's */
	CKT_SOFT_RANGE_HEAP,   /* device malloc */
	CKT_SOFT_RANGE_HOST,   /* cuMemHostAlloc */
	CKT_SOFT_RANGE_REGISTERED,
	CKT_SOFT_RANGE_MAPPED, /* cuMemMap */
};

struct ckt_soft_range {
	uint64_t base, size; /* as asked for */
	enum ckt_soft_range_kind kind;
	unsigned flags;                   /* of the call that made it */
	uint64_t id;                      /* CU_POINTER_ATTRIBUTE_BUFFER_ID */
	struct ckt_soft_context *context; /* NULL for cuMemMap */
	struct ckt_soft_device *device;
	int sync_memops;
	uint64_t pool; /* the memory pool's number; 0: none */
	/* cuMemMap */
	struct ckt_soft_physical *physical;
	uint64_t offset;
	uint8_t access[CKT_DEVICES_MAX]; /* CUmemAccess_flags by device */
};

/* Copies the range that holds address.  False where there is none. */
bool ckt_soft_range_find(uint64_t address, struct ckt_soft_range *ret_range);
/* CUDA_ERROR_OUT_OF_MEMORY, or CUDA_ERROR_INVALID_VALUE where it overlaps another one. */
CUresult ckt_soft_range_add(const struct ckt_soft_range *range);
/* Removes the range that begins at base where its kind is in the mask (1 << kind). */
bool ckt_soft_range_remove(uint64_t base, unsigned kinds, struct ckt_soft_range *ret_range);
/*
 * Calls visit for every range that overlaps, under the table's lock; visit may change what is not
 * base or size.
 */
void ckt_soft_range_visit(uint64_t base, uint64_t size,
	void (*visit)(struct ckt_soft_range *range, void *data), void *data);
/* Any range of that context, or false. */
bool ckt_soft_range_of_context(
	const struct ckt_soft_context *context, struct ckt_soft_range *ret_range);
uint64_t ckt_soft_range_next_id(void);

/* Memory from the device's arena, charged, marked accessible and entered in the table. */
CUresult ckt_soft_memory_alloc(struct ckt_soft_context *context, uint64_t size,
	enum ckt_soft_range_kind kind, uint64_t *ret_address);
/* The same for a range whose base, as yet unknown, and id come out of it. */
CUresult ckt_soft_memory_make(struct ckt_soft_range *range);
/* The reverse; the range must have been removed from the table. */
void ckt_soft_memory_release(const struct ckt_soft_range *range);
/*
 * True where a device may do `bits` with all of [address, address + size), and it is all one
 * allocation or mapped memory.
 */
bool ckt_soft_memory_ok(uint64_t address, uint64_t size, uint8_t bits);
/*
 * True where the address belongs to the devices (an arena or a cuMemAddressReserve range), mapped
 * or not.
 */
bool ckt_soft_memory_is_device_space(uint64_t address);
/* vmm.c: the part of it that is cuMemAddressReserve's */
bool ckt_soft_vmm_reserved(uint64_t address);
/* vmm.c: drops a mapping's hold on its physical memory. */
void ckt_soft_physical_put(struct ckt_soft_physical *physical);

/* ---- waits.c */

/*
 * Where CRICKET_SOFT_WAITS says so: before a context loads code, and before a stream takes a
 * kernel.
 */
void ckt_soft_waits_load(struct ckt_soft_context *context);
void ckt_soft_waits_launch(struct ckt_soft_stream *stream);
/* What the list (NULL: none) names: 1 load, 2 launch. */
unsigned ckt_soft_waits_parse(const char *list);

/* ---- pool.c */

/* The program has waited: what pools should not keep goes. */
void ckt_soft_pools_settle(void);
/* Waits for all that pools keep on the device and gives it back; false where that is nothing. */
bool ckt_soft_pools_release(const struct ckt_soft_device *device);
void ckt_soft_pools_forget(const struct ckt_soft_context *context);
/* Memory of a pool goes that was not freed on a stream. */
void ckt_soft_pool_forget(const struct ckt_soft_range *range);

/* ---- stream.c */

struct ckt_soft_command;

/*
 * Work to do on a stream; runs on the stream's thread, or on the caller's when the stream is idle
 * and CKT_SOFT_INLINE is given.
 */
typedef void (*ckt_soft_work)(struct ckt_soft_context *context, void *payload);

enum {
	CKT_SOFT_INLINE = 1, /* short work: may run in the call */
	CKT_SOFT_ALWAYS = 2, /* also after a device fault */
	CKT_SOFT_BLOCK = 4,  /* return when it has run */
};

struct ckt_soft_stream {
	struct ckt_soft_object object;
	struct ckt_soft_context *context; /* referenced */
	unsigned flags;
	int priority;
	uint64_t id;
	struct ckt_soft_stream *next, **link; /* in context->streams, under submit_lock */
	pthread_t owner;                      /* per-thread default streams: whose */
	bool per_thread;
	pthread_mutex_t lock; /* everything below */
	pthread_cond_t work, done;
	struct ckt_soft_command *head, **tail;
	uint64_t submitted, completed; /* tickets */
	bool has_thread, closing;
	CUstreamAttrValue attributes[32];
	unsigned attributes_set; /* a bit each */
};

/*
 * Stream of a handle with a reference; the special ones are those of the context, any other may be
 * another context's. CUDA_ERROR_INVALID_HANDLE.
 */
CUresult ckt_soft_stream_get(
	struct ckt_soft_context *context, CUstream handle, struct ckt_soft_stream **ret_stream);
/* As cudacommon/ numbers it, in the current context; with a reference too. */
CUresult ckt_soft_stream_by_number(uint64_t number, struct ckt_soft_stream **ret_stream);
/* Work that does nothing: its place in the stream is what counts. */
void ckt_soft_nothing(struct ckt_soft_context *context, void *payload);
/* Copies payload.  wait_for/wait_ticket: a further condition, or NULL. */
CUresult ckt_soft_stream_submit(struct ckt_soft_stream *stream, ckt_soft_work run,
	const void *payload, size_t payload_bytes, unsigned flags, struct ckt_soft_stream *wait_for,
	uint64_t wait_ticket, uint64_t *ret_ticket);
void ckt_soft_stream_wait(struct ckt_soft_stream *stream, uint64_t ticket);
bool ckt_soft_stream_reached(struct ckt_soft_stream *stream, uint64_t ticket);
CUresult ckt_soft_stream_create(struct ckt_soft_context *context, unsigned flags, int priority,
	struct ckt_soft_stream **ret_stream);
/* 0 for the legacy default stream, else its handle: as cudacommon/ knows it. */
static inline uint64_t ckt_soft_stream_number(const struct ckt_soft_stream *stream)
{
	return stream == stream->context->legacy ? 0 : stream->object.handle;
}
/* No more work; its thread ends once the queue is empty. */
void ckt_soft_stream_close(struct ckt_soft_stream *stream);
/* Out of its context's list; may be called more than once. */
void ckt_soft_stream_unlink(struct ckt_soft_stream *stream);
/*
 * event.c: work behind all that the context's streams have been given so far, and ahead of nothing.
 */
CUresult ckt_soft_context_behind(struct ckt_soft_context *context, ckt_soft_work run,
	const void *payload, size_t payload_bytes);
/* The _ptds and _ptsz entry points: while > 0, stream 0 means the thread's own default stream. */
extern __thread int ckt_soft_per_thread_default;
/*
 * The calling thread launches a graph: all of it goes to one stream, also what belongs to another
 * context than that.
 */
extern __thread bool ckt_soft_in_graph;
/*
 * The calling thread runs a function of the program that a stream came to: it may not ask the
 * driver for anything.
 */
extern __thread bool ckt_soft_in_host_function;

/* ---- module.c, fatbin.c, link.c, library.c, function.c */

struct ckt_soft_function {
	struct ckt_soft_object object;
	struct ckt_soft_module *module; /* alive as long as its functions have handles */
	const struct ckt_ptx_function *code;
	const struct ckt_ptx_function_info *info;
	unsigned capability; /* of the device */
	atomic_int max_dynamic_shared, carveout, non_portable_cluster, cluster_policy;
	atomic_int cluster_set[3];
	atomic_bool refusal_said, loaded, waited;
	uint64_t code_base; /* of what a lazy driver has loaded; 0: nothing */
};

struct ckt_soft_module {
	struct ckt_soft_object object;
	struct ckt_soft_context *context;     /* referenced */
	struct ckt_soft_module *next, **link; /* in context->modules */
	struct ckt_ptx_module *code;
	struct ckt_soft_function **functions;
	size_t n_functions;
	uint64_t globals_base; /* 0: none */
	bool from_library;
};

/* PTX texts to be linked together; made by fatbin.c from whatever an image is. */
struct ckt_soft_texts {
	struct ckt_ptx_text *texts;
	char **buffers; /* texts[i].text, owned */
	size_t n, n_max;
};

void ckt_soft_texts_fini(struct ckt_soft_texts *texts);
/* Adds a copy of text; strips NULs at its end. */
CUresult ckt_soft_texts_add(
	struct ckt_soft_texts *texts, const char *text, size_t size_bytes, const char *name);
/*
 * What an image holds for a device: PTX text, a fat binary (wrapper or container), plain or
 * compressed.  size_bytes may be SIZE_MAX where only the image itself tells.  On failure `log` gets
 * one line.
 */
CUresult ckt_soft_image_texts(const void *image, size_t size_bytes, unsigned capability,
	struct ckt_soft_texts *texts, char *log, size_t log_size_bytes);
/*
 * The PTX of every fat binary in a host object or archive; one without any is ignored, with a debug
 * line.
 */
CUresult ckt_soft_archive_texts(const void *data, size_t size_bytes, unsigned capability,
	struct ckt_soft_texts *texts, const char *name, char *log, size_t log_size_bytes);
/*
 * Whether a container is one like the device runtime's: code for the capability, but PTX only for
 * later ones.
 */
bool ckt_soft_image_is_library(const void *image, size_t size_bytes, unsigned capability);
/* A fat binary container with all the texts as one linked unit; malloc'd. */
CUresult ckt_soft_image_pack(const struct ckt_soft_texts *texts, unsigned capability,
	void **ret_image, size_t *ret_size_bytes);
CUresult ckt_soft_file_read(const char *path, void **ret_data, size_t *ret_size_bytes);

enum { CKT_SOFT_LOG_MAX = 1024 };

/* JIT options as cuModuleLoadDataEx and cuLinkCreate take them. */
struct ckt_cudacommon_jit;

/* The capability that the options ask for; false, and 0, where they ask for none. */
bool ckt_soft_jit_target(const struct ckt_cudacommon_jit *jit, unsigned *ret_target);
/* Whether a text compiled with the options would load on a device. */
CUresult ckt_soft_jit_check(const struct ckt_cudacommon_jit *jit, unsigned capability);
void ckt_soft_jit_finish(const struct ckt_cudacommon_jit *jit, const char *error);
/*
 * Whether the caller learns from its log that there is nothing for the device: it may have
 * something else to load, so nobody else is told.
 */
bool ckt_soft_jit_tells(const struct ckt_cudacommon_jit *jit, CUresult result);

/* Parses; on failure writes one line to log and returns CUDA's code. */
CUresult ckt_soft_code_load(const struct ckt_soft_texts *texts, unsigned capability,
	struct ckt_ptx_module **ret_code, char *log, size_t log_size_bytes);
/* Takes over code, also on failure. */
CUresult ckt_soft_module_create(struct ckt_soft_context *context, struct ckt_ptx_module *code,
	bool from_library, struct ckt_soft_module **ret_module);
void ckt_soft_module_close(struct ckt_soft_module *module);
/* Whether a managed variable of the context's modules lies there. */
bool ckt_soft_module_managed_at(struct ckt_soft_context *context, uint64_t address);
/* CUDA_MODULE_LOADING=EAGER. */
bool ckt_soft_is_eager(void);
/* Before the function is used: a lazy driver loads it now. */
CUresult ckt_soft_function_load(struct ckt_soft_function *function);
CUresult ckt_soft_module_global(struct ckt_soft_module *module, const char *name, bool managed_only,
	CUdeviceptr *ret_address, size_t *ret_size);
struct ckt_soft_function *ckt_soft_module_function(
	struct ckt_soft_module *module, const char *name);
/*
 * The function with a reference, where the handle is a CUfunction, or a CUkernel for the given
 * context.
 */
CUresult ckt_soft_function_get(CUfunction handle, struct ckt_soft_context *context,
	struct ckt_soft_function **ret_function);
/*
 * CUDA_ERROR_INVALID_PTX, said once, of a kernel with an instruction that the interpreter refuses:
 * wherever one is asked for or launched.
 */
CUresult ckt_soft_function_usable(const struct ckt_ptx_function_info *info, atomic_bool *said);
CUresult ckt_soft_function_attribute(
	const struct ckt_soft_function *function, CUfunction_attribute attribute, int *ret_value);
CUresult ckt_soft_function_set_attribute(struct ckt_soft_function *function,
	const struct ckt_soft_device *device, CUfunction_attribute attribute, int value);
/* Settings as they are after loading. */
void ckt_soft_function_defaults(
	struct ckt_soft_function *function, const struct ckt_soft_device *device);
void ckt_soft_function_copy_settings(
	struct ckt_soft_function *to, const struct ckt_soft_function *from);
/*
 * library.c: the kernel's function in that context (loaded there first where need be), with a
 * reference.
 */
CUresult ckt_soft_kernel_function(
	CUkernel handle, struct ckt_soft_context *context, struct ckt_soft_function **ret_function);
void ckt_soft_libraries_forget(struct ckt_soft_context *context);

/* ---- launch.c: what is checked of a launch in the call */
CUresult ckt_soft_launch_check(struct ckt_soft_function *function, const unsigned grid[3],
	const unsigned block[3], unsigned dynamic_shared);

/* ---- occupancy.c */

/* Blocks of that many threads and dynamic shared bytes that fit on one multiprocessor; 0: none. */
unsigned ckt_soft_occupancy(const struct ckt_soft_function *function,
	const struct ckt_soft_device *device, unsigned threads, size_t dynamic_shared);
