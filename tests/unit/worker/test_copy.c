/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server/worker/memory/copy.c: copies and fills by their commands: every width, packed rows, and
 * arguments that no client sends.
 */
#include <stdlib.h>
#include <string.h>

#include "server/worker/memory/copy.h"
#include "server/worker/objects/fence.h"
#include "tests/unit/worker/inside.h"

enum { SIZE = 2 << 20 };

static uint64_t memory;

static void read_back(uint64_t at, void *ret, size_t size)
{
	ckt_driver.cuCtxSynchronize();
	IS(ckt_driver.cuMemcpyDtoH_v2(ret, at, size), CUDA_SUCCESS);
}

static void test_fill(void)
{
	static const struct {
		uint32_t element, value;
		uint64_t pitch, width, height;
		int result;
		uint8_t wanted[24];
	} cases[] = {
		{1, 0x1ab, 0, 3, 1, 0, {0xab, 0xab, 0xab}},
		{2, 0x1234, 0, 2, 1, 0, {0x34, 0x12, 0x34, 0x12}},
		{4, 0x01020304, 0, 2, 1, 0, {4, 3, 2, 1, 4, 3, 2, 1}},
		{1, 7, 8, 2, 3, 0, {7, 7, 0, 0, 0, 0, 0, 0, 7, 7, 0, 0, 0, 0, 0, 0, 7, 7}},
		{4, 9, 8, 1, 2, 0, {9, 0, 0, 0, 0, 0, 0, 0, 9}},
		{3, 9, 0, 1, 1, CUDA_ERROR_INVALID_VALUE, {0}},
		{0, 9, 0, 1, 1, CUDA_ERROR_INVALID_VALUE, {0}},
		{8, 9, 0, 1, 1, CUDA_ERROR_INVALID_VALUE, {0}},
	};
	memory = inside_memory(SIZE, 0);
	for (size_t i = 0; i < COUNT(cases); i++) {
		uint8_t got[24];
		inside_fill(memory, 0, 64);
		IS(ASK(memset, .dst = memory, .element_size = cases[i].element,
			   .value = cases[i].value, .pitch = cases[i].pitch,
			   .width = cases[i].width, .height = cases[i].height),
			cases[i].result);
		read_back(memory, got, sizeof got);
		if (!IS(memcmp(got, cases[i].wanted, sizeof got), 0))
			CU_FAIL("of a row of the table");
	}
	IS(ASK(memset, .dst = memory, .element_size = 1, .width = 1, .height = 1,
		   .stream = ID(STREAM, 99)),
		CUDA_ERROR_INVALID_HANDLE);
	YES(ASK(memset, .dst = 0x1000, .element_size = 1, .width = 1, .height = 1) != CUDA_SUCCESS);
}

static void test_to_device(void)
{
	static uint8_t data[1 << 16], got[1 << 17];
	static const uint32_t sizes[] = {1, 4096, (64 << 10) - 1, 64 << 10};
	for (size_t i = 0; i < sizeof data; i++)
		data[i] = (uint8_t)(i * 7 >> 2);
	for (size_t i = 0; i < COUNT(sizes); i++) {
		inside_fill(memory, 0, 1 << 17);
		IS(ASK(memcpy_htod, .dst = memory + 3, .data = data, .data_len = sizes[i]),
			CUDA_SUCCESS);
		read_back(memory, got, sizeof got);
		IS(memcmp(got + 3, data, sizes[i]), 0);
		IS(got[2] + got[3 + sizes[i]], 0);
	}
	IS(ASK(memcpy_htod, .dst = memory, .data = data, .data_len = 1, .stream = ID(STREAM, 99)),
		CUDA_ERROR_INVALID_HANDLE);
	/* Rows of three bytes, each eight behind the one before. */
	inside_fill(memory, 0, 64);
	IS(ASK(memcpy2d_htod, .dst = memory, .dst_pitch = 8, .width = 3, .height = 2,
		   .data = data + 100, .data_len = 6),
		CUDA_SUCCESS);
	read_back(memory, got, 16);
	IS(memcmp(got, data + 100, 3), 0);
	IS(memcmp(got + 8, data + 103, 3), 0);
	IS(got[3], 0);
	/* The data must be what the rows come to. */
	IS(ASK(memcpy2d_htod, .dst = memory, .dst_pitch = 8, .width = 3, .height = 3, .data = data,
		   .data_len = 6),
		INSIDE_GARBAGE);
	IS(ASK(memcpy2d_htod, .dst = memory, .dst_pitch = 8, .width = 0x10000, .height = 0x10000,
		   .data = data, .data_len = 0),
		INSIDE_GARBAGE);
	YES(ASK(memcpy2d_htod, .dst = memory, .dst_pitch = 2, .width = 3, .height = 2, .data = data,
		    .data_len = 6) != CUDA_SUCCESS);
	/* Above what the driver takes aside, the bytes go by staging memory. */
	struct ckt_staging_piece *piece;
	YES(ckt_worker_source(&ckt_worker, data, 64 << 10, &piece) == data && !piece);
	uint8_t *large = calloc(1, CKT_DATA_MAX);
	large[CKT_DATA_MAX - 1] = 5;
	const uint8_t *from = ckt_worker_source(&ckt_worker, large, CKT_DATA_MAX, &piece);
	YES(piece && from == piece->data && from[CKT_DATA_MAX - 1] == 5);
	IS(ASK(memcpy_htod, .dst = memory, .data = large, .data_len = CKT_DATA_MAX), CUDA_SUCCESS);
	read_back(memory + CKT_DATA_MAX - 4, got, 4);
	IS(got[3], 5);
	free(large);
}

static void test_to_host(void)
{
	uint8_t data[4096];
	struct ckt_memcpy_dtoh_res res;
	struct ckt_memcpy2d_dtoh_res rows;
	for (size_t i = 0; i < sizeof data; i++)
		data[i] = (uint8_t)(i * 13 >> 1);
	MUST(ckt_driver.cuMemcpyHtoD_v2(memory, data, sizeof data), CUDA_SUCCESS);
	struct inside_reply *reply = INSIDE(memcpy_dtoh, false, .src = memory + 5, .size = 1000);
	IS(reply->result, CUDA_SUCCESS);
	YES(ckt_memcpy_dtoh_res_get(&reply->results, &res) && res.data_len == 1000 &&
		!memcmp(res.data, data + 5, 1000));
	reply = INSIDE(
		memcpy2d_dtoh, false, .src = memory, .src_pitch = 100, .width = 7, .height = 5);
	IS(reply->result, CUDA_SUCCESS);
	YES(ckt_memcpy2d_dtoh_res_get(&reply->results, &rows) && rows.data_len == 35);
	for (int row = 0; row < 5; row++)
		IS(memcmp(rows.data + row * 7, data + row * 100, 7), 0);
	IS(ASK(memcpy_dtoh, .src = memory, .size = CKT_DATA_MAX + 1), CUDA_ERROR_INVALID_VALUE);
	IS(ASK(memcpy_dtoh, .src = memory, .size = UINT32_MAX), CUDA_ERROR_INVALID_VALUE);
	IS(ASK(memcpy2d_dtoh, .src = memory, .src_pitch = 1 << 20, .width = 1 << 16,
		   .height = 1 << 16),
		CUDA_ERROR_INVALID_VALUE);
	IS(ASK(memcpy_dtoh, .src = memory, .size = 1, .stream = ID(EVENT, 1)),
		CUDA_ERROR_INVALID_HANDLE);
	/* Refusals give the piece back: there are as many as before. */
	struct ckt_staging_piece *first = ckt_staging_to_host(&ckt_worker.staging, 100);
	ckt_staging_give(&ckt_worker.staging, first);
	for (int i = 0; i < CKT_STAGING_SMALLS + 50; i++)
		if (ASK(memcpy_dtoh, .src = memory + SIZE * 1024ull, .size = 100) == CUDA_SUCCESS)
			CU_FAIL("an address of nobody was read");
	struct ckt_staging_piece *after = ckt_staging_to_host(&ckt_worker.staging, 100);
	YES(first == after);
	ckt_staging_give(&ckt_worker.staging, after);
}

static void test_on_device(void)
{
	uint8_t data[64], got[64];
	for (size_t i = 0; i < sizeof data; i++)
		data[i] = (uint8_t)(i + 1);
	MUST(ckt_driver.cuMemcpyHtoD_v2(memory, data, sizeof data), CUDA_SUCCESS);
	inside_fill(memory + 4096, 0, 64);
	IS(ASK(memcpy_dtod, .dst = memory + 4096, .src = memory + 8, .size = 16), CUDA_SUCCESS);
	read_back(memory + 4096, got, 32);
	IS(memcmp(got, data + 8, 16), 0);
	IS(got[16], 0);
	IS(ASK(memcpy2d_dtod, .dst = memory + 8192, .dst_pitch = 4, .src = memory, .src_pitch = 16,
		   .width = 4, .height = 3),
		CUDA_SUCCESS);
	read_back(memory + 8192, got, 12);
	for (int row = 0; row < 3; row++)
		IS(memcmp(got + row * 4, data + row * 16, 4), 0);
	IS(ASK(memcpy_dtod, .dst = memory, .src = memory, .size = 1, .stream = ID(STREAM, 99)),
		CUDA_ERROR_INVALID_HANDLE);
}

static void test_memory(void)
{
	struct ckt_mem_alloc_res res;
	struct ckt_mem_get_info_res info, then;
	struct inside_reply *reply = INSIDE(mem_get_info, false, .device = 0);
	YES(ckt_mem_get_info_res_get(&reply->results, &info));
	IS(info.total, (uint64_t)4 << 30);
	reply = INSIDE(mem_alloc, false, .size = (uint64_t)256 << 20);
	IS(reply->result, CUDA_SUCCESS);
	YES(ckt_mem_alloc_res_get(&reply->results, &res));
	reply = INSIDE(mem_get_info, false, .device = 0);
	YES(ckt_mem_get_info_res_get(&reply->results, &then));
	IS(info.free - then.free, (uint64_t)256 << 20);
	IS(ASK(mem_alloc, .size = (uint64_t)1 << 50), CUDA_ERROR_OUT_OF_MEMORY);
	IS(ASK(mem_alloc, .size = UINT64_MAX), CUDA_ERROR_OUT_OF_MEMORY);
	IS(ASK(mem_alloc, .size = 4, .device = 2), CUDA_ERROR_INVALID_DEVICE);
	IS(ASK(mem_get_info, .device = UINT32_MAX), CUDA_ERROR_INVALID_DEVICE);
	IS(ASK(mem_free, .address = res.address + 1), CUDA_ERROR_INVALID_VALUE);
	IS(ASK(mem_free, .address = 0x1000), CUDA_ERROR_INVALID_VALUE);
	/* It goes when the work that may use it is done. */
	inside_spin(CU_STREAM_LEGACY);
	ckt_worker.current->ctx.fences->legacy = true;
	inside_stop();
	IS(ASK(mem_free, .address = res.address), CUDA_SUCCESS);
	IS(ASK(mem_free, .address = res.address), CUDA_ERROR_INVALID_VALUE);
	/* nobody's: nothing to do */
	IS(ASK(graph_mem_free, .address = res.address), CUDA_SUCCESS);
	IS(CUT(mem_alloc, .size = 4), 0);
	IS(CUT(memcpy_dtoh, .src = memory, .size = 4), 0);
	IS(CUT(memcpy_htod, .dst = memory, .data = (const uint8_t *)"12345", .data_len = 5), 0);
	IS(CUT(memset, .dst = memory, .element_size = 1), 0);
	IS(CUT(memcpy2d_dtod, .dst = memory), 0);
	inside_free(memory);
	ckt_memory_trim(&ckt_worker.devices[0].memory);
}

UNIT_SUITE(copy, {"fill", test_fill}, {"to the device", test_to_device},
	{"to the host", test_to_host}, {"on the device", test_on_device}, {"memory", test_memory})
