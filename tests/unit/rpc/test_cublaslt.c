/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuBLASLt's descriptors in their bytes: forms, attributes and their sizes, as the genuine
 * libraries of 13.1 and 13.10 answered without a GPU.
 */
#include <stdlib.h>
#include <string.h>

#include "rpc/cublaslt.h"
#include "tests/unit/suite.h"

/* Of the newest header. */
static const uint16_t opaque_bytes[CKT_LT_KINDS] = {256, 112, 64, 96, 64};

/* Attributes lie within the form that has them, apart from each other and from the form's word. */
static void test_places(void)
{
	for (int kind = 0; kind < CKT_LT_KINDS; kind++) {
		uint8_t used[256] = {0};
		unsigned count;
		const struct ckt_lt_attribute *all = ckt_lt_attributes(kind, &count);
		if (kind == CKT_LT_MATMUL)
			memset(used, 1, 4);
		else if (kind == CKT_LT_LAYOUT)
			memset(used + 38, 1, 2);
		else if (kind == CKT_LT_PREFERENCE)
			memset(used + 36, 1, 4);
		for (unsigned i = 0; i < count; i++) {
			YES(all[i].offset + all[i].size <= ckt_lt_form_bytes(kind, all[i].form));
			IS(all[i].offset % all[i].size, 0);
			NO(all[i].pointer && all[i].size != 8);
			unsigned kept = all[i].kept ? all[i].kept : all[i].size;
			for (unsigned b = 0; b < kept; b++)
				IS(used[all[i].offset + b]++, 0);
			for (unsigned j = 0; j < i; j++)
				YES(all[i].number != all[j].number);
		}
		YES(ckt_lt_form_bytes(kind, ckt_lt_form(kind, opaque_bytes[kind])) <=
			opaque_bytes[kind]);
	}
}

static void test_forms(void)
{
	static const struct {
		uint16_t size;
		uint8_t form;
	} matmul[] = {{0, 0}, {55, 0}, {56, 1}, {87, 1}, {88, 2}, {95, 2}, {96, 3}, {183, 3},
		{184, 4}, {255, 4}, {256, 6}, {4096, 6}};
	static const uint16_t second[CKT_LT_KINDS] = {
		[CKT_LT_LAYOUT] = 112, [CKT_LT_PREFERENCE] = 96};
	for (unsigned i = 0; i < COUNT(matmul); i++)
		IS(ckt_lt_form(CKT_LT_MATMUL, matmul[i].size), matmul[i].form);
	for (int kind = CKT_LT_LAYOUT; kind < CKT_LT_KINDS; kind++) {
		IS(ckt_lt_form(kind, 63), 0);
		IS(ckt_lt_form(kind, 64), 1);
		IS(ckt_lt_form_bytes(kind, 0), 0);
		IS(ckt_lt_form_bytes(kind, 2) != 0, second[kind] != 0);
		IS(ckt_lt_form_bytes(kind, 3), 0);
		if (second[kind]) {
			IS(ckt_lt_form(kind, second[kind] - 1), 1);
			IS(ckt_lt_form(kind, second[kind]), 2);
			YES(ckt_lt_form_bytes(kind, 2) <= second[kind]);
		}
	}
	IS(ckt_lt_form_bytes(CKT_LT_MATMUL, 0), 0);
	IS(ckt_lt_form_bytes(CKT_LT_MATMUL, 5), 200);
	IS(ckt_lt_form_bytes(CKT_LT_MATMUL, 7), 0);
	YES(CKT_LT_STRUCT_BYTES >= 256);
}

/*
 * What an older client or image sends: no word of a form where it is zero, and no more bytes than
 * it knew.
 */
static void test_older_bytes(void)
{
	uint8_t room[CKT_LT_STRUCT_BYTES] = {0};
	YES(ckt_lt_is_descriptor(CKT_LT_LAYOUT, room, 56));
	NO(ckt_lt_is_descriptor(CKT_LT_LAYOUT, room, 88));
	YES(ckt_lt_is_descriptor(CKT_LT_PREFERENCE, room, 48));
	NO(ckt_lt_is_descriptor(CKT_LT_PREFERENCE, room, 72));
	NO(ckt_lt_is_descriptor(CKT_LT_MATMUL, room, 200));
	room[0] = 5;
	YES(ckt_lt_is_descriptor(CKT_LT_MATMUL, room, 200));
	NO(ckt_lt_is_descriptor(CKT_LT_MATMUL, room, 224));
	room[0] = 7;
	NO(ckt_lt_is_descriptor(CKT_LT_MATMUL, room, 224));
	IS(ckt_lt_get(CKT_LT_LAYOUT, room, CKT_LT_LAYOUT_ROWS_ARRAY, room + 100, 8, NULL),
		CKT_LT_INVALID_VALUE);
	/* Too few bytes to look for the form in, and forms that are none. */
	for (int kind = 0; kind < CKT_LT_KINDS; kind++) {
		for (size_t size = 0; size < ckt_lt_form_bytes(kind, 1); size++) {
			uint8_t *exact = malloc(size + 1);
			memset(exact, 1, size);
			NO(ckt_lt_is_descriptor(kind, exact, size));
			free(exact);
		}
	}
	memset(room, 0xff, sizeof room);
	for (size_t size = 56; size <= sizeof room; size++) {
		NO(ckt_lt_is_descriptor(CKT_LT_LAYOUT, room, size));
		NO(ckt_lt_is_descriptor(CKT_LT_PREFERENCE, room, size));
	}
}

/* A batch mode shares its word with the form: neither harms the other. */
static void test_batch_mode(void)
{
	uint64_t room[32];
	int32_t mode = 0;
	ckt_lt_init(CKT_LT_LAYOUT, room, sizeof room);
	static const int32_t modes[] = {CKT_LT_BATCH_GROUPED, -1, 0x7fff, CKT_LT_BATCH_POINTERS};
	for (unsigned i = 0; i < COUNT(modes); i++) {
		IS(ckt_lt_set(CKT_LT_LAYOUT, room, CKT_LT_LAYOUT_BATCH_MODE, &modes[i], 4),
			CKT_LT_SUCCESS);
		IS(ckt_lt_get(CKT_LT_LAYOUT, room, CKT_LT_LAYOUT_BATCH_MODE, &mode, 4, NULL),
			CKT_LT_SUCCESS);
		IS(mode, modes[i]);
		IS(ckt_lt_bytes(CKT_LT_LAYOUT, room), CKT_LT_LAYOUT_BYTES);
	}
}

/* Nothing behind the form's bytes is touched, and too little room touches nothing. */
static void test_init(void)
{
	for (int kind = 0; kind < CKT_LT_KINDS; kind++) {
		for (size_t size = 0; size <= 256; size += 8) {
			uint8_t room[264], untouched[264];
			memset(room, 0xee, sizeof room);
			memset(untouched, 0xee, sizeof untouched);
			size_t bytes = ckt_lt_form_bytes(kind, ckt_lt_form(kind, size));
			IS(ckt_lt_init(kind, room, size),
				bytes ? CKT_LT_SUCCESS : CKT_LT_ALLOC_FAILED);
			YES(bytes <= size);
			IS(memcmp(room + bytes, untouched, sizeof room - bytes), 0);
			if (bytes)
				IS(ckt_lt_bytes(kind, room), bytes);
		}
		IS(ckt_lt_init(kind, NULL, 256), CKT_LT_INVALID_VALUE);
	}
}

static uint64_t fresh(enum ckt_lt_kind kind, int attribute)
{
	uint64_t room[32], value = 0;
	size_t written = 0;
	ckt_lt_init(kind, room, sizeof room);
	MUST(ckt_lt_get(kind, room, attribute, NULL, 0, &written), CKT_LT_SUCCESS);
	MUST(ckt_lt_get(kind, room, attribute, &value, written, NULL), CKT_LT_SUCCESS);
	return value;
}

static void test_fresh(void)
{
	IS(fresh(CKT_LT_MATMUL, 6), 2);
	IS(fresh(CKT_LT_MATMUL, 7), 1);
	IS(fresh(CKT_LT_MATMUL, 22), 0xffffffff);
	IS(fresh(CKT_LT_MATMUL, 26), 0xffffffff);
	IS(fresh(CKT_LT_MATMUL, 25), 0);
	IS(fresh(CKT_LT_MATMUL, 41), 0x8000);
	IS(fresh(CKT_LT_LAYOUT, 5), 1);
	IS(fresh(CKT_LT_PREFERENCE, 3), 7);
	IS(fresh(CKT_LT_PREFERENCE, 8), 256);
	IS(fresh(CKT_LT_PREFERENCE, 12), -1);
	IS(fresh(CKT_LT_EMULATION, 1), 0xffff);
}

/* Every number from -1 to 63 with every size about its own. */
static void test_set_and_get(void)
{
	for (int kind = 0; kind < CKT_LT_KINDS; kind++) {
		uint64_t room[32];
		ckt_lt_init(kind, room, sizeof room);
		for (int attribute = -1; attribute < 64; attribute++) {
			uint8_t value[16], got[16] = {0};
			size_t written = 777;
			memset(value, attribute + 3, sizeof value);
			/* A small number, as there are modes. */
			if (kind == CKT_LT_LAYOUT && attribute == CKT_LT_LAYOUT_BATCH_MODE)
				value[2] = value[3] = 0;
			if (ckt_lt_get(kind, room, attribute, NULL, 0, &written)) {
				IS(written, 777);
				for (size_t size = 0; size <= 8; size++)
					IS(ckt_lt_set(kind, room, attribute, value, size),
						CKT_LT_INVALID_VALUE);
				continue;
			}
			size_t size = written;
			for (size_t wrong = 0; wrong <= 16; wrong++) {
				written = 777;
				if (wrong != size)
					IS(ckt_lt_set(kind, room, attribute, value, wrong),
						CKT_LT_INVALID_VALUE);
				if (wrong && wrong != size)
					IS(ckt_lt_get(kind, room, attribute, got, wrong, &written),
						CKT_LT_INVALID_VALUE);
				IS(written, 777);
			}
			IS(ckt_lt_set(kind, room, attribute, value, size), CKT_LT_SUCCESS);
			IS(ckt_lt_get(kind, room, attribute, got, size, &written), CKT_LT_SUCCESS);
			IS(written, size);
			IS(memcmp(got, value, size), 0);
			IS(ckt_lt_set(kind, room, attribute, NULL, size), CKT_LT_INVALID_VALUE);
			IS(ckt_lt_get(kind, room, attribute, NULL, size, &written),
				CKT_LT_INVALID_VALUE);
			IS(ckt_lt_get(kind, room, attribute, NULL, 0, NULL), CKT_LT_INVALID_VALUE);
		}
		IS(ckt_lt_set(kind, NULL, 0, room, 4), CKT_LT_INVALID_VALUE);
		IS(ckt_lt_get(kind, NULL, 0, room, 4, NULL), CKT_LT_INVALID_VALUE);
	}
}

/*
 * What an older program's shorter struct has no room for is unknown; the first attribute of each
 * form.
 */
static void test_old_forms(void)
{
	static const uint16_t sizes[] = {56, 88, 96, 184, 256};
	static const uint8_t first[] = {8, 11, 15, 17, 31};
	uint64_t room[32], value = 5;
	for (unsigned f = 0; f < COUNT(sizes); f++) {
		ckt_lt_init(CKT_LT_MATMUL, room, sizes[f]);
		for (unsigned a = 0; a < COUNT(first); a++) {
			size_t size = first[a] == 15 || first[a] == 31 ? 4 : 8;
			IS(ckt_lt_set(CKT_LT_MATMUL, room, first[a], &value, size),
				a <= f ? CKT_LT_SUCCESS : CKT_LT_INVALID_VALUE);
		}
	}
}

static void test_pointers(void)
{
	uint64_t room[32], value;
	ckt_lt_init(CKT_LT_MATMUL, room, sizeof room);
	ckt_lt_set(CKT_LT_MATMUL, room, 8, &(uint64_t){0x200000000010}, 8);
	ckt_lt_set(CKT_LT_MATMUL, room, 11, &(uint64_t){0x200000100000}, 8);
	ckt_lt_set(CKT_LT_MATMUL, room, 38, &(uint64_t){0x7fff00000010}, 8);
	ckt_lt_set(CKT_LT_MATMUL, room, 12, &(uint64_t){48}, 8);
	ckt_lt_reduce_pointers(CKT_LT_MATMUL, room);
	static const struct {
		uint8_t number;
		uint64_t value;
	} expected[] = {
		{8, 16}, {11, CKT_LT_ALIGNMENT_MAX}, {17, 0}, {38, 0x7fff00000010}, {12, 48}};
	for (unsigned i = 0; i < COUNT(expected); i++) {
		ckt_lt_get(CKT_LT_MATMUL, room, expected[i].number, &value, 8, NULL);
		IS(value, expected[i].value);
	}
	ckt_lt_init(CKT_LT_LAYOUT, room, sizeof room);
	ckt_lt_set(CKT_LT_LAYOUT, room, CKT_LT_LAYOUT_LD_ARRAY, &(uint64_t){0x200000000020}, 8);
	ckt_lt_set(CKT_LT_LAYOUT, room, 4, &(uint64_t){48}, 8);
	ckt_lt_reduce_pointers(CKT_LT_LAYOUT, room);
	ckt_lt_get(CKT_LT_LAYOUT, room, CKT_LT_LAYOUT_LD_ARRAY, &value, 8, NULL);
	IS(value, 32);
	ckt_lt_get(CKT_LT_LAYOUT, room, 4, &value, 8, NULL);
	IS(value, 48);
	/* Of a short form nothing behind its end is touched. */
	memset(room, 0x11, sizeof room);
	ckt_lt_init(CKT_LT_MATMUL, room, 56);
	ckt_lt_reduce_pointers(CKT_LT_MATMUL, room);
	IS(room[7], 0x1111111111111111);
	IS(ckt_lt_word(CKT_LT_MATMUL, room, 6), 2);
	IS(ckt_lt_word(CKT_LT_MATMUL, room, 8), 0);
}

static void test_scalars(void)
{
	IS(ckt_lt_scalar_bytes(0), 4);
	IS(ckt_lt_scalar_bytes(1), 8);
	IS(ckt_lt_scalar_bytes(2), 2);
	IS(ckt_lt_scalar_bytes(4), 8);
	IS(ckt_lt_scalar_bytes(5), 16);
	IS(ckt_lt_scalar_bytes(10), 4);
	IS(ckt_lt_scalar_bytes(14), 2);
	IS(ckt_lt_scalar_bytes(34), 0);
	IS(ckt_lt_scalar_bytes(UINT32_MAX), 0);
	for (uint32_t type = 0; type < 64; type++)
		YES(ckt_lt_scalar_bytes(type) <= CKT_LT_SCALAR_BYTES);
}

static void test_strides(void)
{
	static const struct {
		uint32_t mode;
		uint64_t alpha, beta;
		bool on_host;
	} cases[] = {{CKT_LT_POINTER_HOST, 0, 0, false}, {CKT_LT_POINTER_HOST, 1, 0, true},
		{CKT_LT_POINTER_HOST, 0, 1, true}, {CKT_LT_POINTER_DEVICE, 1, 1, false},
		{CKT_LT_POINTER_ALPHA_VECTOR_BETA_HOST, 1, 0, false},
		{CKT_LT_POINTER_ALPHA_VECTOR_BETA_HOST, 0, 1, true}};
	uint64_t room[32];
	for (unsigned i = 0; i < COUNT(cases); i++) {
		ckt_lt_init(CKT_LT_MATMUL, room, sizeof room);
		ckt_lt_set(CKT_LT_MATMUL, room, CKT_LT_MATMUL_POINTER_MODE, &cases[i].mode, 4);
		ckt_lt_set(
			CKT_LT_MATMUL, room, CKT_LT_MATMUL_ALPHA_BATCH_STRIDE, &cases[i].alpha, 8);
		ckt_lt_set(CKT_LT_MATMUL, room, CKT_LT_MATMUL_BETA_BATCH_STRIDE, &cases[i].beta, 8);
		IS(ckt_lt_strides_on_host(room), cases[i].on_host);
	}
	ckt_lt_init(CKT_LT_MATMUL, room, 56);
	NO(ckt_lt_strides_on_host(room));
}

UNIT_SUITE(cublaslt, {"places of attributes", test_places}, {"forms", test_forms},
	{"older bytes", test_older_bytes}, {"batch mode", test_batch_mode}, {"init", test_init},
	{"fresh values", test_fresh}, {"set and get", test_set_and_get},
	{"old forms", test_old_forms}, {"pointers", test_pointers}, {"scalars", test_scalars},
	{"strides", test_strides})
