/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arrays, textures and surfaces over the wire on the soft GPU: what is wrong with them, contents
 * and handles through an image, and images that lie about them.  argv[1] the worker, argv[2] the
 * soft libcuda.so.1, whose handles are the lowest that are free.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/unit/worker/wire_session.h"

#define ARRAY(n) ckt_handle_make(CKT_KIND_ARRAY, 1, 100 + (n))
#define MIPMAP(n) ckt_handle_make(CKT_KIND_MIPMAP, 1, 200 + (n))
#define TEXTURE(n) ckt_handle_make(CKT_KIND_TEXTURE, 1, 300 + (n))
#define SURFACE(n) ckt_handle_make(CKT_KIND_SURFACE, 1, 400 + (n))

/* Of words. */
static CUresult create(struct wire *w, uint64_t id, uint64_t width, uint64_t height, uint64_t depth,
	uint32_t flags, uint32_t levels)
{
	return done(WIRE_CALL(w, array_create, true, .id = id, .width = width, .height = height,
		.depth = depth, .format = CU_AD_FORMAT_UNSIGNED_INT32, .channels = 1,
		.flags = flags, .levels = levels));
}

static CUresult synchronize(struct wire *w)
{
	CUresult result = done(WIRE_CALL(w, ctx_synchronize, false));
	return result ? result : (CUresult)w->deferred;
}

static void put(struct wire *w, uint64_t array, uint32_t level, uint64_t y, const uint32_t *words,
	uint32_t width, uint32_t height)
{
	WIRE_BATCH(w, memcpy_htoa, .array = array, .level = level, .y = y, .width = width * 4,
		.height = height, .data = (const uint8_t *)words, .data_len = width * height * 4);
}

static CUresult get_words(struct wire *w, uint64_t array, uint32_t level, uint64_t x, uint64_t y,
	uint64_t z, uint32_t width, uint32_t height, void *ret)
{
	struct wire_reply reply = WIRE_CALL(w, memcpy_atoh, true, .array = array, .level = level,
		.x = x, .y = y, .z = z, .width = width, .height = height);
	struct ckt_memcpy_atoh_res res = {0};
	CUresult result = reply.accept_stat ? (CUresult)-1 : reply.result;
	if (!result) {
		CU_ASSERT_TRUE(ckt_memcpy_atoh_res_get(&reply.results, &res));
		CU_ASSERT_EQUAL_FATAL(res.data_len, width * height);
		memcpy(ret, res.data, res.data_len);
	}
	free(reply.data);
	return result;
}

static uint64_t texture(struct wire *w, uint64_t id, uint64_t array, CUresult *ret_result)
{
	CUDA_TEXTURE_DESC desc = {.flags = CU_TRSF_READ_AS_INTEGER};
	struct wire_reply reply =
		WIRE_CALL(w, texture_create, true, .id = id, .type = CU_RESOURCE_TYPE_ARRAY,
			.array = array, .desc = (const uint8_t *)&desc, .desc_len = sizeof desc);
	struct ckt_texture_create_res res = {0};
	if (!reply.result)
		CU_ASSERT_TRUE(ckt_texture_create_res_get(&reply.results, &res));
	if (ret_result)
		*ret_result = reply.result;
	free(reply.data);
	return res.handle;
}

static uint64_t surface(struct wire *w, uint64_t id, uint64_t array)
{
	struct wire_reply reply = WIRE_CALL(w, surface_create, true, .id = id, .array = array);
	struct ckt_surface_create_res res = {0};
	CU_ASSERT_EQUAL(reply.result, CUDA_SUCCESS);
	CU_ASSERT_TRUE(ckt_surface_create_res_get(&reply.results, &res));
	free(reply.data);
	return res.handle;
}

static uint32_t words[64];

/* ---- What is wrong is said, and nothing else happens */

static void test_wrong(void)
{
	struct wire *w = session_new();
	uint32_t back[64];
	CUresult result;
	CU_ASSERT_EQUAL(create(w, ARRAY(0), 8, 8, 0, 0, 0), CUDA_SUCCESS);
	CU_ASSERT_EQUAL(create(w, ARRAY(0), 8, 8, 0, 0, 0), CUDA_ERROR_INVALID_VALUE);
	CU_ASSERT_EQUAL(create(w, MIPMAP(1), 8, 8, 0, 0, 0), CUDA_ERROR_INVALID_VALUE);
	CU_ASSERT_EQUAL(create(w, ARRAY(1), 8, 8, 0, 0, 2), CUDA_ERROR_INVALID_VALUE);
	CU_ASSERT_EQUAL(create(w, MIPMAP(1), 8, 8, 0, 0, 5), CUDA_ERROR_INVALID_VALUE);
	CU_ASSERT_EQUAL(create(w, MIPMAP(1), 8, 8, 0, 0, 9999), CUDA_ERROR_INVALID_VALUE);
	CU_ASSERT_EQUAL(create(w, ARRAY(1), 0, 8, 0, 0, 0), CUDA_ERROR_INVALID_VALUE);
	CU_ASSERT_EQUAL(create(w, ARRAY(1), UINT64_MAX, UINT64_MAX, UINT64_MAX, 0, 0),
		CUDA_ERROR_INVALID_VALUE);
	CU_ASSERT_EQUAL(
		create(w, ARRAY(1), 1 << 16, 1 << 16, 1 << 10, 0, 0), CUDA_ERROR_INVALID_VALUE);
	CU_ASSERT_EQUAL(
		create(w, ARRAY(1), 64, 64, 0, CUDA_ARRAY3D_SPARSE, 0), CUDA_ERROR_NOT_SUPPORTED);
	CU_ASSERT_EQUAL(create(w, ARRAY(1), 16384, 16384, 16, 0, 0), CUDA_ERROR_OUT_OF_MEMORY);
	put(w, ARRAY(0), 0, 0, words, 8, 8);
	CU_ASSERT_EQUAL(synchronize(w), CUDA_SUCCESS);
	/* Outside, another level, no array, an array that is none. */
	put(w, ARRAY(0), 0, 1, words, 8, 8);
	CU_ASSERT_EQUAL(synchronize(w), CUDA_ERROR_INVALID_VALUE);
	put(w, ARRAY(0), 1, 0, words, 8, 8);
	CU_ASSERT_EQUAL(synchronize(w), CUDA_ERROR_INVALID_HANDLE);
	put(w, ARRAY(7), 0, 0, words, 8, 8);
	CU_ASSERT_EQUAL(synchronize(w), CUDA_ERROR_INVALID_HANDLE);
	CU_ASSERT_EQUAL(get_words(w, ARRAY(0), 0, UINT64_MAX - 3, 0, 0, 8, 1, back),
		CUDA_ERROR_INVALID_VALUE);
	CU_ASSERT_EQUAL(
		get_words(w, ARRAY(0), 0, 0, UINT64_MAX, 0, 32, 1, back), CUDA_ERROR_INVALID_VALUE);
	CU_ASSERT_EQUAL(get_words(w, ARRAY(0), 0, 0, 0, 1, 32, 1, back), CUDA_ERROR_INVALID_VALUE);
	CU_ASSERT_EQUAL(
		get_words(w, ARRAY(0), 0, 0, 0, 0, 1u << 31, 1, back), CUDA_ERROR_INVALID_VALUE);
	WIRE_BATCH(w, memcpy_array, .dst_array = ARRAY(0), .src_x = 0x1234, .src_pitch = 32,
		.src_rows = 8, .width = 32, .height = 8, .depth = 1);
	CU_ASSERT_EQUAL(synchronize(w), CUDA_ERROR_INVALID_VALUE);
	WIRE_BATCH(w, memcpy_array, .dst_array = ARRAY(0), .src_array = ARRAY(0),
		.src_z = UINT64_MAX, .width = 32, .height = 8, .depth = 1);
	CU_ASSERT_EQUAL(synchronize(w), CUDA_ERROR_INVALID_VALUE);
	WIRE_BATCH(w, array_destroy, .id = ARRAY(9));
	CU_ASSERT_EQUAL(synchronize(w), CUDA_ERROR_INVALID_HANDLE);
	texture(w, TEXTURE(0), ARRAY(9), &result);
	CU_ASSERT_EQUAL(result, CUDA_ERROR_INVALID_HANDLE);
	texture(w, ARRAY(5), ARRAY(0), &result);
	CU_ASSERT_EQUAL(result, CUDA_ERROR_INVALID_VALUE);
	/* The one whose id was refused has given its handle back. */
	CU_ASSERT_EQUAL(texture(w, TEXTURE(0), ARRAY(0), &result), 1);
	WIRE_BATCH(w, surface_destroy, .id = TEXTURE(0));
	CU_ASSERT_EQUAL(synchronize(w), CUDA_ERROR_INVALID_VALUE);
	session_end(w);
}

/* ---- Through an image */

static void test_handles(void)
{
	char directory[] = "/tmp/ckt-image-XXXXXX";
	uint32_t back[64];
	struct wire *w = session_new();
	CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(directory));
	for (unsigned i = 0; i < 64; i++)
		words[i] = 1000 + i;
	CU_ASSERT_EQUAL(create(w, ARRAY(0), 8, 8, 0, CUDA_ARRAY3D_SURFACE_LDST, 0), CUDA_SUCCESS);
	CU_ASSERT_EQUAL(create(w, MIPMAP(0), 8, 8, 0, 0, 3), CUDA_SUCCESS);
	CU_ASSERT_EQUAL(create(w, ARRAY(1), 8, 8, 0, 0, 0), CUDA_SUCCESS);
	put(w, ARRAY(0), 0, 0, words, 8, 8);
	put(w, MIPMAP(0), 1, 1, words + 5, 4, 2);
	put(w, MIPMAP(0), 2, 0, words + 9, 2, 2);
	for (unsigned i = 1; i <= 7; i++)
		CU_ASSERT_EQUAL(texture(w, TEXTURE(i), i == 7 ? ARRAY(1) : ARRAY(0), NULL), i);
	CU_ASSERT_EQUAL(surface(w, SURFACE(0), ARRAY(0)), 8);
	WIRE_BATCH(w, texture_destroy, .id = TEXTURE(2));
	WIRE_BATCH(w, texture_destroy, .id = TEXTURE(5));
	/* A texture whose array is gone keeps its handle. */
	WIRE_BATCH(w, array_destroy, .id = ARRAY(1));
	CU_ASSERT_EQUAL(synchronize(w), CUDA_SUCCESS);
	for (int again = 0; again < 2; again++) {
		save_and_stop(w, directory);
		restore(w, directory);
		remove_directory(directory);
		CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(strcpy(directory, "/tmp/ckt-image-XXXXXX")));
	}
	CU_ASSERT_EQUAL(get_words(w, ARRAY(0), 0, 0, 0, 0, 32, 8, back), CUDA_SUCCESS);
	CU_ASSERT_EQUAL(memcmp(back, words, sizeof back), 0);
	CU_ASSERT_EQUAL(get_words(w, MIPMAP(0), 1, 0, 1, 0, 16, 2, back), CUDA_SUCCESS);
	CU_ASSERT_EQUAL(memcmp(back, words + 5, 32), 0);
	CU_ASSERT_EQUAL(get_words(w, MIPMAP(0), 2, 0, 0, 0, 8, 2, back), CUDA_SUCCESS);
	CU_ASSERT_EQUAL(memcmp(back, words + 9, 16), 0);
	CU_ASSERT_EQUAL(get_words(w, MIPMAP(0), 0, 0, 0, 0, 32, 1, back), CUDA_SUCCESS);
	CU_ASSERT_EQUAL(back[0] | back[7], 0);
	/* Free are those that were, and no others. */
	CU_ASSERT_EQUAL(texture(w, TEXTURE(10), ARRAY(0), NULL), 2);
	CU_ASSERT_EQUAL(texture(w, TEXTURE(11), ARRAY(0), NULL), 5);
	CU_ASSERT_EQUAL(texture(w, TEXTURE(12), ARRAY(0), NULL), 9);
	WIRE_BATCH(w, texture_destroy, .id = TEXTURE(7));
	WIRE_BATCH(w, surface_destroy, .id = SURFACE(0));
	CU_ASSERT_EQUAL(synchronize(w), CUDA_SUCCESS);
	CU_ASSERT_EQUAL(texture(w, TEXTURE(13), ARRAY(0), NULL), 7);
	CU_ASSERT_EQUAL(texture(w, TEXTURE(14), ARRAY(0), NULL), 8);
	session_end(w);
	remove_directory(directory);
}

/* An array that came and went is no step to be done again, unless a module was placed meanwhile. */
static void test_journal(void)
{
	char directory[] = "/tmp/ckt-image-XXXXXX", message[CKT_MESSAGE_MAX];
	ckt_image image;
	struct wire *w = session_new();
	CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(directory));
	for (unsigned i = 0; i < 100; i++) {
		CU_ASSERT_EQUAL(create(w, ARRAY(i), 8, 8, 0, 0, 0), CUDA_SUCCESS);
		if (i != 50)
			WIRE_BATCH(w, array_destroy, .id = ARRAY(i));
	}
	CU_ASSERT_EQUAL(synchronize(w), CUDA_SUCCESS);
	save_and_stop(w, directory);
	int fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CU_ASSERT_EQUAL_FATAL(ckt_image_read(fd, &image, message, sizeof message), 0);
	unsigned steps = 0;
	for (unsigned i = 0; i < image.journal.journal_len; i++)
		steps += image.journal.journal_val[i].kind >= 9;
	CU_ASSERT_EQUAL(steps, 1);
	CU_ASSERT_EQUAL(image.arrays.arrays_len, 1);
	xdr_free((xdrproc_t)xdr_ckt_image, (char *)&image);
	close(fd);
	restore(w, directory);
	session_end(w);
	remove_directory(directory);
}

/* ---- Images that lie */

enum lie { HANDLE, KIND, SIZE, GONE, DESC, CHUNK, LEVELS };

static void lie(ckt_image *image, enum lie what)
{
	ckt_image_array *array = &image->arrays.arrays_val[0];
	ckt_image_texture *t = &image->textures.textures_val[0];
	switch (what) {
	case HANDLE:
		t->handle = 1ull << 40;
		break;
	case KIND:
		t->type = 77;
		break;
	case SIZE:
		array->width = 1ull << 40;
		break;
	case GONE:
		array->id += 1 << 24;
		break;
	case DESC:
		t->desc.desc_len = 8;
		break;
	case CHUNK:
		for (unsigned i = 0; i < image->chunks.chunks_len; i++)
			if (image->chunks.chunks_val[i].space > image->blobs.blobs_len)
				image->chunks.chunks_val[i].address = 1 << 20;
		break;
	case LEVELS:
		array->levels = 3;
		break;
	}
}

static void test_lies(void)
{
	static const char *const said[] = {[HANDLE] = "but got another",
		[KIND] = "cannot recreate",
		[SIZE] = "an array has size 0",
		[GONE] = "does not describe",
		[DESC] = "description",
		[CHUNK] = "belongs to no blob and no array",
		[LEVELS] = ""};
	char directory[] = "/tmp/ckt-image-XXXXXX", message[CKT_MESSAGE_MAX], path[64];
	struct wire *w = session_new();
	CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(directory));
	for (unsigned i = 0; i < 64; i++)
		words[i] = 1000 + i;
	CU_ASSERT_EQUAL(create(w, ARRAY(0), 8, 8, 0, 0, 0), CUDA_SUCCESS);
	put(w, ARRAY(0), 0, 0, words, 8, 8);
	CU_ASSERT_EQUAL(texture(w, TEXTURE(0), ARRAY(0), NULL), 1);
	save_and_stop(w, directory);
	snprintf(path, sizeof path, "%s/manifest", directory);
	int fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	for (unsigned what = 0; what < sizeof said / sizeof *said; what++) {
		ckt_image image, was;
		CU_ASSERT_EQUAL_FATAL(ckt_image_read(fd, &image, message, sizeof message), 0);
		CU_ASSERT_EQUAL_FATAL(ckt_image_read(fd, &was, message, sizeof message), 0);
		lie(&image, (enum lie)what);
		unlink(path);
		CU_ASSERT_EQUAL_FATAL(ckt_image_write(fd, &image, message, sizeof message), 0);
		CU_ASSERT_NOT_EQUAL(try_restore(w, directory, message), 0);
		CU_ASSERT_PTR_NOT_NULL(strstr(message, said[what]));
		if (!strstr(message, said[what]))
			fprintf(stderr, "%u: %s\n", what, message);
		unlink(path);
		CU_ASSERT_EQUAL_FATAL(ckt_image_write(fd, &was, message, sizeof message), 0);
		xdr_free((xdrproc_t)xdr_ckt_image, (char *)&image);
		xdr_free((xdrproc_t)xdr_ckt_image, (char *)&was);
	}
	close(fd);
	restore(w, directory);
	uint32_t back[64];
	CU_ASSERT_EQUAL(get_words(w, ARRAY(0), 0, 0, 0, 0, 32, 8, back), CUDA_SUCCESS);
	CU_ASSERT_EQUAL(memcmp(back, words, sizeof back), 0);
	session_end(w);
	remove_directory(directory);
}

UNIT_SUITE(arrays, {"wrong", test_wrong}, {"handles", test_handles}, {"journal", test_journal},
	{"lies", test_lies})
