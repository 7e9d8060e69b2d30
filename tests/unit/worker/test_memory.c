/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The allocator of device memory against a model: no overlap, alignment, limits, determinism,
 * restore.
 */
#include <CUnit/Basic.h>
#include <stdlib.h>
#include <string.h>

#include "server/worker/memory/memory.h"

enum { BLOCKS = 300, STEPS = 20000 };
#define BASE 0x200000000000ull
#define SIZE ((uint64_t)4 << 30)

/* A driver that knows which extents are mapped and how much it has. */
static struct {
	uint64_t start[20000], size[20000];
	unsigned count, bad;
	uint64_t mapped, physical;
} driver;

static CUresult fake_map(
	void *opaque, unsigned device, uint64_t address, uint64_t size, uint64_t *ret_piece)
{
	if (driver.mapped + size > driver.physical)
		return CUDA_ERROR_OUT_OF_MEMORY;
	for (unsigned i = 0; i < driver.count; i++)
		if (address < driver.start[i] + driver.size[i] && driver.start[i] < address + size)
			driver.bad++;
	if (address % CKT_MEMORY_EXTENT || size % CKT_MEMORY_EXTENT || !size)
		driver.bad++;
	driver.start[driver.count] = address;
	driver.size[driver.count++] = size;
	driver.mapped += size;
	*ret_piece = address ^ 0x77;
	return CUDA_SUCCESS;
}

static void fake_unmap(
	void *opaque, unsigned device, uint64_t address, uint64_t size, uint64_t piece)
{
	for (unsigned i = 0; i < driver.count; i++)
		if (driver.start[i] == address && driver.size[i] == size &&
			piece == (address ^ 0x77)) {
			driver.start[i] = driver.start[--driver.count];
			driver.size[i] = driver.size[driver.count];
			driver.mapped -= size;
			return;
		}
	driver.bad++;
}

static bool mapped(uint64_t address, uint64_t size)
{
	while (size) {
		uint64_t step = 0;
		for (unsigned i = 0; i < driver.count; i++)
			if (address >= driver.start[i] &&
				address < driver.start[i] + driver.size[i])
				step = driver.start[i] + driver.size[i] - address;
		if (!step)
			return false;
		if (step >= size)
			return true;
		address += step;
		size -= step;
	}
	return true;
}

/* A lease that grows by what is asked for, up to its limit. */
static struct {
	uint64_t taken, leased, limit;
	unsigned asked;
} lease = {.limit = UINT64_MAX};

static bool fake_take(void *opaque, unsigned device, uint64_t size, enum ckt_lease_how how)
{
	lease.asked += how == CKT_LEASE_ASKED;
	if (how != CKT_LEASE_HAD && lease.taken + size > lease.leased &&
		lease.taken + size <= lease.limit)
		lease.leased = lease.taken + size;
	if (lease.taken + size > lease.leased && how != CKT_LEASE_FORCED)
		return false;
	lease.taken += size;
	return true;
}

static void fake_give(void *opaque, unsigned device, uint64_t size)
{
	lease.taken -= size;
}

static const struct ckt_memory_ops ops = {
	.map = fake_map, .unmap = fake_unmap, .take = fake_take, .give = fake_give};

static void make(struct ckt_memory *memory, uint64_t limit, uint64_t physical)
{
	memset(&driver, 0, sizeof driver);
	driver.physical = physical;
	ckt_memory_init(memory, 0, BASE, SIZE, limit, &ops, NULL);
}

static uint64_t random_size(void)
{
	switch (rand() % 4) {
	case 0:
		return 1 + (uint64_t)rand() % 4096;
	case 1:
		return 1 + (uint64_t)rand() % (1 << 20);
	case 2:
		return ((uint64_t)1 << 20) + (uint64_t)rand() % 3;
	default:
		return 1 + (uint64_t)rand() % (12 << 20);
	}
}

/* Frees at once. */
static CUresult release(struct ckt_memory *memory, uint64_t address)
{
	uint64_t owner;
	CUresult result = ckt_memory_free_begin(memory, address, &owner);
	if (!result)
		ckt_memory_free_end(memory, address);
	return result;
}

static uint64_t run_random(struct ckt_memory *memory, unsigned seed, bool check)
{
	struct {
		uint64_t address, size;
	} live[BLOCKS] = {0};
	uint64_t digest = 0, asked = 0;
	srand(seed);
	for (unsigned step = 0; step < STEPS; step++) {
		unsigned i = (unsigned)rand() % BLOCKS;
		if (live[i].address) {
			CUresult result = release(memory, live[i].address);
			CU_ASSERT_EQUAL_FATAL(result, CUDA_SUCCESS);
			asked -= live[i].size;
			live[i].address = 0;
			continue;
		}
		uint64_t size = random_size(), address;
		CUresult result = ckt_memory_alloc(memory, size, 7, &address);
		if (result) {
			CU_ASSERT_EQUAL(result, CUDA_ERROR_OUT_OF_MEMORY);
			continue;
		}
		digest = digest * 31 + address;
		if (check && step % 16 == 0) {
			unsigned overlaps = 0;
			for (unsigned k = 0; k < BLOCKS; k++)
				overlaps += live[k].address &&
					address < live[k].address + live[k].size &&
					live[k].address < address + size;
			CU_ASSERT_EQUAL(overlaps, 0);
			CU_ASSERT_EQUAL(address % CKT_MEMORY_ALIGNMENT, 0);
			CU_ASSERT_TRUE(address >= BASE && address + size <= BASE + SIZE);
			CU_ASSERT_TRUE(mapped(address, size));
			CU_ASSERT_TRUE(
				ckt_memory_holds(memory, address + size / 2, size - size / 2));
			CU_ASSERT_FALSE(ckt_memory_holds(memory, address, size + 1));
			CU_ASSERT_TRUE(ckt_memory_used(memory) >= asked);
			CU_ASSERT_TRUE(memory->cached <= CKT_MEMORY_CACHE_MAX);
		}
		live[i].address = address;
		live[i].size = size;
		asked += size;
	}
	for (unsigned i = 0; i < BLOCKS; i++)
		if (live[i].address)
			release(memory, live[i].address);
	return digest;
}

static void test_random(void)
{
	struct ckt_memory memory;
	make(&memory, 0, (uint64_t)1 << 40);
	uint64_t first = run_random(&memory, 1, true);
	CU_ASSERT_EQUAL(ckt_memory_used(&memory), 0);
	CU_ASSERT_EQUAL(driver.mapped, memory.cached);
	CU_ASSERT_EQUAL(ckt_ranges_total(&memory.addresses), SIZE);
	CU_ASSERT_EQUAL(memory.addresses.count, 1);
	CU_ASSERT_EQUAL(memory.small.count, 0);
	/* The cache does not show in the addresses. */
	uint64_t second = run_random(&memory, 1, false);
	CU_ASSERT_EQUAL(first, second);
	ckt_memory_fini(&memory);
	CU_ASSERT_EQUAL(driver.mapped, 0);
	CU_ASSERT_EQUAL(driver.bad, 0);
}

static void test_short_of_memory(void)
{
	struct ckt_memory memory;
	make(&memory, 0, (uint64_t)300 << 20);
	run_random(&memory, 2, true);
	/* The cache gives way before a program is refused. */
	uint64_t address;
	CU_ASSERT_EQUAL(ckt_memory_alloc(&memory, 300 << 20, 1, &address), CUDA_SUCCESS);
	CU_ASSERT_EQUAL(ckt_memory_alloc(&memory, 1, 1, &address), CUDA_ERROR_OUT_OF_MEMORY);
	CU_ASSERT_EQUAL(memory.block_count, 1);
	ckt_memory_fini(&memory);
	CU_ASSERT_EQUAL(driver.bad, 0);
}

static void test_limit(void)
{
	struct ckt_memory memory;
	uint64_t address, total = 0;
	make(&memory, (uint64_t)1 << 30, (uint64_t)1 << 40);
	CU_ASSERT_EQUAL(ckt_memory_free_bytes(&memory, (uint64_t)1 << 40),
		((uint64_t)1 << 30) - CKT_MEMORY_RESERVED);
	while (ckt_memory_alloc(&memory, 128 << 20, 1, &address) == CUDA_SUCCESS)
		total += 128 << 20;
	CU_ASSERT_EQUAL(total, (uint64_t)896 << 20);
	while (ckt_memory_alloc(&memory, 1, 1, &address) == CUDA_SUCCESS)
		total += CKT_MEMORY_ALIGNMENT;
	CU_ASSERT_EQUAL(total, ((uint64_t)1 << 30) - CKT_MEMORY_RESERVED);
	CU_ASSERT_EQUAL(ckt_memory_free_bytes(&memory, (uint64_t)1 << 40), 0);
	CU_ASSERT_EQUAL(
		ckt_memory_alloc(&memory, UINT64_MAX, 1, &address), CUDA_ERROR_OUT_OF_MEMORY);
	CU_ASSERT_EQUAL(
		ckt_memory_alloc(&memory, UINT64_MAX - 100, 1, &address), CUDA_ERROR_OUT_OF_MEMORY);
	CU_ASSERT_EQUAL(ckt_memory_alloc(&memory, 0, 1, &address), CUDA_ERROR_INVALID_VALUE);
	ckt_memory_fini(&memory);
}

static void test_free(void)
{
	struct ckt_memory memory;
	uint64_t a, b, c, owner = 0;
	make(&memory, 0, (uint64_t)1 << 40);
	ckt_memory_alloc(&memory, 1000, 11, &a);
	ckt_memory_alloc(&memory, 1000, 12, &b);
	CU_ASSERT_EQUAL(ckt_memory_free_begin(&memory, a + 512, &owner), CUDA_ERROR_INVALID_VALUE);
	CU_ASSERT_EQUAL(ckt_memory_free_begin(&memory, a, &owner), CUDA_SUCCESS);
	CU_ASSERT_EQUAL(owner, 11);
	CU_ASSERT_EQUAL(ckt_memory_free_begin(&memory, a, &owner), CUDA_ERROR_INVALID_VALUE);
	/* Marked, not yet free. */
	ckt_memory_alloc(&memory, 1000, 11, &c);
	CU_ASSERT_NOT_EQUAL(c, a);
	ckt_memory_free_end(&memory, a);
	ckt_memory_alloc(&memory, 1000, 11, &c);
	CU_ASSERT_EQUAL(c, a);
	ckt_memory_free_owned(&memory, 11);
	CU_ASSERT_EQUAL(memory.block_count, 1);
	CU_ASSERT_EQUAL(memory.blocks[0].address, b);
	ckt_memory_free_owned(&memory, 0);
	CU_ASSERT_EQUAL(ckt_memory_used(&memory), 0);
	ckt_memory_fini(&memory);
	CU_ASSERT_EQUAL(driver.bad, 0);
}

/* An allocator made again from its tables goes on exactly as the first. */
static void test_adopt(void)
{
	static struct ckt_memory first, second;
	uint64_t address, owner, from_first[200], from_second[200];
	make(&first, 0, (uint64_t)1 << 40);
	srand(5);
	for (unsigned i = 0; i < 200; i++)
		ckt_memory_alloc(&first, random_size(), i, &address);
	for (unsigned i = 0; i < 80; i++) {
		address = first.blocks[(unsigned)rand() % first.block_count].address;
		ckt_memory_free_begin(&first, address, &owner);
		ckt_memory_free_end(&first, address);
	}
	struct ckt_memory copy = first;
	ckt_memory_init(&second, 0, BASE, SIZE, 0, &ops, NULL);
	memset(&driver, 0, sizeof driver);
	driver.physical = (uint64_t)1 << 40;
	for (size_t i = 0; i < copy.extent_count; i++)
		if (copy.extents[i].use != CKT_EXTENT_CACHED)
			CU_ASSERT_EQUAL(ckt_memory_adopt_extent(&second, copy.extents[i].address,
						copy.extents[i].size, copy.extents[i].use),
				CUDA_SUCCESS);
	for (size_t i = 0; i < copy.block_count; i++)
		CU_ASSERT_EQUAL(ckt_memory_adopt_block(&second, copy.blocks[i].address,
					copy.blocks[i].size, copy.blocks[i].owner),
			CUDA_SUCCESS);
	CU_ASSERT_EQUAL(second.used, first.used);
	/* Nonsense is refused. */
	CU_ASSERT_NOT_EQUAL(
		ckt_memory_adopt_block(&second, copy.blocks[0].address, copy.blocks[0].size, 1),
		CUDA_SUCCESS);
	CU_ASSERT_NOT_EQUAL(ckt_memory_adopt_extent(&second, copy.extents[0].address,
				    CKT_MEMORY_EXTENT, CKT_EXTENT_SMALL),
		CUDA_SUCCESS);
	CU_ASSERT_NOT_EQUAL(
		ckt_memory_adopt_extent(&second, BASE + SIZE, CKT_MEMORY_EXTENT, CKT_EXTENT_BIG),
		CUDA_SUCCESS);
	CU_ASSERT_NOT_EQUAL(
		ckt_memory_adopt_block(&second, BASE + SIZE - 512, 512, 1), CUDA_SUCCESS);
	srand(6);
	for (unsigned i = 0; i < 200; i++)
		CU_ASSERT_EQUAL(
			ckt_memory_alloc(&second, random_size(), i, &from_second[i]), CUDA_SUCCESS);
	ckt_memory_fini(&second);
	CU_ASSERT_EQUAL(driver.bad, 0);
	driver.bad = 0;
	srand(6);
	for (unsigned i = 0; i < 200; i++)
		ckt_memory_alloc(&first, random_size(), i, &from_first[i]);
	CU_ASSERT_EQUAL(memcmp(from_first, from_second, sizeof from_first), 0);
}

/* What a pool has follows its blocks from allocation to the end, whichever way they end. */
/* What is made ahead of a session's memory does not lie where that will come to lie. */
static void test_hide(void)
{
	struct ckt_memory memory;
	uint64_t ahead, small, address;
	make(&memory, 0, (uint64_t)1 << 40);
	ckt_memory_hide(&memory);
	ckt_memory_hide(&memory);
	CU_ASSERT_EQUAL(ckt_memory_alloc(&memory, 4 << 20, 1, &ahead), CUDA_SUCCESS);
	CU_ASSERT_EQUAL(ckt_memory_alloc(&memory, 512, 1, &small), CUDA_SUCCESS);
	CU_ASSERT_TRUE(ahead >= BASE + SIZE / 4 * 3);
	CU_ASSERT_TRUE(small >= BASE + SIZE / 4 * 3);
	ckt_memory_show(&memory);
	ckt_memory_show(&memory);
	CU_ASSERT_EQUAL(
		ckt_memory_adopt_extent(&memory, BASE, 2 << 20, CKT_EXTENT_SMALL), CUDA_SUCCESS);
	CU_ASSERT_EQUAL(ckt_memory_adopt_extent(&memory, BASE + (2 << 20), 4 << 20, CKT_EXTENT_BIG),
		CUDA_SUCCESS);
	/* With something there nothing is hidden, and nothing breaks. */
	ckt_memory_hide(&memory);
	CU_ASSERT_EQUAL(ckt_memory_alloc(&memory, 4 << 20, 1, &address), CUDA_SUCCESS);
	CU_ASSERT_EQUAL(address, BASE + (6 << 20));
	ckt_memory_show(&memory);
	ckt_memory_fini(&memory);
	CU_ASSERT_EQUAL(driver.bad, 0);
}

static void test_accounts(void)
{
	static struct ckt_memory memory;
	uint64_t a, b, c, owner, granted;
	make(&memory, 0, (uint64_t)1 << 40);
	CU_ASSERT_EQUAL(ckt_memory_alloc(&memory, 1000, 7, &a), CUDA_SUCCESS);
	CU_ASSERT_EQUAL(ckt_memory_alloc(&memory, 3 << 20, 7, &b), CUDA_SUCCESS);
	CU_ASSERT_EQUAL(ckt_memory_alloc(&memory, 4096, 7, &c), CUDA_SUCCESS);
	ckt_memory_assign(&memory, a, 11, CKT_POOL_ARENA_NOBODY);
	ckt_memory_assign(&memory, b, 11, CKT_POOL_ARENA_NOBODY);
	CU_ASSERT_EQUAL(ckt_memory_pool_of(&memory, b, &granted), 11);
	CU_ASSERT_EQUAL(granted, 4 << 20);
	CU_ASSERT_EQUAL(ckt_memory_pool_of(&memory, c, &granted), 0);
	struct ckt_account account = ckt_memory_account(&memory, 11);
	CU_ASSERT_EQUAL(account.used, 1024 + (4 << 20));
	CU_ASSERT_EQUAL(account.reserved, account.used);
	/* Given back, but kept: reserved, not used; and not freed twice. */
	CU_ASSERT_EQUAL(ckt_memory_free_begin(&memory, b, &owner), CUDA_SUCCESS);
	CU_ASSERT_EQUAL(ckt_memory_free_begin(&memory, b, &owner), CUDA_ERROR_INVALID_VALUE);
	account = ckt_memory_account(&memory, 11);
	CU_ASSERT_EQUAL(account.used, 1024);
	CU_ASSERT_EQUAL(account.reserved, 1024 + (4 << 20));
	ckt_memory_reuse(&memory, b, (4 << 20) - 5, 8, CKT_POOL_ARENA_NOBODY);
	CU_ASSERT_TRUE(ckt_memory_holds(&memory, b, (4 << 20) - 5));
	CU_ASSERT_EQUAL(ckt_memory_account(&memory, 11).used, 1024 + (4 << 20));
	CU_ASSERT_EQUAL(ckt_memory_free_begin(&memory, b, &owner), CUDA_SUCCESS);
	CU_ASSERT_EQUAL(owner, 8);
	ckt_memory_free_end(&memory, b);
	account = ckt_memory_account(&memory, 11);
	CU_ASSERT_EQUAL(account.used, 1024);
	CU_ASSERT_EQUAL(account.reserved, 1024);
	CU_ASSERT_EQUAL(account.reserved_high, 1024 + (4 << 20));
	ckt_memory_account_marks(&memory, 11, 0, 0);
	CU_ASSERT_EQUAL(ckt_memory_account(&memory, 11).reserved_high, 1024);
	ckt_memory_account_drop(&memory, 11);
	CU_ASSERT_EQUAL(ckt_memory_account(&memory, 11).reserved, 1024);
	ckt_memory_free_owned(&memory, 7);
	CU_ASSERT_EQUAL(ckt_memory_account(&memory, 11).reserved, 0);
	ckt_memory_account_drop(&memory, 11);
	CU_ASSERT_EQUAL(memory.account_count, 0);
	CU_ASSERT_EQUAL(ckt_memory_used(&memory), 0);
	ckt_memory_fini(&memory);
	CU_ASSERT_EQUAL(driver.bad, 0);
}

/*
 * Small blocks lie across the border of two extents.  What an image leaves out is no part of a
 * program's block, although only a library's begins there.
 */
static void test_library(void)
{
	static const uint64_t library = CKT_MEMORY_LIBRARY | 3;
	enum { MIB = 1 << 20 };
	struct ckt_memory memory;
	uint64_t first, second, across, alone, owner;
	make(&memory, 0, (uint64_t)1 << 40);
	CU_ASSERT_EQUAL(ckt_memory_alloc(&memory, MIB, 1, &first), CUDA_SUCCESS);
	CU_ASSERT_EQUAL(ckt_memory_alloc(&memory, MIB - 512, 1, &second), CUDA_SUCCESS);
	CU_ASSERT_EQUAL(ckt_memory_alloc(&memory, 4096, 1, &across), CUDA_SUCCESS);
	CU_ASSERT_EQUAL(ckt_memory_alloc(&memory, 4096, library, &alone), CUDA_SUCCESS);
	CU_ASSERT_EQUAL(across, BASE + 2 * MIB - 512);
	CU_ASSERT_EQUAL(memory.extent_count, 2);
	CU_ASSERT_FALSE(ckt_memory_extent_is_library(&memory, 0));
	CU_ASSERT_FALSE(ckt_memory_extent_is_library(&memory, 1));
	ckt_memory_free_begin(&memory, across, &owner);
	ckt_memory_free_end(&memory, across);
	CU_ASSERT_TRUE(ckt_memory_extent_is_library(&memory, 1));
	/* The other way round the library's needs no place in the image. */
	CU_ASSERT_EQUAL(ckt_memory_alloc(&memory, 1024, library, &across), CUDA_SUCCESS);
	CU_ASSERT_EQUAL(across, BASE + 2 * MIB - 512);
	CU_ASSERT_FALSE(ckt_memory_extent_is_library(&memory, 0));
	CU_ASSERT_TRUE(ckt_memory_extent_is_library(&memory, 1));
	ckt_memory_free_library(&memory, alone);
	ckt_memory_free_end(&memory, alone);
	CU_ASSERT_TRUE(ckt_memory_extent_is_library(&memory, 1));
	ckt_memory_fini(&memory);
	CU_ASSERT_EQUAL(driver.bad, 0);
}

/* What is mapped or charged is taken from the lease, and given back, whichever way it ends. */
static void test_lease(void)
{
	enum { MIB = 1 << 20 };
	struct ckt_memory memory;
	uint64_t a, b;
	make(&memory, 0, SIZE);
	lease.taken = lease.leased = 0;
	lease.limit = 20 * MIB;
	lease.asked = 0;
	CU_ASSERT_EQUAL(ckt_memory_alloc(&memory, 8 * MIB, 1, &a), CUDA_SUCCESS);
	CU_ASSERT_EQUAL(ckt_memory_alloc(&memory, 8 * MIB, 1, &b), CUDA_SUCCESS);
	CU_ASSERT_EQUAL(lease.taken, 16 * MIB);
	CU_ASSERT_EQUAL(ckt_memory_charge(&memory, 6 * MIB), CUDA_ERROR_OUT_OF_MEMORY);
	CU_ASSERT_EQUAL(ckt_memory_charge(&memory, 4 * MIB), CUDA_SUCCESS);
	CU_ASSERT_EQUAL(ckt_memory_alloc(&memory, 512, 1, &b), CUDA_ERROR_OUT_OF_MEMORY);
	/* What is mapped and free stays taken, until it is in the way: nobody is asked for that. */
	release(&memory, a);
	CU_ASSERT_EQUAL(lease.taken, 20 * MIB);
	CU_ASSERT_EQUAL(ckt_memory_cached(&memory), 8 * MIB);
	lease.asked = 0;
	CU_ASSERT_EQUAL(ckt_memory_charge(&memory, 2 * MIB), CUDA_SUCCESS);
	CU_ASSERT_EQUAL(ckt_memory_cached(&memory), 0);
	CU_ASSERT_EQUAL(lease.taken, 14 * MIB);
	ckt_memory_uncharge(&memory, 2 * MIB);
	CU_ASSERT_EQUAL(lease.taken, 12 * MIB);
	ckt_memory_add(&memory, 100 * MIB);
	CU_ASSERT_EQUAL(lease.taken, 112 * MIB);
	ckt_memory_uncharge(&memory, 100 * MIB);
	/* A driver without memory takes nothing of the lease. */
	driver.physical = driver.mapped;
	CU_ASSERT_EQUAL(ckt_memory_alloc(&memory, 4 * MIB, 1, &a), CUDA_ERROR_OUT_OF_MEMORY);
	CU_ASSERT_EQUAL(
		ckt_memory_preload(&memory, BASE + 64 * MIB, 2 * MIB), CUDA_ERROR_OUT_OF_MEMORY);
	CU_ASSERT_EQUAL(lease.taken, 12 * MIB);
	driver.physical = SIZE;
	CU_ASSERT_EQUAL(ckt_memory_preload(&memory, BASE + 64 * MIB, 2 * MIB), CUDA_SUCCESS);
	CU_ASSERT_EQUAL(lease.taken, 14 * MIB);
	/* Its lock is taken: not now. */
	pthread_mutex_lock(&memory.lock);
	CU_ASSERT_FALSE(ckt_memory_try_trim(&memory));
	pthread_mutex_unlock(&memory.lock);
	CU_ASSERT_TRUE(ckt_memory_try_trim(&memory));
	CU_ASSERT_EQUAL(lease.taken, 12 * MIB);
	ckt_memory_fini(&memory);
	CU_ASSERT_EQUAL(lease.taken, 0);
	lease.limit = UINT64_MAX;
	CU_ASSERT_EQUAL(driver.bad, 0);
}

int main(void)
{
	CU_initialize_registry();
	CU_pSuite suite = CU_add_suite("memory", NULL, NULL);
	CU_add_test(suite, "random", test_random);
	CU_add_test(suite, "short of memory", test_short_of_memory);
	CU_add_test(suite, "limit", test_limit);
	CU_add_test(suite, "free", test_free);
	CU_add_test(suite, "adopt", test_adopt);
	CU_add_test(suite, "hide", test_hide);
	CU_add_test(suite, "accounts", test_accounts);
	CU_add_test(suite, "library", test_library);
	CU_add_test(suite, "lease", test_lease);
	CU_basic_set_mode(CU_BRM_VERBOSE);
	CU_basic_run_tests();
	unsigned failures = CU_get_number_of_failures();
	CU_cleanup_registry();
	return failures != 0;
}
