/*
 * Images of modules: where they end, and bringing their bytes to the worker once.
 *
 * Two undocumented layouts are relied on, by the sizes in their headers only: the fat binary container (magic 0xBA55ED50, as written by
 * fatbinary of CUDA 9 to 13: header size at 6, size of what follows at 8) and the wrapper nvcc emits around it (magic 0x466243B1: the
 * container's address at 8).
 */
#include <elf.h>
#include <nettle/sha2.h>
#include <string.h>

#include "client/cuda/internal.h"

enum { FATBIN_MAGIC = 0xBA55ED50, WRAPPER_MAGIC = 0x466243B1 };

static size_t elf_extent(const uint8_t *image)
{
	Elf64_Ehdr header;
	memcpy(&header, image, sizeof header);
	size_t end = header.e_shoff + (size_t)header.e_shnum * header.e_shentsize;
	size_t programs = header.e_phoff + (size_t)header.e_phnum * header.e_phentsize;
	if (programs > end)
		end = programs;
	for (unsigned i = 0; i < header.e_shnum; i++) {
		Elf64_Shdr section;
		memcpy(&section, image + header.e_shoff + (size_t)i * header.e_shentsize, sizeof section);
		if (section.sh_type != SHT_NOBITS && section.sh_offset + section.sh_size > end)
			end = section.sh_offset + section.sh_size;
	}
	return end;
}

CUresult ckt_image_extent(const void *image, const void **ret_data, size_t *ret_size)
{
	uint32_t magic;
	uint16_t header_size;
	uint64_t size;
	if (!image)
		return CUDA_ERROR_INVALID_VALUE;
	const uint8_t *p = image;
	/* Four bytes at least: the shortest text that could be PTX is longer, and an empty one ends in its first. */
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
		*ret_size = header_size + size;
	} else if (memcmp(p, ELFMAG, SELFMAG) == 0) {
		if (p[EI_CLASS] != ELFCLASS64)
			return CUDA_ERROR_INVALID_IMAGE;
		*ret_size = elf_extent(p);
	} else {
		*ret_size = strlen((const char *)p) + 1;
	}
	return CUDA_SUCCESS;
}

CUresult ckt_blob_send(const void *data, size_t size, uint8_t *ret_hash)
{
	struct sha256_ctx sha;
	struct ckt_reply reply;
	struct ckt_blob_have_res res;
	sha256_init(&sha);
	sha256_update(&sha, size, data);
	sha256_digest(&sha, 32, ret_hash);
	CUresult result = CKT_WAITED(blob_have, BLOB_HAVE, 0, &reply, .hash = ret_hash, .hash_len = 32);
	if (result)
		return result;
	bool have = ckt_blob_have_res_get(&reply.results, &res) && res.have;
	ckt_reply_release(&reply);
	for (size_t offset = 0; offset < size && !have && !result; offset += CKT_DATA_MAX) {
		size_t part = size - offset < CKT_DATA_MAX ? size - offset : CKT_DATA_MAX;
		result = CKT_BATCHED(blob_data, BLOB_DATA, .hash = ret_hash, .hash_len = 32, .total = size, .offset = offset,
				     .data = (const uint8_t *)data + offset, .data_len = (uint32_t)part);
	}
	return result;
}
