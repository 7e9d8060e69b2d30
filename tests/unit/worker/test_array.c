/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server/worker/objects/array.c: arrays by their commands: what is charged and given back, levels,
 * rows of the right length.
 */
#include <stdlib.h>
#include <string.h>

#include "server/worker/objects/array.h"
#include "server/worker/session/long_call.h"
#include "tests/unit/worker/inside.h"

enum { BYTE = CU_AD_FORMAT_UNSIGNED_INT8 };

static void test_make(void)
{
	struct ckt_memory *memory = &ckt_worker.devices[0].memory;
	uint64_t id = ID(ARRAY, 201), used = ckt_memory_used(memory),
		 objects = ckt_worker.objects.count, kept = memory->limit;
	size_t journal = ckt_worker.checkpoint.journal.count;
	static const struct {
		uint64_t width, height, depth;
		uint32_t format, channels, flags, levels;
		CUresult result;
	} wrong[] = {
		{0, 16, 0, BYTE, 1, 0, 0, CUDA_ERROR_INVALID_VALUE},
		{UINT64_MAX, 16, 0, BYTE, 4, 0, 0, CUDA_ERROR_INVALID_VALUE},
		{1ull << 40, 1ull << 40, 0, BYTE, 4, 0, 0, CUDA_ERROR_INVALID_VALUE},
		{64, 16, 0, 0x7f, 1, 0, 0, CUDA_ERROR_INVALID_VALUE},
		{64, 16, 0, BYTE, 0, 0, 0, CUDA_ERROR_INVALID_VALUE},
		{64, 16, 0, BYTE, 3, 0, 0, CUDA_ERROR_INVALID_VALUE},
		{64, 16, 0, BYTE, 1, 0, UINT32_MAX, CUDA_ERROR_INVALID_VALUE},
		{64, 16, 0, BYTE, 1, CUDA_ARRAY3D_SPARSE, 0, CUDA_ERROR_NOT_SUPPORTED},
		{64, 16, 0, BYTE, 1, CUDA_ARRAY3D_DEFERRED_MAPPING, 0, CUDA_ERROR_NOT_SUPPORTED},
		{64, 16, 0, BYTE, 1, CUDA_ARRAY3D_VIDEO_ENCODE_DECODE, 0, CUDA_ERROR_NOT_SUPPORTED},
	};
	for (size_t i = 0; i < COUNT(wrong); i++)
		IS(ASK(array_create, .id = wrong[i].levels ? ID(MIPMAP, 201) : id,
			   .width = wrong[i].width, .height = wrong[i].height,
			   .depth = wrong[i].depth, .format = wrong[i].format,
			   .channels = wrong[i].channels, .flags = wrong[i].flags,
			   .levels = wrong[i].levels),
			wrong[i].result);
	/* Levels make it a mipmapped array's id, and none a plain one's. */
	IS(ASK(array_create, .id = id, .width = 64, .height = 16, .format = BYTE, .channels = 1,
		   .levels = 2),
		CUDA_ERROR_INVALID_VALUE);
	IS(ASK(array_create, .id = ID(MIPMAP, 201), .width = 64, .height = 16, .format = BYTE,
		   .channels = 1),
		CUDA_ERROR_INVALID_VALUE);
	memory->limit = used + 1024;
	IS(ASK(array_create, .id = id, .width = 64, .height = 17, .format = BYTE, .channels = 1),
		CUDA_ERROR_OUT_OF_MEMORY);
	memory->limit = kept;
	IS(ckt_memory_used(memory), used);
	IS(ckt_worker.objects.count, objects);
	IS(ckt_worker.checkpoint.journal.count, journal);
	MUST(ASK(array_create, .id = id, .width = 64, .height = 16, .format = BYTE, .channels = 1),
		CUDA_SUCCESS);
	IS(ckt_memory_used(memory), used + 64 * 16);
	IS(ASK(array_create, .id = id, .width = 64, .height = 16, .format = BYTE, .channels = 1),
		CUDA_ERROR_INVALID_VALUE);
	IS(ckt_memory_used(memory), used + 64 * 16);
	IS(ckt_worker.checkpoint.journal.count, journal + 1);
	IS(ASK(array_destroy, .id = ID(ARRAY, 299)), CUDA_ERROR_INVALID_HANDLE);
	IS(ASK(array_destroy, .id = id), CUDA_SUCCESS);
	IS(ASK(array_destroy, .id = id), CUDA_ERROR_INVALID_HANDLE);
	ckt_long_call_drain(&ckt_worker, -1);
	IS(ckt_memory_used(memory), used);
	IS(ckt_worker.checkpoint.journal.count, journal); /* came and went: no trace */
	IS(CUT(array_create, .id = id), 0);
	IS(CUT(array_destroy, .id = id), 0);
	ckt_long_call_drain(&ckt_worker, -1);
}

static void test_levels(void)
{
	uint64_t plain = ID(ARRAY, 202), levels = ID(MIPMAP, 202);
	CUarray array, first;
	MUST(ASK(array_create, .id = plain, .width = 8, .height = 8, .format = BYTE, .channels = 1),
		CUDA_SUCCESS);
	MUST(ASK(array_create, .id = levels, .width = 8, .height = 8, .format = BYTE, .channels = 1,
		     .levels = 3),
		CUDA_SUCCESS);
	const struct ckt_object *object = ckt_objects_find(&ckt_worker.objects, levels);
	IS(ckt_array_level_count(object->array), 3);
	IS(object->array->bytes, 64 + 16 + 4);
	IS(ckt_array_level_count(ckt_objects_find(&ckt_worker.objects, plain)->array), 1);
	IS(ckt_array_real(&ckt_worker, plain, 0, &array), CUDA_SUCCESS);
	IS(ckt_array_real(&ckt_worker, plain, 1, &array), CUDA_ERROR_INVALID_HANDLE);
	IS(ckt_array_real(&ckt_worker, levels, 0, &first), CUDA_SUCCESS);
	IS(ckt_array_real(&ckt_worker, levels, 2, &array), CUDA_SUCCESS);
	YES(array != first);
	IS(ckt_array_real(&ckt_worker, levels, 3, &array), CUDA_ERROR_INVALID_HANDLE);
	IS(ckt_array_real(&ckt_worker, levels, UINT32_MAX, &array), CUDA_ERROR_INVALID_HANDLE);
	IS(ckt_array_real(&ckt_worker, ID(STREAM, 299), 0, &array), CUDA_ERROR_INVALID_HANDLE);
	/* The whole of it, level behind level. */
	uint8_t in[84], back[84] = {0};
	for (size_t i = 0; i < sizeof in; i++)
		in[i] = (uint8_t)(i + 1);
	IS(ckt_array_write(object, in), CUDA_SUCCESS);
	IS(ckt_array_read(object, back), CUDA_SUCCESS);
	IS(memcmp(in, back, sizeof in), 0);
	struct inside_reply *reply =
		INSIDE(memcpy_atoh, false, .array = levels, .level = 1, .width = 4, .height = 4);
	struct ckt_memcpy_atoh_res res = {0};
	MUST(reply->result, CUDA_SUCCESS);
	YES(ckt_memcpy_atoh_res_get(&reply->results, &res));
	MUST(res.data_len, 16);
	IS(memcmp(res.data, in + 64, 16), 0);
	IS(ASK(array_destroy, .id = levels), CUDA_SUCCESS);
	IS(ASK(array_destroy, .id = plain), CUDA_SUCCESS);
	ckt_long_call_drain(&ckt_worker, -1);
}

static void test_copies(void)
{
	uint64_t a = ID(ARRAY, 203), none = ID(ARRAY, 299),
		 memory = inside_memory(4096, 0x07070707);
	uint8_t data[64];
	memset(data, 0x55, sizeof data);
	MUST(ASK(array_create, .id = a, .width = 16, .height = 8, .format = BYTE, .channels = 1),
		CUDA_SUCCESS);
	IS(ASK(memcpy_htoa, .array = a, .width = 16, .height = 4, .data = data, .data_len = 64),
		CUDA_SUCCESS);
	/* As much data as the rectangle has, no product that wraps around. */
	static const uint32_t wrong[][3] = {{16, 4, 63}, {16, 3, 64}, {0, 0, 64},
		{0x10000, 0x10000, 0}, {UINT32_MAX, UINT32_MAX, 1}, {64, 1, 0}};
	for (size_t i = 0; i < COUNT(wrong); i++)
		IS(ASK(memcpy_htoa, .array = a, .width = wrong[i][0], .height = wrong[i][1],
			   .data = data, .data_len = wrong[i][2]),
			INSIDE_GARBAGE);
	const struct {
		uint64_t array, stream;
		uint32_t level;
	} handles[] = {{none, 0, 0}, {a, ID(STREAM, 299), 0}, {a, 0, 1}, {0, 0, 0}};
	for (size_t i = 0; i < COUNT(handles); i++) {
		IS(ASK(memcpy_htoa, .array = handles[i].array, .level = handles[i].level,
			   .stream = handles[i].stream, .width = 16, .height = 4, .data = data,
			   .data_len = 64),
			CUDA_ERROR_INVALID_HANDLE);
		IS(ASK(memcpy_atoh, .array = handles[i].array, .level = handles[i].level,
			   .stream = handles[i].stream, .width = 16, .height = 4),
			CUDA_ERROR_INVALID_HANDLE);
		if (handles[i].array)
			IS(ASK(memcpy_array, .dst_array = handles[i].array,
				   .dst_level = handles[i].level, .src_x = memory, .src_pitch = 16,
				   .src_rows = 4, .width = 16, .height = 4, .depth = 1,
				   .stream = handles[i].stream),
				CUDA_ERROR_INVALID_HANDLE);
	}
	/* Behind the array's end is the driver's to refuse; a reply must fit in a message. */
	IS(ASK(memcpy_htoa, .array = a, .x = 8, .width = 16, .height = 4, .data = data,
		   .data_len = 64),
		CUDA_ERROR_INVALID_VALUE);
	IS(ASK(memcpy_htoa, .array = a, .y = UINT64_MAX, .width = 16, .height = 4, .data = data,
		   .data_len = 64),
		CUDA_ERROR_INVALID_VALUE);
	IS(ASK(memcpy_atoh, .array = a, .width = 16, .height = 9), CUDA_ERROR_INVALID_VALUE);
	IS(ASK(memcpy_atoh, .array = a, .width = UINT32_MAX, .height = UINT32_MAX),
		CUDA_ERROR_INVALID_VALUE);
	IS(ASK(memcpy_atoh, .array = a, .width = CKT_DATA_MAX, .height = 2),
		CUDA_ERROR_INVALID_VALUE);
	/* From memory into its lower half, and all of it back. */
	IS(ASK(memcpy_array, .dst_array = a, .dst_y = 4, .src_x = memory, .src_pitch = 16,
		   .src_rows = 4, .width = 16, .height = 4, .depth = 1),
		CUDA_SUCCESS);
	struct inside_reply *reply =
		INSIDE(memcpy_atoh, false, .array = a, .width = 16, .height = 8);
	struct ckt_memcpy_atoh_res res = {0};
	MUST(reply->result, CUDA_SUCCESS);
	YES(ckt_memcpy_atoh_res_get(&reply->results, &res) && res.data_len == 128);
	for (unsigned i = 0; i < 128 && i < res.data_len; i++)
		IS(res.data[i], i < 64 ? 0x55 : 0x07);
	IS(CUT(memcpy_htoa, .array = a, .width = 8, .height = 1, .data = data, .data_len = 8), 0);
	IS(CUT(memcpy_atoh, .array = a, .width = 8, .height = 1), 0);
	IS(CUT(memcpy_array, .dst_array = a), 0);
	IS(ASK(array_destroy, .id = a), CUDA_SUCCESS);
	inside_free(memory);
	ckt_long_call_drain(&ckt_worker, -1);
}

/*
 * Pieces that begin and end anywhere are what the whole contents have there, whichever way they go.
 */
static void test_pieces(void)
{
	enum { ROW = 12, ROWS = 5, SLICES = 3, BYTES = ROW * ROWS * SLICES };
	static const unsigned cases[][2] = {{0, BYTES}, {0, 4}, {4, 4}, {8, 8}, {12, 12}, {8, 60},
		{60, 60}, {56, 68}, {4, BYTES - 8}, {120, 60}, {BYTES - 4, 4}};
	uint64_t id = ID(ARRAY, 210), mips = ID(MIPMAP, 210), device = inside_memory(1 << 20, 0);
	MUST(ASK(array_create, .id = id, .width = 3, .height = ROWS, .depth = SLICES,
		     .format = CU_AD_FORMAT_FLOAT, .channels = 1),
		CUDA_SUCCESS);
	const struct ckt_object *object = ckt_objects_find(&ckt_worker.objects, id);
	uint8_t whole[BYTES], got[BYTES], want[BYTES];
	IS(object->array->bytes, BYTES);
	for (unsigned i = 0; i < BYTES; i++)
		whole[i] = (uint8_t)(i + 1);
	for (size_t c = 0; c < COUNT(cases); c++) {
		unsigned at = cases[c][0], size = cases[c][1];
		IS(ckt_array_write(object, whole), CUDA_SUCCESS);
		memset(got, 0, sizeof got);
		IS(ckt_array_move_piece(object, at, size, CKT_PIECE_TO_HOST, (uintptr_t)got, NULL),
			CUDA_SUCCESS);
		IS(ckt_driver.cuStreamSynchronize(NULL), CUDA_SUCCESS);
		IS(memcmp(got, whole + at, size), 0);
		IS(ckt_array_move_piece(object, at, size, CKT_PIECE_TO_DEVICE, device, NULL),
			CUDA_SUCCESS);
		IS(ckt_driver.cuMemcpyDtoH_v2(got, device, size), CUDA_SUCCESS);
		IS(memcmp(got, whole + at, size), 0);
		memcpy(want, whole, BYTES);
		memset(want + at, 0xee, size);
		IS(ckt_array_move_piece(
			   object, at, size, CKT_PIECE_FROM_HOST, (uintptr_t)(want + at), NULL),
			CUDA_SUCCESS);
		IS(ckt_driver.cuStreamSynchronize(NULL), CUDA_SUCCESS);
		IS(ckt_array_read(object, got), CUDA_SUCCESS);
		IS(memcmp(got, want, BYTES), 0);
	}
	IS(ASK(array_destroy, .id = id), CUDA_SUCCESS);
	/* Across levels: 64, 16 and 4 bytes. */
	MUST(ASK(array_create, .id = mips, .width = 8, .height = 8, .format = BYTE, .channels = 1,
		     .levels = 3),
		CUDA_SUCCESS);
	object = ckt_objects_find(&ckt_worker.objects, mips);
	IS(ckt_array_write(object, whole), CUDA_SUCCESS);
	IS(ckt_array_move_piece(object, 60, 22, CKT_PIECE_TO_HOST, (uintptr_t)got, NULL),
		CUDA_SUCCESS);
	IS(ckt_driver.cuStreamSynchronize(NULL), CUDA_SUCCESS);
	IS(memcmp(got, whole + 60, 22), 0);
	IS(ckt_array_move_piece(object, 80, 4, CKT_PIECE_TO_HOST, (uintptr_t)got, NULL),
		CUDA_SUCCESS);
	IS(ckt_driver.cuStreamSynchronize(NULL), CUDA_SUCCESS);
	IS(memcmp(got, whole + 80, 4), 0);
	IS(ASK(array_destroy, .id = mips), CUDA_SUCCESS);
	ckt_long_call_drain(&ckt_worker, -1);
	inside_free(device);
}

/* What an image that others build on has in its journal stays there: the array's end is added. */
static void test_journal(void)
{
	uint64_t id = ID(ARRAY, 211);
	size_t journal = ckt_worker.checkpoint.journal.count,
	       saved = ckt_worker.checkpoint.journal.saved;
	MUST(ASK(array_create, .id = id, .width = 64, .height = 16, .format = BYTE, .channels = 1),
		CUDA_SUCCESS);
	ckt_worker.checkpoint.journal.saved = ckt_worker.checkpoint.journal.count;
	IS(ASK(array_destroy, .id = id), CUDA_SUCCESS);
	ckt_long_call_drain(&ckt_worker, -1);
	IS(ckt_worker.checkpoint.journal.count, journal + 2);
	IS(ckt_worker.checkpoint.journal.list[journal + 1].kind, CKT_JOURNAL_ARRAY_DESTROY);
	ckt_worker.checkpoint.journal.count = journal;
	ckt_worker.checkpoint.journal.saved = saved;
	ckt_long_call_drain(&ckt_worker, -1);
}

UNIT_SUITE(array, {"pieces", test_pieces}, {"journal", test_journal}, {"make", test_make},
	{"levels", test_levels}, {"copies", test_copies})
