/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels and variables that the program registered; module.c loads them. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cuda.h>

/* One word per device, allocated at first use and never freed. */
typedef _Atomic(_Atomic uint64_t *) ckt_rt_slots;

struct ckt_rt_kernel {
	/* the stub's address, or the CUkernel itself for a kernel from cudaLibraryGetKernel */
	const void *host;
	const char *name;             /* points into the program's image */
	struct ckt_rt_module *module; /* NULL: not registered, or no longer */
	struct ckt_rt_kernel *next;   /* next kernel of the module */
	_Atomic(CUkernel) kernel;
	ckt_rt_slots functions; /* CUfunction in the device's primary context */
};

struct ckt_rt_variable {
	const void *host;
	/* where the program keeps the address of a managed variable; NULL for other variables */
	void **managed;
	const char *name;
	struct ckt_rt_module *module;
	struct ckt_rt_variable *next;
	size_t size;            /* the compiler's value; 0 for an array of unknown size */
	ckt_rt_slots addresses; /* in the device's primary context */
};

/*
 *	REGISTERED --first use--> library loaded (cuLibrary*)  --unregister--> unloaded
 *		   \--driver has no cuLibrary*--> one CUmodule per device
 *
 * Modules and records are never freed: nvcc's stubs keep pointers to kernel records, and an address
 * that is registered again finds its record.
 */
struct ckt_rt_module {
	const void *image; /* fat binary */
	/*
	 * -rdc=true: relocatable fat binaries to link if image does not fit the device; ends with
	 * NULL
	 */
	const void *const *prelinked;
	pthread_mutex_t lock; /* held while loading */
	_Atomic(CUlibrary) library;
	_Atomic bool by_device; /* the driver has no libraries */
	bool gone;              /* unregistered; protected by lock */
	bool exit_noted;        /* protected by lock */
	bool told;              /* the load error was logged; protected by lock */
	/* owned by module.c; NULL until a module with parts is loaded; protected by lock */
	struct ckt_rt_link_log *link_log;
	ckt_rt_slots modules; /* a CUmodule per device, if by_device */
	struct ckt_rt_kernel *kernels;
	struct ckt_rt_variable *variables;
	struct ckt_rt_module *next;
};

/* Look-ups take no lock; NULL if nothing is registered. */
struct ckt_rt_kernel *ckt_rt_kernel_find(const void *host);
struct ckt_rt_variable *ckt_rt_variable_find(const void *host);
/* The same for kernels, but also NULL for kernels that are no longer registered. */
struct ckt_rt_kernel *ckt_rt_kernel_living(const void *host);
/* Finds a managed variable by its address, if that is known; takes a lock. */
struct ckt_rt_variable *ckt_rt_managed_find(const void *address);
/* Registers a driver's kernel, so that launches accept it; NULL if there is no memory. */
struct ckt_rt_kernel *ckt_rt_kernel_adopt(CUkernel kernel);
/*
 * Searches for the stub of a driver's function or kernel (either may be NULL); NULL if there is
 * none.
 */
const void *ckt_rt_kernel_host(CUfunction function, CUkernel handle);
/* Forgets the cached values for a device whose primary context is gone. */
void ckt_rt_modules_reset(int device);
