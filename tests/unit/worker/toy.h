/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of toy.c: each gives a CUresult. */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum toy_how { TOY_LINKED, TOY_ASKED, TOY_ASYNC, TOY_PER_THREAD, TOY_PITCH };
enum { TOY_HOWS = TOY_PITCH + 1 };

#define TOY_FUNCTIONS                                                                         \
	TOY_FUNCTION(void *, toy_entry, const char *name, int version, uint64_t flags)        \
	TOY_FUNCTION(int, toy_alloc, enum toy_how how, size_t size, uint64_t *ret_address)    \
	TOY_FUNCTION(int, toy_free, uint64_t address, int async)                              \
	TOY_FUNCTION(int, toy_info, size_t *free_bytes, size_t *total)                        \
	TOY_FUNCTION(int, toy_host, size_t size, void **ret_address)                          \
	TOY_FUNCTION(int, toy_host_free, void *address)                                       \
	TOY_FUNCTION(int, toy_managed, size_t size, uint64_t *ret_address)                    \
	TOY_FUNCTION(int, toy_physical, size_t size, uint64_t *ret_handle)                    \
	TOY_FUNCTION(int, toy_physical_free, uint64_t handle)                                 \
	TOY_FUNCTION(int, toy_stream, void **ret_stream)                                      \
	TOY_FUNCTION(int, toy_stream_destroy, void *stream)                                   \
	TOY_FUNCTION(int, toy_event, void **ret_event)                                        \
	TOY_FUNCTION(int, toy_event_destroy, void *event)                                     \
	TOY_FUNCTION(int, toy_limit, size_t stack_bytes)                                      \
	TOY_FUNCTION(int, toy_code_load, int heap, void **ret_library)                        \
	TOY_FUNCTION(int, toy_code_run, void *library, const char *kernel)                    \
	TOY_FUNCTION(int, toy_code_variable, void *library, uint64_t *ret_address)            \
	TOY_FUNCTION(int, toy_code_unload, void *library)                                     \
	TOY_FUNCTION(int, toy_code_module, void **ret_module)                                 \
	TOY_FUNCTION(int, toy_code_module_unload, void *module)                               \
	TOY_FUNCTION(int, toy_devices, int *ret_count, int *ret_first, int *ret_current)      \
	TOY_FUNCTION(int, toy_range, uint64_t address, uint64_t *ret_start, size_t *ret_size) \
	TOY_FUNCTION(int, toy_run, uint64_t address, uint32_t value, uint64_t *ret_variable)

#define TOY_FUNCTION(type, name, ...) type name(__VA_ARGS__);
TOY_FUNCTIONS
#undef TOY_FUNCTION

/*
 * The library as the worker opens it (test_inside.c): its functions by name, the library opened at
 * the first use.
 */
struct toy {
#define TOY_FUNCTION(type, name, ...) type (*name)(__VA_ARGS__);
	TOY_FUNCTIONS
#undef TOY_FUNCTION
};
const struct toy *toy_library(void);
