/* SPDX-License-Identifier: Apache-2.0 */
/* Formats of modules and linker inputs; see module_check.h. */
#include "server/worker/module/module_check.h"

#include <ar.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/worker/module/module_binary.h"
#include "server/worker/module/elf_check.h"

static CUresult refuse(
	struct ckt_module_check *check, CUresult result, const char *what, const char *why)
{
	snprintf(check->why, sizeof check->why, "%s %s", what, why);
	return result;
}

static uint64_t word(const uint8_t *p, unsigned bytes)
{
	uint64_t v = 0;
	memcpy(&v, p, bytes);
	return v;
}

/* What the device's printf calls is an undefined symbol of machine code, and a function of PTX. */
static bool calls_printf(const uint8_t *data, size_t size)
{
	static const char name[] = "vprintf";
	return memmem(data, size, name, sizeof name - 1) != NULL;
}

/* ---- Text */

static bool is_text(const uint8_t *data, size_t size)
{
	enum { START = 3 };
	for (size_t i = 0; i < size && data[i]; i++) {
		bool blank = data[i] == '\n' || data[i] == '\r' || data[i] == '\t' ||
			data[i] == '\f' || data[i] == '\v';
		if ((data[i] < ' ' && !blank) || data[i] == 0x7f)
			return false;
		/* Comments may be in any language, but a text does not start with such a byte. */
		if (i < START && data[i] >= 0x80)
			return false;
	}
	return true;
}

/* ---- Containers */

/* Checks that the header's offsets of names and options lie inside the header. */
static bool header_good(const struct ckt_binary_entry *entry)
{
	enum { OPTIONS = 20, NAME = 32 };
	uint64_t size = entry->header_size, options = word(entry->header + OPTIONS, 4),
		 name = word(entry->header + NAME, 4);
	if (name > size || word(entry->header + NAME + 4, 4) > size - name)
		return false;
	if (!options)
		return true;
	if (options > size || size - options < 8)
		return false;
	uint64_t text = word(entry->header + options, 4);
	return text <= size && word(entry->header + options + 4, 4) <= size - text;
}

/*
 * Whether the driver could choose the entry for the GPU.  Other entries (intermediate code, which
 * libraries hold encrypted) are for the linker; only their size can be checked.
 */
static bool matters(const struct ckt_binary_entry *entry, const struct ckt_module_check *check)
{
	if (entry->kind != CKT_BINARY_KIND_CODE)
		return entry->kind == CKT_BINARY_KIND_PTX;
	return !check->capability || entry->capability / 10 == check->capability / 10;
}

static CUresult check_payload(const struct ckt_binary_entry *entry, const uint8_t *data,
	uint64_t size, struct ckt_module_check *check)
{
	const char *why = entry->kind == CKT_BINARY_KIND_CODE ? ckt_elf_check(data, size) : NULL;
	check->prints = check->prints || calls_printf(data, size);
	if (!why && entry->kind == CKT_BINARY_KIND_PTX && !is_text(data, size))
		why = "is not text";
	return why ? refuse(check, CUDA_ERROR_INVALID_IMAGE,
			     entry->kind == CKT_BINARY_KIND_CODE ? "machine code in the fat binary"
								 : "PTX in the fat binary",
			     why)
		   : CUDA_SUCCESS;
}

static CUresult check_entry(const struct ckt_binary_entry *entry, struct ckt_module_check *check)
{
	if (!header_good(entry))
		return refuse(check, CUDA_ERROR_INVALID_IMAGE, "an entry of the fat binary",
			"has names that lie outside the entry");
	check->prints |= entry->kind != CKT_BINARY_KIND_CODE && entry->kind != CKT_BINARY_KIND_PTX;
	if (!matters(entry, check))
		return !entry->compressed || entry->unpacked <= check->unpacked_max
			? CUDA_SUCCESS
			: refuse(check, CUDA_ERROR_OUT_OF_MEMORY, "an entry of the fat binary",
				  "unpacks to more than the session may have");
	if (!entry->compressed)
		return check_payload(entry, entry->payload, entry->payload_size, check);
	uint8_t *data;
	int error = ckt_module_binary_unpack(entry, check->unpacked_max, &data);
	if (error == -EFBIG)
		return refuse(check, CUDA_ERROR_OUT_OF_MEMORY, "an entry of the fat binary",
			"unpacks to more than the session may have");
	if (error == -ENOMEM)
		return refuse(check, CUDA_ERROR_OUT_OF_MEMORY, "an entry of the fat binary",
			"cannot be unpacked: no memory");
	if (error)
		return refuse(check, CUDA_ERROR_INVALID_IMAGE, "an entry of the fat binary",
			"does not unpack to its stated size");
	if (entry->unpacked > check->unpacked)
		check->unpacked = entry->unpacked;
	CUresult result = check_payload(entry, data, entry->unpacked, check);
	free(data);
	return result;
}

static CUresult check_container(const uint8_t *image, size_t size, struct ckt_module_check *check)
{
	struct ckt_binary_cursor cursor;
	struct ckt_binary_entry entry;
	if (!ckt_module_binary_open(image, size, &cursor))
		return refuse(check, CUDA_ERROR_INVALID_IMAGE, "the fat binary",
			"claims to be longer than what was sent");
	int more;
	CUresult result = CUDA_SUCCESS;
	while (!result && (more = ckt_module_binary_next(&cursor, &entry)))
		result = more < 0
			? refuse(check, CUDA_ERROR_INVALID_IMAGE, "an entry of the fat binary",
				  "claims to be longer than the fat binary")
			: check_entry(&entry, check);
	return result;
}

CUresult ckt_module_check(const uint8_t *image, size_t size, struct ckt_module_check *check)
{
	uint32_t magic = size < 4 ? 0 : (uint32_t)word(image, 4);
	if (magic == CKT_BINARY_WRAPPER_MAGIC)
		return refuse(check, CUDA_ERROR_INVALID_IMAGE, "the module",
			"is a pointer into the client's memory, which only a client "
			"can follow");
	if (magic == CKT_BINARY_MAGIC)
		return check_container(image, size, check);
	check->prints = calls_printf(image, size);
	if (ckt_elf_is(image, size)) {
		const char *why = ckt_elf_check(image, size);
		return why ? refuse(check, CUDA_ERROR_INVALID_IMAGE, "the machine code", why)
			   : CUDA_SUCCESS;
	}
	return is_text(image, size) ? CUDA_SUCCESS
				    : refuse(check, CUDA_ERROR_INVALID_IMAGE, "the module",
					      "is neither PTX nor machine code nor a "
					      "fat binary");
}

/* ---- The linker's inputs */

struct object {
	struct ckt_module_check *check;
	CUresult result;
};

/* Checks the consecutive fat binaries of a host object. */
static void check_containers(void *opaque, const struct ckt_elf_section *section)
{
	struct object *object = opaque;
	if ((strcmp(section->name, ".nv_fatbin") && strcmp(section->name, "__nv_relfatbin")) ||
		!section->data)
		return;
	const uint8_t *at = section->data, *end = at + section->size;
	while (!object->result && at < end) {
		struct ckt_binary_cursor cursor;
		if (!*at) { /* padding between them */
			at++;
			continue;
		}
		if (!ckt_module_binary_open(at, (size_t)(end - at), &cursor))
			object->result = refuse(object->check, CUDA_ERROR_INVALID_IMAGE,
				"a fat binary in the object",
				"claims to be longer than the object");
		else
			object->result =
				check_container(at, (size_t)(cursor.end - at), object->check);
		at = cursor.end;
	}
}

static CUresult check_object(const uint8_t *image, size_t size, struct ckt_module_check *check)
{
	struct object object = {.check = check};
	const char *why = ckt_elf_check(image, size);
	if (why)
		return refuse(check, CUDA_ERROR_INVALID_IMAGE, "the object", why);
	ckt_elf_each_section(image, size, check_containers, &object);
	return object.result;
}

static bool is_archive(const uint8_t *image, size_t size)
{
	return size >= SARMAG && !memcmp(image, ARMAG, SARMAG);
}

/* A decimal number in a field of that length, padded with spaces. */
static bool number(const char *text, size_t length, uint64_t *ret_value)
{
	uint64_t value = 0;
	size_t i = 0;
	for (; i < length && text[i] >= '0' && text[i] <= '9'; i++)
		value = value * 10 + (uint64_t)(text[i] - '0');
	bool digits = i > 0;
	for (; i < length; i++)
		digits &= text[i] == ' ';
	*ret_value = value;
	return digits;
}

static CUresult check_archive(const uint8_t *image, size_t size, struct ckt_module_check *check)
{
	CUresult result = CUDA_SUCCESS;
	size_t at = SARMAG;
	while (!result && at < size) {
		struct ar_hdr header;
		uint64_t bytes;
		if (size - at < sizeof header)
			return refuse(check, CUDA_ERROR_INVALID_IMAGE, "the library",
				"ends within a member");
		memcpy(&header, image + at, sizeof header);
		at += sizeof header;
		if (memcmp(header.ar_fmag, ARFMAG, 2) ||
			!number(header.ar_size, sizeof header.ar_size, &bytes) || bytes > size - at)
			return refuse(check, CUDA_ERROR_INVALID_IMAGE, "a member of the library",
				"claims to be longer than the library");
		/*
		 * "/" and "//" are the tables of symbols and of long names.  A member with a long
		 * name is "/" and a digit.
		 */
		bool table = header.ar_name[0] == '/' &&
			(header.ar_name[1] < '0' || header.ar_name[1] > '9');
		if (!table)
			result = check_object(image + at, bytes, check);
		at += bytes + (bytes & 1 && bytes < size - at);
	}
	return result;
}

/* LLVM's bitcode and NVIDIA's own form of it; neither contains tables of offsets to check. */
static bool is_intermediate(const uint8_t *image, size_t size)
{
	static const uint8_t bitcode[4] = {'B', 'C', 0xc0, 0xde},
			     wrapped[4] = {0xde, 0xc0, 0x17, 0x0b},
			     nvvm[4] = {0xed, 0x43, 0x4e, 0x7f};
	return size >= 4 &&
		(!memcmp(image, bitcode, 4) || !memcmp(image, wrapped, 4) ||
			!memcmp(image, nvvm, 4));
}

CUresult ckt_module_check_input(
	CUjitInputType type, const uint8_t *image, size_t size, struct ckt_module_check *check)
{
	if (is_archive(image, size))
		return check_archive(image, size, check);
	if (type == CU_JIT_INPUT_NVVM && is_intermediate(image, size))
		return CUDA_SUCCESS;
	if (type == CU_JIT_INPUT_PTX && !is_text(image, size))
		return refuse(check, CUDA_ERROR_INVALID_IMAGE, "the linker's input", "is not PTX");
	if (ckt_elf_is(image, size))
		return check_object(image, size, check);
	return ckt_module_check(image, size, check);
}
