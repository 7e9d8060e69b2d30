/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Images: what a program loads as a module.
 *
 * A fat binary is a container of PTX texts and machine code for several capabilities.  The layout
 * is not documented.  It was determined from the output of nvcc 13.0's fatbinary, and every step
 * checks it:
 *
 *	wrapper    u32 0x466243b1 | u32 version 1 or 2 | container * | version 2: NULL-terminated array of further containers *
 *	container  u32 0xba55ed50 | u16 version 1 | u16 header size 16 | u64 bytes of entries that follow
 *	entry      u16 kind (1 PTX, 2 machine code) | u16 0x0101 | u32 header size (64 at least) | u64 payload size, padded
 *	           u32 compressed size (0: not compressed) | u32 | u16 minor | u16 major | u32 capability, 80
 *	           u64 | u64 flags | u64 | u64 uncompressed size | options | payload
 *	flags      0x2000 LZ4 block | 0x8000 zstd frame
 *
 * Version 2 of the wrapper is for relocatable device code.  Its further containers are linked if
 * the first container has no suitable entry.  The code reads an address only within the container's
 * own size.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <lz4.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#include "softgpu/module/fatbin.h"
#include "softgpu/context/log.h"
#include "softgpu/ptx/ptx.h"

enum {
	KIND_PTX = 1,
	FLAG_LZ4 = 0x2000,
	FLAG_ZSTD = 0x8000,
	PTX_MAX = 1 << 30, /* a larger text is treated as a damaged length */
	/* a higher ratio is damage too: zstd stores at most 128 KiB in four bytes */
	RATIO_MAX = 32768,
};
#define FLAG_LINKED (1ULL << 62) /* ours: marks entries of cuLinkComplete that belong together */
static const uint32_t wrapper_magic = 0x466243b1, container_magic = 0xba55ed50;

struct container_header {
	uint32_t magic;
	uint16_t version, header_size;
	uint64_t size;
};

struct entry_header {
	uint16_t kind, version;
	uint32_t header_size;
	uint64_t padded_size;
	uint32_t compressed_size, unknown1;
	uint16_t minor, major;
	uint32_t capability;
	uint64_t unknown2, flags, unknown3, uncompressed_size;
};

void ckt_soft_texts_fini(struct ckt_soft_texts *texts)
{
	for (size_t i = 0; i < texts->n; i++)
		free(texts->buffers[i]);
	free(texts->buffers);
	free(texts->texts);
	memset(texts, 0, sizeof(*texts));
}

/* Takes over buffer (NUL-terminated at size_bytes), also on failure. */
static CUresult texts_take(
	struct ckt_soft_texts *texts, char *buffer, size_t size_bytes, const char *name)
{
	if (texts->n == texts->n_max) {
		size_t n = texts->n_max ? 2 * texts->n_max : 4;
		struct ckt_ptx_text *more_texts = realloc(texts->texts, n * sizeof(*more_texts));
		if (more_texts)
			texts->texts = more_texts;
		char **more_buffers = realloc(texts->buffers, n * sizeof(*more_buffers));
		if (more_buffers)
			texts->buffers = more_buffers;
		if (!more_texts || !more_buffers) {
			free(buffer);
			return CUDA_ERROR_OUT_OF_MEMORY;
		}
		texts->n_max = n;
	}
	while (size_bytes && buffer[size_bytes - 1] == '\0')
		size_bytes--;
	texts->buffers[texts->n] = buffer;
	texts->texts[texts->n++] =
		(struct ckt_ptx_text){.text = buffer, .size_bytes = size_bytes, .name = name};
	return CUDA_SUCCESS;
}

CUresult ckt_soft_texts_add(
	struct ckt_soft_texts *texts, const char *text, size_t size_bytes, const char *name)
{
	char *copy = malloc(size_bytes + 1);
	if (!copy)
		return CUDA_ERROR_OUT_OF_MEMORY;
	memcpy(copy, text, size_bytes);
	copy[size_bytes] = '\0';
	return texts_take(texts, copy, size_bytes, name);
}

/* Returns the entry's text, NUL-terminated, or NULL. */
static char *unpack(const struct entry_header *entry, const char *payload, size_t *ret_size)
{
	if (!entry->compressed_size) {
		char *text = malloc(entry->padded_size + 1);
		if (!text)
			return NULL;
		memcpy(text, payload, entry->padded_size);
		text[entry->padded_size] = '\0';
		*ret_size = strlen(text);
		return text;
	}
	/* LZ4's sizes are of type int. */
	if (entry->compressed_size > entry->padded_size || entry->compressed_size > INT_MAX ||
		!entry->uncompressed_size || entry->uncompressed_size > PTX_MAX ||
		entry->uncompressed_size / RATIO_MAX > entry->compressed_size)
		return NULL;
	char *text = malloc(entry->uncompressed_size + 1);
	if (!text)
		return NULL;
	bool good;
	if (entry->flags & FLAG_ZSTD) {
		size_t n = ZSTD_decompress(
			text, entry->uncompressed_size, payload, entry->compressed_size);
		good = !ZSTD_isError(n) && n == entry->uncompressed_size;
	} else {
		int n = LZ4_decompress_safe(
			payload, text, (int)entry->compressed_size, (int)entry->uncompressed_size);
		good = n >= 0 && (uint64_t)n == entry->uncompressed_size;
	}
	if (!good) {
		free(text);
		return NULL;
	}
	text[entry->uncompressed_size] = '\0';
	*ret_size = strlen(text);
	return text;
}

/*
 * Whether PTX for the target can be compiled for the capability.  PTX fits any later capability.
 * With suffix a, it fits the same capability only; with suffix f, the same major number.
 */
static bool target_fits(const char *text, unsigned entry_capability, unsigned capability)
{
	unsigned target = entry_capability;
	char suffix = 0;
	const char *p = strstr(text, ".target");
	if (p && (p = strstr(p, "sm_"))) {
		char *end;
		target = (unsigned)strtoul(p + 3, &end, 10);
		suffix = *end;
	}
	if (suffix == 'a')
		return target == capability;
	if (suffix == 'f')
		return target / 10 == capability / 10 && target <= capability;
	return target <= capability;
}

struct walk {
	const char *at, *end;
};

/*
 * Opens a container.  max_bytes: the number of readable bytes; SIZE_MAX if only the container knows
 * its size.
 */
static bool container_open(const void *image, size_t max_bytes, struct walk *ret_walk)
{
	struct container_header header;
	if (max_bytes < sizeof(header))
		return false;
	memcpy(&header, image, sizeof(header));
	if (header.magic != container_magic || header.version != 1 ||
		header.header_size < sizeof(header) || header.size > (1ULL << 40) ||
		(max_bytes != SIZE_MAX &&
			(header.header_size > max_bytes ||
				header.size > max_bytes - header.header_size)))
		return false;
	ret_walk->at = (const char *)image + header.header_size;
	ret_walk->end = ret_walk->at + header.size;
	return true;
}

/* Returns the next entry.  False at the end, or if the rest is malformed. */
static bool container_next(
	struct walk *walk, struct entry_header *ret_entry, const char **ret_payload)
{
	size_t left = (size_t)(walk->end - walk->at);
	if (left < sizeof(*ret_entry))
		return false;
	memcpy(ret_entry, walk->at, sizeof(*ret_entry));
	if (ret_entry->header_size < sizeof(*ret_entry) || ret_entry->header_size > left ||
		ret_entry->padded_size > left - ret_entry->header_size)
		return false;
	*ret_payload = walk->at + ret_entry->header_size;
	walk->at = *ret_payload + ret_entry->padded_size;
	return true;
}

struct found {
	unsigned n_ptx, n_code, n_damaged;
	char capabilities[128]; /* capabilities of the PTX entries, for messages */
};

/* Includes the suffix from the PTX text: compute_90a is for that GPU only. */
static void note_capability(struct found *found, unsigned capability, const char *text)
{
	size_t used = strlen(found->capabilities);
	const char *p = text ? strstr(text, ".target") : NULL;
	p = p ? strstr(p, "sm_") : NULL;
	p = p ? p + 3 + strspn(p + 3, "0123456789") : "";
	snprintf(found->capabilities + used, sizeof(found->capabilities) - used, " compute_%u%.*s",
		capability, *p == 'a' || *p == 'f', p);
}

/*
 * Adds the best PTX of one container, or every text of a linked unit.  Returns how many it added,
 * or -1: no memory.
 */
static int container_texts(
	struct walk walk, unsigned capability, struct ckt_soft_texts *texts, struct found *found)
{
	struct entry_header entry;
	const char *payload;
	char *best = NULL;
	size_t best_size = 0;
	unsigned best_capability = 0;
	int added = 0;
	while (container_next(&walk, &entry, &payload)) {
		if (entry.kind != KIND_PTX) {
			found->n_code++;
			continue;
		}
		found->n_ptx++;
		bool linked = entry.flags & FLAG_LINKED;
		size_t size;
		char *text = unpack(&entry, payload, &size);
		note_capability(found, entry.capability, text);
		if (!linked &&
			(entry.capability > capability ||
				(best && entry.capability < best_capability))) {
			free(text);
			continue;
		}
		if (!text) {
			found->n_damaged++;
			continue;
		}
		if (linked) {
			if (texts_take(texts, text, size, "linked")) {
				free(best);
				return -1;
			}
			added++;
		} else if (target_fits(text, entry.capability, capability)) {
			free(best);
			best = text;
			best_size = size;
			best_capability = entry.capability;
		} else {
			free(text);
		}
	}
	if (best) {
		if (texts_take(texts, best, best_size, "fat binary"))
			return -1;
		added++;
	}
	return added;
}

static CUresult explain(const struct found *found, unsigned capability, char *log, size_t log_size)
{
	if (found->n_damaged)
		snprintf(log, log_size, "the fat binary's PTX cannot be decompressed");
	else if (!found->n_ptx && !found->n_code)
		/*
		 * nvcc makes empty containers for relocatable code: for the caller to handle,
		 * without a message
		 */
		*log = '\0';
	else if (found->n_ptx)
		snprintf(log, log_size,
			"the fat binary holds PTX only for%s, and this device has compute capability %u.%u",
			found->capabilities, capability / 10, capability % 10);
	else
		snprintf(log, log_size,
			"the fat binary holds machine code only (%u entries): the soft GPU runs PTX; compile with -gencode "
			"arch=compute_%u,code=compute_%u",
			found->n_code, capability, capability);
	return found->n_damaged ? CUDA_ERROR_INVALID_IMAGE : CUDA_ERROR_NO_BINARY_FOR_GPU;
}

struct wrapper {
	uint32_t magic, version;
	const void *container;
	const void *const *more;
};

static CUresult wrapper_texts(const void *image, unsigned capability, struct ckt_soft_texts *texts,
	char *log, size_t log_size)
{
	struct wrapper wrapper;
	memcpy(&wrapper, image, sizeof(wrapper));
	if (wrapper.version != 1 && wrapper.version != 2) {
		snprintf(log, log_size,
			"the fat binary's wrapper has version %u, and only 1 and 2 are known",
			wrapper.version);
		return CUDA_ERROR_INVALID_IMAGE;
	}
	struct found found = {0};
	struct walk walk;
	int added = 0;
	if (wrapper.container && container_open(wrapper.container, SIZE_MAX, &walk))
		added = container_texts(walk, capability, texts, &found);
	if (added == 0 && wrapper.version == 2 && wrapper.more) {
		for (const void *const *p = wrapper.more; *p && added >= 0; p++) {
			if (!container_open(*p, SIZE_MAX, &walk))
				continue;
			int n = container_texts(walk, capability, texts, &found);
			/*
			 * Every such program includes the device runtime, whose PTX is for the
			 * newest capability only.  If the program needs the runtime, or one of its
			 * own objects has no PTX, the linker reports it.
			 */
			if (n == 0)
				ckt_soft_debug(
					"relocatable code: an object without PTX for sm_%u, ignoring it",
					capability);
			added = n < 0 ? n : added + n;
		}
	}
	if (added < 0)
		return CUDA_ERROR_OUT_OF_MEMORY;
	return added ? CUDA_SUCCESS : explain(&found, capability, log, log_size);
}

CUresult ckt_soft_image_texts(const void *image, size_t size_bytes, unsigned capability,
	struct ckt_soft_texts *texts, char *log, size_t log_size_bytes)
{
	uint32_t magic = 0;
	if (size_bytes >= sizeof(magic)) {
		/*
		 * A text of less than four bytes may end at the end of readable memory, so do not
		 * read past its NUL.
		 */
		if (size_bytes != SIZE_MAX || strnlen(image, sizeof(magic)) == sizeof(magic))
			memcpy(&magic, image, sizeof(magic));
	}
	if (magic == wrapper_magic && size_bytes >= sizeof(struct wrapper))
		return wrapper_texts(image, capability, texts, log, log_size_bytes);
	if (magic == container_magic) {
		struct walk walk;
		struct found found = {0};
		if (!container_open(image, size_bytes, &walk)) {
			snprintf(log, log_size_bytes, "damaged fat binary header");
			return CUDA_ERROR_INVALID_IMAGE;
		}
		int added = container_texts(walk, capability, texts, &found);
		if (added < 0)
			return CUDA_ERROR_OUT_OF_MEMORY;
		return added ? CUDA_SUCCESS : explain(&found, capability, log, log_size_bytes);
	}
	if (magic == 0x464c457f) {
		snprintf(log, log_size_bytes,
			"a cubin (machine code) cannot run here: the soft GPU runs PTX");
		return CUDA_ERROR_NO_BINARY_FOR_GPU;
	}
	size_t length = size_bytes == SIZE_MAX ? strlen(image) : strnlen(image, size_bytes);
	/* Every PTX text states its version; other text is not PTX. */
	if (!memmem(image, length, ".version", 8)) {
		snprintf(log, log_size_bytes, "the image is neither PTX nor a fat binary");
		return CUDA_ERROR_INVALID_IMAGE;
	}
	return ckt_soft_texts_add(texts, image, length, "ptx");
}

/*
 * The device runtime, which nvlink adds to every relocatable program, has machine code for each
 * generation and PTX for the newest capability only.  A GPU links that machine code, so a container
 * like it is no error here.  The linker reports symbols that the program really needs.
 */
bool ckt_soft_image_is_library(const void *image, size_t size_bytes, unsigned capability)
{
	struct walk walk;
	struct entry_header entry;
	const char *payload;
	bool code = false, later = false;
	if (!container_open(image, size_bytes, &walk))
		return false;
	while (container_next(&walk, &entry, &payload)) {
		if (entry.kind == KIND_PTX)
			later |= entry.capability > capability;
		else
			code |= entry.capability / 10 == capability / 10 &&
				entry.capability <= capability;
	}
	return code && later;
}

CUresult ckt_soft_image_pack(const struct ckt_soft_texts *texts, unsigned capability,
	void **ret_image, size_t *ret_size_bytes)
{
	size_t size = sizeof(struct container_header);
	for (size_t i = 0; i < texts->n; i++)
		size += sizeof(struct entry_header) +
			((texts->texts[i].size_bytes + 8) & ~(size_t)7);
	char *image = calloc(1, size);
	if (!image)
		return CUDA_ERROR_OUT_OF_MEMORY;
	struct container_header header = {.magic = container_magic,
		.version = 1,
		.header_size = sizeof(header),
		.size = size - sizeof(header)};
	memcpy(image, &header, sizeof(header));
	char *at = image + sizeof(header);
	for (size_t i = 0; i < texts->n; i++) {
		struct entry_header entry = {
			.kind = KIND_PTX,
			.version = 0x0101,
			.header_size = sizeof(entry),
			/* includes at least one NUL */
			.padded_size = (texts->texts[i].size_bytes + 8) & ~(size_t)7,
			.capability = capability,
			.flags = 0x11 | FLAG_LINKED,
		};
		memcpy(at, &entry, sizeof(entry));
		memcpy(at + sizeof(entry), texts->texts[i].text, texts->texts[i].size_bytes);
		at += sizeof(entry) + entry.padded_size;
	}
	*ret_image = image;
	*ret_size_bytes = size;
	return CUDA_SUCCESS;
}

CUresult ckt_soft_file_read(const char *path, void **ret_data, size_t *ret_size_bytes)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return CUDA_ERROR_FILE_NOT_FOUND;
	struct stat stat;
	if (fstat(fd, &stat) || !S_ISREG(stat.st_mode) || stat.st_size > PTX_MAX) {
		close(fd);
		return CUDA_ERROR_FILE_NOT_FOUND;
	}
	size_t size = (size_t)stat.st_size, done = 0;
	char *data = malloc(size + 1);
	while (data && done < size) {
		ssize_t n = read(fd, data + done, size - done);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		done += (size_t)n;
	}
	close(fd);
	if (!data)
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (done < size) {
		free(data);
		return CUDA_ERROR_OPERATING_SYSTEM;
	}
	data[size] = '\0';
	*ret_data = data;
	*ret_size_bytes = size;
	return CUDA_SUCCESS;
}
