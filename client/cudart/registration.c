/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Registers fat binaries, kernels and variables for nvcc's host code, and finds them again.
 *
 * The registration interface, as nvcc 12 and 13 use it, is one of the three undocumented formats
 * that Cricket relies on.  A fat binary comes in a wrapper with magic 0x466243b1 and version 1.
 * Version 2 is for -rdc=true: its fourth word points to a list of the relocatable fat binaries that
 * were linked.  A wrapper of another version is refused with a log line.
 *
 * Look-ups read an open-addressing table without a lock.  Writers take a lock, and publish a larger
 * table when needed.  Old tables stay; together they are no larger than the last one.  Records are
 * never freed, see registration.h.
 */
#include <stdlib.h>

#include "client/cudart/registration.h"
#include "base/fork.h"
#include "base/log.h"
#include "client/cudart/api.h"
#include "client/cudart/module.h"

enum {
	WRAPPER_MAGIC = 0x466243b1,
	WRAPPER_PLAIN = 1,
	WRAPPER_LINKED = 2,
	TABLE_FIRST_BITS = 8,
};

struct wrapper {
	uint32_t magic;
	uint32_t version;
	const void *image;
	const void *prelinked; /* with version 2; version 1 has a file name here */
};

struct entry {
	_Atomic uintptr_t key; /* 0: free */
	void *_Atomic record;
};

struct table {
	unsigned bits;
	unsigned used; /* protected by table_lock */
	struct entry entries[];
};

static struct table *_Atomic kernel_table;
static struct table *_Atomic variable_table;
static CKT_LOCK(table_lock);
static struct ckt_rt_module *modules; /* protected by table_lock */

static void forked(void)
{
	for (struct ckt_rt_module *module = modules; module; module = module->next)
		pthread_mutex_init(&module->lock, NULL);
}
CKT_IN_CHILD(forked);

static size_t hash(uintptr_t key, unsigned bits)
{
	/* Stubs are 16-byte aligned: the multiplication moves the middle bits to the top. */
	return (size_t)((key >> 2) * UINT64_C(0x9e3779b97f4a7c15) >> (64 - bits));
}

static void *table_find(const struct table *table, uintptr_t key)
{
	if (!table || !key)
		return NULL;
	size_t mask = ((size_t)1 << table->bits) - 1;
	for (size_t i = hash(key, table->bits);; i = (i + 1) & mask) {
		uintptr_t found =
			atomic_load_explicit(&table->entries[i].key, memory_order_acquire);
		if (found == key)
			return atomic_load_explicit(
				&table->entries[i].record, memory_order_acquire);
		if (!found)
			return NULL;
	}
}

/* Precondition: table_lock held, key is not in the table, the table has room. */
static void table_put(struct table *table, uintptr_t key, void *record)
{
	size_t mask = ((size_t)1 << table->bits) - 1;
	size_t i = hash(key, table->bits);
	while (atomic_load_explicit(&table->entries[i].key, memory_order_relaxed))
		i = (i + 1) & mask;
	atomic_store_explicit(&table->entries[i].record, record, memory_order_release);
	atomic_store_explicit(&table->entries[i].key, key, memory_order_release);
	table->used++;
}

/* Precondition: table_lock held, key is not in the table.  False if there is no memory. */
static bool table_add(struct table *_Atomic *where, uintptr_t key, void *record)
{
	struct table *table = atomic_load_explicit(where, memory_order_relaxed);
	if (!table || table->used >= (1u << table->bits) / 2) {
		unsigned bits = table ? table->bits + 1 : TABLE_FIRST_BITS;
		struct table *larger =
			calloc(1, sizeof *larger + sizeof(struct entry) * ((size_t)1 << bits));
		if (!larger)
			return false;
		larger->bits = bits;
		for (size_t i = 0; table && i < (size_t)1 << table->bits; i++) {
			uintptr_t old =
				atomic_load_explicit(&table->entries[i].key, memory_order_relaxed);
			if (old)
				table_put(larger, old,
					atomic_load_explicit(
						&table->entries[i].record, memory_order_relaxed));
		}
		atomic_store_explicit(where, larger, memory_order_release);
		table = larger;
	}
	table_put(table, key, record);
	return true;
}

struct ckt_rt_kernel *ckt_rt_kernel_find(const void *host)
{
	return table_find(
		atomic_load_explicit(&kernel_table, memory_order_acquire), (uintptr_t)host);
}

struct ckt_rt_kernel *ckt_rt_kernel_living(const void *host)
{
	struct ckt_rt_kernel *kernel = ckt_rt_kernel_find(host);
	return kernel &&
			(__atomic_load_n(&kernel->module, __ATOMIC_ACQUIRE) ||
				atomic_load(&kernel->kernel))
		? kernel
		: NULL;
}

struct ckt_rt_variable *ckt_rt_variable_find(const void *host)
{
	return table_find(
		atomic_load_explicit(&variable_table, memory_order_acquire), (uintptr_t)host);
}

struct ckt_rt_variable *ckt_rt_managed_find(const void *address)
{
	struct ckt_rt_variable *found = NULL;
	pthread_mutex_lock(&table_lock);
	for (struct ckt_rt_module *module = modules; module && !found && address;
		module = module->next) {
		for (struct ckt_rt_variable *variable = module->variables; variable && !found;
			variable = variable->next)
			found = variable->managed && *variable->managed == address ? variable
										   : NULL;
	}
	pthread_mutex_unlock(&table_lock);
	return found;
}

/*
 * Finds or makes the record of an address.  Precondition: table_lock held.  NULL if there is no
 * memory.
 */
static struct ckt_rt_kernel *kernel_record(const void *host)
{
	struct ckt_rt_kernel *kernel = ckt_rt_kernel_find(host);
	if (kernel || !host)
		return kernel;
	kernel = calloc(1, sizeof *kernel);
	if (!kernel)
		return NULL;
	kernel->host = host;
	if (!table_add(&kernel_table, (uintptr_t)host, kernel)) {
		free(kernel);
		return NULL;
	}
	return kernel;
}

struct ckt_rt_kernel *ckt_rt_kernel_adopt(CUkernel handle)
{
	pthread_mutex_lock(&table_lock);
	struct ckt_rt_kernel *kernel = kernel_record(handle);
	if (kernel && !kernel->module)
		atomic_store(&kernel->kernel, handle);
	pthread_mutex_unlock(&table_lock);
	return kernel;
}

const void *ckt_rt_kernel_host(CUfunction function, CUkernel handle)
{
	const void *found = NULL;
	pthread_mutex_lock(&table_lock);
	struct table *table = atomic_load(&kernel_table);
	for (size_t i = 0; table && i < (size_t)1 << table->bits; i++) {
		struct ckt_rt_kernel *kernel = atomic_load(&table->entries[i].record);
		_Atomic uint64_t *functions = kernel ? atomic_load(&kernel->functions) : NULL;
		bool same = kernel && handle && atomic_load(&kernel->kernel) == handle;
		for (int d = 0; !same && function && functions && d < ckt_rt_device_count; d++)
			same = (CUfunction)(uintptr_t)atomic_load(&functions[d]) == function;
		/*
		 * Returns the stub and not the handle from cudaGetKernel; a kernel of a library has
		 * no stub.
		 */
		if (same && kernel->module)
			found = kernel->host;
	}
	pthread_mutex_unlock(&table_lock);
	return found;
}

static void clear_slot(ckt_rt_slots *slots, int device)
{
	_Atomic uint64_t *values = atomic_load(slots);
	if (values)
		atomic_store(&values[device], 0);
}

void ckt_rt_modules_reset(int device)
{
	pthread_mutex_lock(&table_lock);
	for (struct ckt_rt_module *module = modules; module; module = module->next) {
		clear_slot(&module->modules, device);
		for (struct ckt_rt_kernel *kernel = module->kernels; kernel; kernel = kernel->next)
			clear_slot(&kernel->functions, device);
		for (struct ckt_rt_variable *variable = module->variables; variable;
			variable = variable->next)
			clear_slot(&variable->addresses, device);
	}
	/* Kernels of libraries have no module. */
	struct table *table = atomic_load(&kernel_table);
	for (size_t i = 0; table && i < (size_t)1 << table->bits; i++) {
		struct ckt_rt_kernel *kernel = atomic_load(&table->entries[i].record);
		if (kernel && !kernel->module)
			clear_slot(&kernel->functions, device);
	}
	pthread_mutex_unlock(&table_lock);
}

void **__cudaRegisterFatBinary(void *fatCubin);
void __cudaRegisterFatBinaryEnd(void **fatCubinHandle);
void __cudaUnregisterFatBinary(void **fatCubinHandle);
void __cudaRegisterFunction(void **fatCubinHandle, const char *hostFun, char *deviceFun,
	const char *deviceName, int thread_limit, uint3 *tid, uint3 *bid, dim3 *bDim, dim3 *gDim,
	int *wSize);
void __cudaRegisterVar(void **fatCubinHandle, char *hostVar, char *deviceAddress,
	const char *deviceName, int ext, size_t size, int constant, int global);
void __cudaRegisterManagedVar(void **fatCubinHandle, void **hostVarPtrAddress, char *deviceAddress,
	const char *deviceName, int ext, size_t size, int constant, int global);
void __cudaRegisterHostVar(
	void **fatCubinHandle, const char *deviceName, char *hostVar, size_t size);
void __cudaRegisterUnifiedTable(void **fatCubinHandle, void *table);
char __cudaInitModule(void **fatCubinHandle);
void *__cudaGetProcAddress(void);

CKT_RT_API void **__cudaRegisterFatBinary(void *fatCubin)
{
	const struct wrapper *wrapper = fatCubin;
	struct ckt_rt_module *module = calloc(1, sizeof *module);
	if (!module)
		return NULL;
	pthread_mutex_init(&module->lock, NULL);
	if (wrapper->magic == WRAPPER_MAGIC &&
		(wrapper->version == WRAPPER_PLAIN || wrapper->version == WRAPPER_LINKED)) {
		module->image = wrapper->image;
		if (wrapper->version == WRAPPER_LINKED)
			module->prelinked = wrapper->prelinked;
	} else {
		/* Its kernels then return cudaErrorInvalidKernelImage. */
		ckt_log_user("a fat binary with wrapper 0x%x version %u: this version of "
			     "Cricket knows only versions 1 and 2",
			wrapper->magic, wrapper->version);
	}
	pthread_mutex_lock(&table_lock);
	module->next = modules;
	modules = module;
	pthread_mutex_unlock(&table_lock);
	return (void **)module;
}

CKT_RT_API void __cudaRegisterFatBinaryEnd(void **fatCubinHandle)
{
}

CKT_RT_API void __cudaRegisterFunction(void **fatCubinHandle, const char *hostFun, char *deviceFun,
	const char *deviceName, int thread_limit, uint3 *tid, uint3 *bid, dim3 *bDim, dim3 *gDim,
	int *wSize)
{
	struct ckt_rt_module *module = (struct ckt_rt_module *)fatCubinHandle;
	if (!module)
		return;
	pthread_mutex_lock(&table_lock);
	struct ckt_rt_kernel *kernel = kernel_record(hostFun);
	/* A stub that several modules register (an inline template) belongs to the first. */
	if (kernel && !kernel->module) {
		kernel->name = deviceName;
		kernel->next = module->kernels;
		module->kernels = kernel;
		__atomic_store_n(&kernel->module, module, __ATOMIC_RELEASE);
	}
	pthread_mutex_unlock(&table_lock);
}

static void register_variable(struct ckt_rt_module *module, const void *host, void **managed,
	const char *name, size_t size)
{
	if (!module || !host)
		return;
	pthread_mutex_lock(&table_lock);
	struct ckt_rt_variable *variable = ckt_rt_variable_find(host);
	if (!variable) {
		variable = calloc(1, sizeof *variable);
		if (variable && !table_add(&variable_table, (uintptr_t)host, variable)) {
			free(variable);
			variable = NULL;
		}
	}
	if (variable && !variable->module) {
		variable->host = host;
		variable->managed = managed;
		variable->name = name;
		variable->size = size;
		variable->next = module->variables;
		module->variables = variable;
		__atomic_store_n(&variable->module, module, __ATOMIC_RELEASE);
	}
	pthread_mutex_unlock(&table_lock);
}

CKT_RT_API void __cudaRegisterVar(void **fatCubinHandle, char *hostVar, char *deviceAddress,
	const char *deviceName, int ext, size_t size, int constant, int global)
{
	register_variable((struct ckt_rt_module *)fatCubinHandle, hostVar, NULL, deviceName, size);
}

CKT_RT_API void __cudaRegisterManagedVar(void **fatCubinHandle, void **hostVarPtrAddress,
	char *deviceAddress, const char *deviceName, int ext, size_t size, int constant, int global)
{
	register_variable((struct ckt_rt_module *)fatCubinHandle, hostVarPtrAddress,
		hostVarPtrAddress, deviceName, size);
}

/* Host variables and tables of unified function pointers: nothing on the host depends on them. */
CKT_RT_API void __cudaRegisterHostVar(
	void **fatCubinHandle, const char *deviceName, char *hostVar, size_t size)
{
}

CKT_RT_API void __cudaRegisterUnifiedTable(void **fatCubinHandle, void *table)
{
}

/* NVIDIA's runtime also returns NULL. */
CKT_RT_API void *__cudaGetProcAddress(void)
{
	return NULL;
}

/* Called before the program uses a managed variable on the host. */
CKT_RT_API char __cudaInitModule(void **fatCubinHandle)
{
	struct ckt_rt_module *module = (struct ckt_rt_module *)fatCubinHandle;
	cudaError_t error = ckt_rt_enter();
	if (!error && module)
		error = ckt_rt_module_managed(module);
	if (error)
		ckt_log_user("cannot create the program's managed variables: %s",
			cudaGetErrorString(error));
	return ckt_rt_return(error) == cudaSuccess;
}

/*
 * Called when the program ends or closes a library.  Records stay for the stubs, and for a library
 * that is opened again.
 */
CKT_RT_API void __cudaUnregisterFatBinary(void **fatCubinHandle)
{
	struct ckt_rt_module *module = (struct ckt_rt_module *)fatCubinHandle;
	if (!module)
		return;
	ckt_rt_module_unload(module);
	pthread_mutex_lock(&table_lock);
	for (struct ckt_rt_kernel *kernel = module->kernels, *next; kernel; kernel = next) {
		next = kernel->next;
		atomic_store(&kernel->kernel, NULL);
		for (int i = 0; i < CKT_DEVICES_MAX && i < ckt_rt_device_count; i++)
			clear_slot(&kernel->functions, i);
		kernel->next = NULL;
		__atomic_store_n(&kernel->module, NULL, __ATOMIC_RELEASE);
	}
	for (struct ckt_rt_variable *variable = module->variables, *next; variable;
		variable = next) {
		next = variable->next;
		for (int i = 0; i < CKT_DEVICES_MAX && i < ckt_rt_device_count; i++)
			clear_slot(&variable->addresses, i);
		variable->next = NULL;
		__atomic_store_n(&variable->module, NULL, __ATOMIC_RELEASE);
	}
	module->kernels = NULL;
	module->variables = NULL;
	for (struct ckt_rt_module **p = &modules; *p; p = &(*p)->next) {
		if (*p == module) {
			*p = module->next;
			break;
		}
	}
	pthread_mutex_unlock(&table_lock);
}
