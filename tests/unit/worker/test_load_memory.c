/* SPDX-License-Identifier: Apache-2.0 */
/*
 * checkpoint/load/load_memory.c: memory is at its addresses again: allocations, what the program
 * mapped itself, memory mapped nowhere, and zeros where the image has nothing.
 */
#include <stdlib.h>
#include <sys/stat.h>

#include "tests/unit/worker/restore.h"

#define PHYSICAL(n) ckt_handle_make(CKT_KIND_PHYSICAL, 1, 2000 + (n))

static uint64_t reserve(struct wire *w, uint64_t size)
{
	struct wire_reply reply = WIRE_CALL(w, address_reserve, true, .size = size);
	struct ckt_address_reserve_res res = {0};
	MUST(reply.result, CUDA_SUCCESS);
	YES(ckt_address_reserve_res_get(&reply.results, &res));
	free(reply.data);
	return res.address;
}

static void map(struct wire *w, uint64_t address, unsigned n)
{
	MUST(done(WIRE_CALL(w, mem_map, true, .address = address, .size = 2 * MIB,
		     .physical = PHYSICAL(n))),
		CUDA_SUCCESS);
	MUST(done(WIRE_CALL(w, mem_set_access, true, .address = address, .size = 2 * MIB,
		     .access = CU_MEM_ACCESS_FLAGS_PROT_READWRITE)),
		CUDA_SUCCESS);
}

static void unmap(struct wire *w, uint64_t address)
{
	WIRE_BATCH(w, mem_unmap, .address = address, .size = 2 * MIB);
	IS(done(WIRE_CALL(w, ctx_synchronize, false)), CUDA_SUCCESS);
}

/* One mapped and one not; what lies between them is nobody's. */
static void test_mapped(void)
{
	char directory[] = "/tmp/ckt-image-XXXXXX";
	make_directory(directory);
	struct wire *w = session_new();
	uint64_t at = reserve(w, 6 * MIB);
	for (unsigned n = 0; n < 2; n++) {
		MUST(done(n ? WIRE_CALL(w, physical_create_compressible, true, .id = PHYSICAL(n),
				      .size = 2 * MIB, .compression = 1)
			    : WIRE_CALL(w, physical_create, true, .id = PHYSICAL(n),
				      .size = 2 * MIB)),
			CUDA_SUCCESS);
		map(w, at + 4 * n * MIB, n);
		fill(w, at + 4 * n * MIB, 5 + n, 2 * MIB);
	}
	unmap(w, at + 4 * MIB);
	for (unsigned round = 0; round < 2; round++) {
		save_and_stop(w, directory);
		ckt_image image;
		read_image(directory, &image);
		MUST(image.compressibles.compressibles_len, 1);
		IS(image.compressibles.compressibles_val[0].physical, PHYSICAL(1));
		IS(image.compressibles.compressibles_val[0].compression,
			CU_MEM_ALLOCATION_COMP_GENERIC);
		xdr_free((xdrproc_t)xdr_ckt_image, (char *)&image);
		restore(w, directory);
		remove_directory(directory);
		MUST(mkdir(directory, 0700), 0);
		IS(get_u32(w, at), 5);
		IS(get_u32(w, at + 2 * MIB - 4), 5);
		/*
		 * Where nothing was mapped, nothing is; and the reservation is whole: another
		 * cannot have its addresses.
		 */
		IS(done(WIRE_CALL(w, memcpy_dtoh, true, .src = at + 4 * MIB, .size = 4)),
			CUDA_ERROR_INVALID_VALUE);
		uint64_t other = reserve(w, 2 * MIB);
		YES(other >= at + 6 * MIB || other + 2 * MIB <= at);
		WIRE_BATCH(w, address_free, .address = other, .size = 2 * MIB);
		map(w, at + 4 * MIB, 1);
		IS(get_u32(w, at + 4 * MIB), 6);
		unmap(w, at + 4 * MIB);
	}
	session_end(w);
	remove_directory(directory);
}

/* Chunks of zeros are not in an image, and fresh memory is anything. */
static void test_zeros(void)
{
	char directory[] = "/tmp/ckt-image-XXXXXX";
	make_directory(directory);
	struct wire *w = session_new();
	uint64_t full = alloc(w, 8 * MIB), empty = alloc(w, 4 * MIB), small = alloc(w, 512);
	load(w, 0, common);
	const uint32_t step = (uint32_t)-7;
	launch(w, 0, ADD, &step, 4);
	fill(w, full, 9, 8 * MIB);
	fill(w, full + 4 * MIB, 0, 4 * MIB);
	fill(w, empty, 0, 4 * MIB);
	fill(w, small, 3, 512);
	save_and_stop(w, directory);
	restore(w, directory);
	IS(get_u32(w, full + 4 * MIB - 4), 9);
	for (unsigned i = 0; i < 4; i++) {
		IS(get_u32(w, full + (4 + i) * MIB), 0);
		IS(get_u32(w, empty + i * MIB), 0);
	}
	IS(get_u32(w, small + 508), 3);
	/* A variable, too: its file says 7. */
	IS(hidden(w, 0, empty), 0);
	/* What was free is free, and what was taken is not given out again. */
	uint64_t more = alloc(w, 4 * MIB);
	YES(more >= full + 8 * MIB || more + 4 * MIB <= full);
	YES(more >= empty + 4 * MIB || more + 4 * MIB <= empty);
	session_end(w);
	remove_directory(directory);
}

UNIT_SUITE(load_memory, {"mapped", test_mapped}, {"zeros", test_zeros})
