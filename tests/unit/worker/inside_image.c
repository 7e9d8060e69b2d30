/* SPDX-License-Identifier: Apache-2.0 */
#include "checkpoint/save/save.h"
#include "server/worker/objects/context.h"
#include "tests/unit/worker/inside_image.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int image_fds[CKT_IMAGE_MEMORY_FILES];
char image_message[CKT_MESSAGE_MAX];

void image_files_new(void)
{
	for (unsigned i = 0; i < CKT_IMAGE_MEMORY_FILES; i++)
		image_fds[i] = memfd_create("test", MFD_CLOEXEC);
	image_message[0] = 0;
}

void image_files_close(void)
{
	for (unsigned i = 0; i < CKT_IMAGE_MEMORY_FILES; i++)
		close(image_fds[i]);
	ckt_worker_use_context(&ckt_worker, ckt_handle_primary(0));
}

int image_save(struct ckt_save *save)
{
	save->memory_fds = image_fds;
	return ckt_checkpoint_save(&ckt_worker, save, image_message, sizeof image_message);
}

ckt_image *image_read(void)
{
	ckt_image *image = calloc(1, sizeof *image);
	int result = ckt_image_read_open(
		image_fds, CKT_IMAGE_MEMORY_FILES, image, image_message, sizeof image_message);
	MUST(result, 0);
	return image;
}

void image_free(ckt_image *image)
{
	xdr_free((xdrproc_t)xdr_ckt_image, (char *)image);
	free(image);
}

int64_t image_word(const ckt_image *image, uint64_t address)
{
	struct ckt_image_reader reader;
	int64_t value = -1;
	static uint8_t data[CKT_IMAGE_CHUNK];
	MUST(ckt_image_reader_init_open(&reader, image, image_fds, CKT_IMAGE_MEMORY_FILES,
		     image_message, sizeof image_message),
		0);
	for (unsigned i = 0; i < image->chunks.chunks_len; i++) {
		const ckt_image_chunk *c = &image->chunks.chunks_val[i];
		uint32_t found;
		if (c->space || address < c->address || address - c->address >= c->size)
			continue;
		IS(ckt_image_reader_chunk(&reader, c, data), 0);
		memcpy(&found, data + (address - c->address), 4);
		value = found;
	}
	ckt_image_reader_fini(&reader);
	return value;
}
