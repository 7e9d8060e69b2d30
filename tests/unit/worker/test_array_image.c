/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arrays and textures in an image: descriptions come back as they were, contents and handles too,
 * and damaged ones are refused.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "checkpoint/load/image_load.h"
#include "server/worker/objects/array_image.h"
#include "server/worker/objects/context.h"
#include "tests/unit/worker/inside.h"

static const CUDA_ARRAY3D_DESCRIPTOR flat = {
	.Width = 64, .Height = 16, .Format = CU_AD_FORMAT_UNSIGNED_INT8, .NumChannels = 1};

static void test_tables(void)
{
	struct ckt_object *object;
	ckt_image_array saved, dead;
	size_t before = ckt_worker.checkpoint.journal.count;
	MUST(ckt_array_make(&ckt_worker, ID(ARRAY, 31), &flat, 0, &object), CUDA_SUCCESS);
	ckt_array_save(object, &saved);
	IS(saved.id, ID(ARRAY, 31));
	IS(saved.context, ckt_handle_primary(0));
	IS(saved.width * 100000 + saved.height * 1000 + saved.depth * 100 + saved.levels * 10 +
			saved.channels,
		6416001);
	YES(saved.live);
	YES(ckt_worker.checkpoint.journal.count > before);
	ckt_array_save_dead(
		&ckt_worker.checkpoint.journal.list[ckt_worker.checkpoint.journal.count - 1],
		&dead);
	NO(dead.live);
	dead.live = true;
	/* all that a restore needs to make one like it */
	IS(memcmp(&dead, &saved, sizeof saved), 0);
	/* Counted on its device, where it is alive. */
	ckt_image_context context = {.id = ckt_handle_primary(0)};
	ckt_image image = {.arrays = {1, &saved}, .contexts = {1, &context}};
	IS(ckt_load_bytes_on(&image, 0), 64 * 16);
	IS(ckt_load_bytes_on(&image, 1), 0);
	saved.live = false;
	IS(ckt_load_bytes_on(&image, 0), 0);
	saved.live = true;
	saved.width = UINT64_MAX;
	IS(ckt_load_bytes_on(&image, 0), 0); /* none that could be */
	ckt_array_destroy(&ckt_worker, object);
	/* Made again from what was saved; hostile ones are not. */
	saved.width = 64;
	IS(ckt_array_load(&ckt_worker, &saved), CUDA_SUCCESS);
	YES(ckt_array_load(&ckt_worker, &saved) != CUDA_SUCCESS);
	ckt_array_destroy(&ckt_worker, ckt_objects_find(&ckt_worker.objects, saved.id));
	static const size_t fields[] = {offsetof(ckt_image_array, context),
		offsetof(ckt_image_array, width), offsetof(ckt_image_array, levels),
		offsetof(ckt_image_array, format), offsetof(ckt_image_array, channels)};
	for (size_t i = 0; i < COUNT(fields); i++) {
		ckt_image_array wrong = saved;
		memset((uint8_t *)&wrong + fields[i], 0x7f, 4);
		YES(ckt_array_load(&ckt_worker, &wrong) != CUDA_SUCCESS);
		CU_ASSERT_PTR_NULL(ckt_objects_find(&ckt_worker.objects, saved.id));
	}
	ckt_worker_use_context(&ckt_worker, ckt_handle_primary(0));
	ckt_worker.checkpoint.journal.count = before;
}

static void test_contents(void)
{
	struct ckt_object *object;
	uint8_t data[64 * 16], got[64 * 16];
	char message[CKT_MESSAGE_MAX] = "", checksum[CKT_IMAGE_HASH];
	int fds[2] = {-1, memfd_create("test", MFD_CLOEXEC)};
	for (size_t i = 0; i < sizeof data; i++)
		data[i] = (uint8_t)(i * 3 >> 1);
	MUST(ckt_array_make(&ckt_worker, ID(ARRAY, 32), &flat, 0, &object), CUDA_SUCCESS);
	ckt_image_array saved;
	ckt_array_save(object, &saved);
	/* Two chunks with zeros between them, which no chunk holds. */
	memset(data + 400, 0, 100);
	IS(write(fds[1], data, sizeof data), sizeof data);
	uint64_t bytes = sizeof data;
	ckt_image_chunk chunks[2] = {
		{.space = 1, .address = 500, .size = 524, .offset = 500, .stored = 524},
		{.space = 1, .address = 0, .size = 400, .offset = 0, .stored = 400}};
	for (int i = 0; i < 2; i++) {
		ckt_image_hash(
			CKT_IMAGE_BLAKE3, data + chunks[i].address, chunks[i].size, checksum);
		memcpy(chunks[i].hash, checksum, sizeof checksum);
	}
	ckt_image image = {.arrays = {1, &saved},
		.chunks = {2, chunks},
		.file_bytes = {1, &bytes},
		.hash_kind = CKT_IMAGE_BLAKE3};
	struct ckt_image_reader reader;
	MUST(ckt_image_reader_init_open(&reader, &image, fds, 2, message, sizeof message), 0);
	IS(ckt_arrays_load_contents(&ckt_worker, &image, &reader, NULL, message, sizeof message),
		0);
	IS(ckt_array_read(object, got), CUDA_SUCCESS);
	IS(memcmp(got, data, sizeof data), 0);
	/* Gone: the list makes what the journal had no room for. */
	ckt_array_destroy(&ckt_worker, object);
	IS(ckt_arrays_load_contents(&ckt_worker, &image, &reader, NULL, message, sizeof message),
		0);
	object = ckt_objects_find(&ckt_worker.objects, saved.id);
	CU_ASSERT_PTR_NOT_NULL_FATAL(object);
	IS(ckt_array_read(object, got), CUDA_SUCCESS);
	IS(memcmp(got, data, sizeof data), 0);
	/* A chunk that leaves the array; a hash that is another. */
	static const struct {
		uint64_t address;
		uint32_t size;
	} wrong[] = {{501, 524}, {1024, 1}, {UINT64_MAX, 524}, {0, 1025}};
	ckt_image_chunk good = chunks[0];
	for (size_t i = 0; i < COUNT(wrong); i++) {
		chunks[0].address = wrong[i].address;
		chunks[0].size = wrong[i].size;
		IS(ckt_arrays_load_contents(
			   &ckt_worker, &image, &reader, NULL, message, sizeof message),
			-EBADMSG);
		HAS(message, "an array's contents");
	}
	chunks[0] = good;
	chunks[0].hash[3] ^= 1;
	IS(ckt_arrays_load_contents(&ckt_worker, &image, &reader, NULL, message, sizeof message),
		-EBADMSG);
	chunks[0] = good;
	saved.levels = 1; /* the list and the object do not agree */
	IS(ckt_arrays_load_contents(&ckt_worker, &image, &reader, NULL, message, sizeof message),
		-EIO);
	ckt_image_reader_fini(&reader);
	ckt_worker_use_context(&ckt_worker, ckt_handle_primary(0));
	ckt_array_destroy(&ckt_worker, object);
	close(fds[1]);
}

static void test_textures(void)
{
	struct ckt_object *array, *textures[3];
	struct ckt_wtexture t = {.type = CU_RESOURCE_TYPE_ARRAY,
		.array = ID(ARRAY, 33),
		.desc = {.filterMode = CU_TR_FILTER_MODE_POINT}};
	ckt_image_texture saved[3];
	char message[CKT_MESSAGE_MAX] = "";
	uint64_t handles[3];
	MUST(ckt_array_make(&ckt_worker, ID(ARRAY, 33), &flat, 0, &array), CUDA_SUCCESS);
	for (unsigned i = 0; i < 3; i++) {
		MUST(ckt_texture_real_make(&ckt_worker, false, &t, &t.handle), CUDA_SUCCESS);
		MUST(ckt_texture_add(&ckt_worker, ID(TEXTURE, 31 + i), false, &t, &textures[i]),
			CUDA_SUCCESS);
		handles[i] = t.handle;
		ckt_texture_save(textures[i], &saved[i]);
		IS(saved[i].handle, t.handle);
		IS(saved[i].desc.desc_len, sizeof t.desc);
		IS(saved[i].view.view_len, 0);
		NO(saved[i].surface);
	}
	for (unsigned i = 0; i < 3; i++)
		ckt_object_destroy(&ckt_worker, textures[i]);
	/*
	 * The middle one is missing: its place is kept while the others are made, in whatever order
	 * they are listed.
	 */
	ckt_image_texture order[2] = {saved[2], saved[0]};
	ckt_image image = {.textures = {2, order}};
	int result = ckt_textures_load(&ckt_worker, &image, message, sizeof message);
	if (result == -EADDRNOTAVAIL) {
		/* A driver that never gives a handle again: then it must have been said. */
		HAS(message, "but got another");
	} else {
		IS(result, 0);
		IS(ckt_objects_find(&ckt_worker.objects, ID(TEXTURE, 33))->texture->handle,
			handles[2]);
		IS(ckt_objects_find(&ckt_worker.objects, ID(TEXTURE, 31))->texture->handle,
			handles[0]);
	}
	for (unsigned i = 31; i <= 33; i++)
		if (ckt_objects_find(&ckt_worker.objects, ID(TEXTURE, i)))
			ckt_object_destroy(
				&ckt_worker, ckt_objects_find(&ckt_worker.objects, ID(TEXTURE, i)));
	/* Descriptions of another size are of another driver's headers, or hostile. */
	order[0].desc.desc_len--;
	IS(ckt_textures_load(&ckt_worker, &image, message, sizeof message), -EBADMSG);
	order[0].desc.desc_len++;
	order[1].view.view_len = 1;
	IS(ckt_textures_load(&ckt_worker, &image, message, sizeof message), -EBADMSG);
	HAS(message, "a texture's description");
	order[1].view.view_len = 0;
	order[0].context = 12345;
	order[1].context = 12345;
	IS(ckt_textures_load(&ckt_worker, &image, message, sizeof message), -EIO);
	for (unsigned i = 0; i < 3; i++) {
		free(saved[i].desc.desc_val);
		free(saved[i].view.view_val);
	}
	for (unsigned i = 31; i <= 33; i++)
		if (ckt_objects_find(&ckt_worker.objects, ID(TEXTURE, i)))
			ckt_object_destroy(
				&ckt_worker, ckt_objects_find(&ckt_worker.objects, ID(TEXTURE, i)));
	ckt_worker_use_context(&ckt_worker, ckt_handle_primary(0));
	ckt_array_destroy(&ckt_worker, array);
}

UNIT_SUITE(array_image, {"tables", test_tables}, {"contents", test_contents},
	{"textures", test_textures})
