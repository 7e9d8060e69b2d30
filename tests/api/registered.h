/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Device code that is registered with the runtime as nvcc's host code does it: a fat binary in
 * memory with one PTX text.
 *
 *	void **handle = registered(ptx, sizeof(ptx), 7, 8);	(the text's .version, as two numbers)
 *	FUNCTION(__cudaRegisterVar)(handle, (char *)&shadow, (char *)"table", "table", 0, 16, 0, 0);
 *	FUNCTION(__cudaRegisterFatBinaryEnd)(handle);
 */
#pragma once

#include "runtime.h"

/* Not declared for C. */
void **__cudaRegisterFatBinary(void *);
void __cudaRegisterFatBinaryEnd(void **);
void __cudaUnregisterFatBinary(void **);
void __cudaRegisterVar(void **, char *, char *, const char *, int, size_t, int, int);
void __cudaRegisterManagedVar(void **, void **, char *, const char *, int, size_t, int, int);
void __cudaRegisterHostVar(void **, const char *, char *, size_t);
void __cudaRegisterUnifiedTable(void **, void *);
void __cudaRegisterFunction(
	void **, const char *, char *, const char *, int, uint3 *, uint3 *, dim3 *, dim3 *, int *);
char __cudaInitModule(void **);
void *__cudaGetProcAddress(void);

/* The layouts are those of softgpu/module/fatbin.c. */
struct registered_wrapper {
	uint32_t magic, version;
	const void *container;
	void *name;
};

struct registered_container {
	uint32_t magic;
	uint16_t version, header_size;
	uint64_t size;
	uint16_t kind, entry_version;
	uint32_t entry_header_size;
	uint64_t padded_size;
	uint32_t compressed_size, options_at;
	uint16_t minor, major;
	uint32_t capability;
	uint64_t unknown, flags, unknown_too, uncompressed_size, name_at, name;
	char text[];
};

/* Never freed, as the program's own image is not.  size counts the text's NUL. */
static inline struct registered_wrapper *registered_image(
	const char *ptx, size_t size, int major, int minor)
{
	size_t padded = (size + 7) & ~(size_t)7;
	struct registered_container *c =
		(struct registered_container *)calloc(1, sizeof(*c) + padded);
	struct registered_wrapper *w = (struct registered_wrapper *)calloc(1, sizeof(*w));
	c->magic = 0xba55ed50;
	c->version = 1;
	c->header_size = 16;
	c->size = sizeof(*c) - 16 + padded;
	c->kind = 1;
	c->entry_version = 0x101;
	c->entry_header_size = sizeof(*c) - 16;
	c->padded_size = padded;
	c->options_at = 0x40;
	c->minor = (uint16_t)minor;
	c->major = (uint16_t)major;
	c->capability = 75;
	c->flags = 0x11;
	c->name_at = 0x48;
	memcpy(c->text, ptx, size);
	w->magic = 0x466243b1;
	w->version = 1;
	w->container = c;
	return w;
}

static inline void **registered(const char *ptx, size_t size, int major, int minor)
{
	return FUNCTION(__cudaRegisterFatBinary)(registered_image(ptx, size, major, minor));
}
