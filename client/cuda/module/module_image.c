/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Images of modules: finds their sizes and sends their bytes to the worker once.
 *
 * This file relies on two undocumented layouts, but only on the sizes in their headers.  The first
 * is the fat binary container, as fatbinary of CUDA 9 to 13 writes it: magic 0xBA55ED50, header
 * size at offset 6, size of the rest at offset 8.  The second is nvcc's wrapper around it: magic
 * 0x466243B1, the container's address at offset 8.
 */
#include <elf.h>
#include <nettle/sha2.h>
#include <pthread.h>
#include <string.h>

#include "client/cuda/module/module_image.h"
#include "base/fork.h"
#include "client/conn/module_hints.h"
#include "client/cuda/call.h"

enum { FATBIN_MAGIC = 0xBA55ED50, WRAPPER_MAGIC = 0x466243B1 };
/*
 * So much is sent unasked the first time: it takes less time than the question, which is a round trip, at
 * 1 Gbit/s and 0.5 ms.
 */
enum { UNASKED_MAX = 64 << 10, SENT_MAX = 64 };

/* The latest images that this process sent without a question, to whatever server. */
static CKT_LOCK(sent_lock);
static uint8_t sent_hashes[SENT_MAX][32];
static unsigned sent_next;

/* Whether this is the first time, as far as is remembered. */
static bool note_unasked(const uint8_t *hash)
{
	bool known = false;
	pthread_mutex_lock(&sent_lock);
	for (unsigned i = 0; i < SENT_MAX && !known; i++)
		known = memcmp(sent_hashes[i], hash, sizeof sent_hashes[i]) == 0;
	if (!known)
		memcpy(sent_hashes[sent_next++ % SENT_MAX], hash, sizeof *sent_hashes);
	pthread_mutex_unlock(&sent_lock);
	return !known;
}

/* Makes *end at least offset + count * size.  False if that overflows. */
static bool reach(uint64_t *end, uint64_t offset, uint64_t count, uint64_t size)
{
	uint64_t bytes, last;
	if (__builtin_mul_overflow(count, size, &bytes) ||
		__builtin_add_overflow(offset, bytes, &last))
		return false;
	if (last > *end)
		*end = last;
	return true;
}

static bool elf_extent(const uint8_t *image, size_t *ret_size)
{
	Elf64_Ehdr header;
	Elf64_Shdr section;
	memcpy(&header, image, sizeof header);
	uint64_t end = sizeof header, sections = header.e_shnum;
	if (header.e_shoff && header.e_shentsize != sizeof section)
		return false;
	/* If the header's field cannot hold the number of sections, the first section holds it. */
	if (header.e_shoff && !sections) {
		memcpy(&section, image + header.e_shoff, sizeof section);
		sections = section.sh_size;
	}
	if (!reach(&end, header.e_shoff, sections, header.e_shentsize) ||
		!reach(&end, header.e_phoff, header.e_phnum, header.e_phentsize))
		return false;
	for (uint64_t i = 0; i < sections; i++) {
		memcpy(&section, image + header.e_shoff + i * sizeof section, sizeof section);
		if (section.sh_type != SHT_NOBITS && section.sh_type != SHT_NULL &&
			!reach(&end, section.sh_offset, 1, section.sh_size))
			return false;
	}
	*ret_size = end;
	return true;
}

CUresult ckt_client_image_extent(const void *image, const void **ret_data, size_t *ret_size)
{
	uint32_t magic;
	uint16_t header_size;
	uint64_t size;
	if (!image)
		return CUDA_ERROR_INVALID_VALUE;
	const uint8_t *p = image;
	/*
	 * Reading four bytes is safe if the first is not 0: the shortest PTX text is longer.  An
	 * empty text ends with its first byte.
	 */
	if (!p[0])
		return CUDA_ERROR_INVALID_IMAGE;
	memcpy(&magic, p, sizeof magic);
	if (magic == WRAPPER_MAGIC) {
		memcpy(&p, p + 8, sizeof p);
		if (!p)
			return CUDA_ERROR_INVALID_IMAGE;
		memcpy(&magic, p, sizeof magic);
		if (magic != FATBIN_MAGIC)
			return CUDA_ERROR_INVALID_IMAGE;
	}
	*ret_data = p;
	if (magic == FATBIN_MAGIC) {
		memcpy(&header_size, p + 6, sizeof header_size);
		memcpy(&size, p + 8, sizeof size);
		if (header_size < 16 || __builtin_add_overflow(header_size, size, ret_size))
			return CUDA_ERROR_INVALID_IMAGE;
	} else if (memcmp(p, ELFMAG, SELFMAG) == 0) {
		if (p[EI_CLASS] != ELFCLASS64 || !elf_extent(p, ret_size))
			return CUDA_ERROR_INVALID_IMAGE;
	} else {
		*ret_size = strlen((const char *)p) + 1;
	}
	return CUDA_SUCCESS;
}

/* Whether the worker has it: a round trip. */
static CUresult ask(const uint8_t *hash, bool *ret_have)
{
	struct ckt_reply reply;
	struct ckt_blob_have_res res;
	CUresult result = CKT_WAITED(blob_have, BLOB_HAVE, 0, &reply, .hash = hash, .hash_len = 32);
	if (result)
		return result;
	*ret_have = ckt_blob_have_res_get(&reply.results, &res) && res.have;
	ckt_call_reply_release(&reply);
	return CUDA_SUCCESS;
}

static void hash_of(const void *data, size_t size, uint8_t *ret_hash)
{
	struct sha256_ctx sha;
	sha256_init(&sha);
	sha256_update(&sha, size, data);
	sha256_digest(&sha, 32, ret_hash);
}

CUresult ckt_client_blob_put(const void *data, size_t size, const uint8_t *hash)
{
	CUresult result = CUDA_SUCCESS;
	for (size_t offset = 0; offset < size && !result; offset += CKT_DATA_MAX) {
		size_t part = size - offset < CKT_DATA_MAX ? size - offset : CKT_DATA_MAX;
		result = CKT_BATCHED(blob_data, BLOB_DATA, .hash = hash, .hash_len = 32,
			.total = size, .offset = offset, .data = (const uint8_t *)data + offset,
			.data_len = (uint32_t)part);
	}
	return result;
}

CUresult ckt_client_blob_offer(const void *data, size_t size, uint8_t *ret_hash)
{
	hash_of(data, size, ret_hash);
	enum ckt_module_hint hint = ckt_call_module_hint(ret_hash);
	bool lacks = ckt_call_durable() || hint == CKT_MODULE_NOT_KEPT ||
		(hint == CKT_MODULE_UNKNOWN && size <= UNASKED_MAX);
	return lacks && note_unasked(ret_hash) ? ckt_client_blob_put(data, size, ret_hash)
					       : CUDA_SUCCESS;
}

CUresult ckt_client_blob_send(const void *data, size_t size, uint8_t *ret_hash)
{
	bool have = false;
	hash_of(data, size, ret_hash);
	CUresult result = (size <= UNASKED_MAX || ckt_call_durable()) && note_unasked(ret_hash)
		? CUDA_SUCCESS
		: ask(ret_hash, &have);
	return result || have ? result : ckt_client_blob_put(data, size, ret_hash);
}
