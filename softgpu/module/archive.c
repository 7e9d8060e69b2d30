/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Objects and archives as linker inputs: ELF files of the host, or ar archives of them, with fat
 * binaries in a section named .nv_fatbin.  The code parses neither format.  It searches for the
 * magic number of a fat binary at any offset, and then checks the rest of the header.
 */
#include <string.h>

#include "softgpu/module/archive.h"
#include "softgpu/context/log.h"
#include "softgpu/module/fatbin.h"

static const unsigned char container_start[8] = {0x50, 0xed, 0x55, 0xba, 0x01, 0x00, 0x10, 0x00};

CUresult ckt_soft_archive_texts(const void *data, size_t size_bytes, unsigned capability,
	struct ckt_soft_texts *texts, const char *name, char *log, size_t log_size_bytes)
{
	const unsigned char *at = data, *end = at + size_bytes;
	size_t n_containers = 0, n_before = texts->n;
	CUresult result = CUDA_SUCCESS;
	while (result == CUDA_SUCCESS &&
		(at = memmem(at, (size_t)(end - at), container_start, sizeof(container_start)))) {
		uint64_t size;
		if ((size_t)(end - at) < 16)
			break;
		memcpy(&size, at + 8, sizeof(size));
		if (size > (uint64_t)(end - at) - 16) {
			at += 8;
			continue;
		}
		n_containers++;
		/*
		 * Members may be misaligned in an archive.  The walk copies what it reads, so any
		 * address is valid.
		 */
		result =
			ckt_soft_image_texts(at, 16 + size, capability, texts, log, log_size_bytes);
		if (result == CUDA_ERROR_NO_BINARY_FOR_GPU)
			result = CUDA_SUCCESS;
		at += 16 + size;
	}
	if (result != CUDA_SUCCESS)
		return result;
	*log = '\0';
	if (texts->n == n_before)
		ckt_soft_debug("%s: no PTX for sm_%u in it (%zu fat binaries), ignoring it", name,
			capability, n_containers);
	return CUDA_SUCCESS;
}
