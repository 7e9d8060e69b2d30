/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pausing: memory goes to the host and comes back the same at the same addresses, and a step that
 * fails leaves all as it was.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/mempolicy.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "checkpoint/format/store.h"
#include "checkpoint/freeze/pause.h"
#include "checkpoint/freeze/swap_store.h"
#include "server/worker/memory/window.h"
#include "server/worker/objects/context.h"
#include "tests/unit/worker/inside.h"

enum { SIZE = 6 << 20, PHYSICAL = 4 << 20, LARGE = 20 << 20 };

static uint64_t memory, mapped;

static uint64_t free_bytes(void)
{
	size_t bytes = 0, total;
	ckt_worker_use_context(&ckt_worker, ckt_handle_primary(0));
	IS(ckt_driver.cuMemGetInfo_v2(&bytes, &total), CUDA_SUCCESS);
	return bytes;
}

static void begin(void)
{
	MUST(ckt_vmm_physical_make(
		     &ckt_worker, ID(PHYSICAL, 1), 0, PHYSICAL, CU_MEM_ALLOCATION_COMP_NONE),
		CUDA_SUCCESS);
	MUST(ckt_vmm_reserve(&ckt_worker, 0, PHYSICAL, 0, 0, &mapped), CUDA_SUCCESS);
	MUST(ckt_vmm_map(&ckt_worker, mapped, PHYSICAL, 0, ID(PHYSICAL, 1)), CUDA_SUCCESS);
	MUST(ckt_vmm_set_access(&ckt_worker, mapped, PHYSICAL, CU_MEM_ACCESS_FLAGS_PROT_READWRITE),
		CUDA_SUCCESS);
	memory = inside_memory(SIZE, 7);
	inside_fill(memory + CKT_IMAGE_CHUNK, 0, CKT_IMAGE_CHUNK);
	inside_fill(memory + SIZE - 4, 8, 4);
	inside_fill(mapped, 9, PHYSICAL);
}

static void check(void)
{
	ckt_worker_use_context(&ckt_worker, ckt_handle_primary(0));
	IS(inside_word(memory), 7);
	IS(inside_word(memory + CKT_IMAGE_CHUNK), 0);
	IS(inside_word(memory + SIZE - 8), 7);
	IS(inside_word(memory + SIZE - 4), 8);
	IS(inside_word(mapped), 9);
	IS(inside_word(mapped + PHYSICAL - 4), 9);
	CU_ASSERT_PTR_NULL(ckt_pause_copy(memory, 0));
	CU_ASSERT_PTR_NULL(ckt_pause_copy(0, ID(PHYSICAL, 1)));
}

static bool readable(uint64_t address)
{
	uint32_t word;
	return ckt_driver.cuMemcpyDtoH_v2(&word, address, 4) == CUDA_SUCCESS;
}

static void test_pause(void)
{
	char message[CKT_MESSAGE_MAX] = "";
	uint64_t given = 0, taken = 0;
	begin();
	uint64_t before = free_bytes();
	for (int round = 0; round < 2; round++) {
		IS(ckt_pause(&ckt_worker, &given, message, sizeof message), 0);
		YES(given >= SIZE + PHYSICAL);
		IS(free_bytes(), before + given);
		NO(readable(memory));
		NO(readable(mapped));
		const uint8_t *copy = ckt_pause_copy(memory, 0);
		CU_ASSERT_PTR_NOT_NULL_FATAL(copy);
		IS(copy[0], 7);
		IS(copy[CKT_IMAGE_CHUNK], 0);
		IS(copy[SIZE - 4], 8);
		const uint8_t *physical = ckt_pause_copy(12345, ID(PHYSICAL, 1));
		CU_ASSERT_PTR_NOT_NULL_FATAL(physical);
		IS(physical[PHYSICAL - 4], 9);
		CU_ASSERT_PTR_NULL(ckt_pause_copy(memory + CKT_IMAGE_CHUNK, 0));
		CU_ASSERT_PTR_NULL(ckt_pause_copy(0, ID(PHYSICAL, 2)));
		IS(ckt_resume(&ckt_worker, &taken, message, sizeof message), 0);
		IS(taken, given);
		check();
		IS(free_bytes(), before);
	}
}

static int swap_file;

static int use_store(uint64_t limit)
{
	return ckt_swap_store_use(dup(swap_file), limit);
}

static void test_swap(void)
{
	char message[CKT_MESSAGE_MAX] = "";
	uint64_t given = 0, taken = 0, moved = 0, before = free_bytes();
	swap_file = memfd_create("swap", MFD_CLOEXEC);
	YES(swap_file >= 0);
	IS(use_store(CKT_IMAGE_CHUNK), 0);
	/* A full store: all is as it was. */
	IS(ckt_pause_swap(&ckt_worker, &given, &moved, message, sizeof message), -ENOSPC);
	HAS(message, "the swap memory is full");
	IS(free_bytes(), before);
	check();
	IS(use_store(UINT64_MAX / 2), 0);
	for (int round = 0; round < 3; round++) {
		IS(ckt_pause_swap(&ckt_worker, &given, &moved, message, sizeof message), 0);
		YES(given >= SIZE + PHYSICAL);
		/* The piece of zeros is nowhere, and what has not changed is not written again. */
		if (round == 1)
			IS(moved, 0);
		else
			YES(moved && moved <= given - CKT_IMAGE_CHUNK);
		IS(free_bytes(), before + given);
		const uint8_t *copy = ckt_pause_copy(memory, 0);
		CU_ASSERT_PTR_NOT_NULL_FATAL(copy);
		IS(copy[0], 7);
		IS(copy[CKT_IMAGE_CHUNK], 0);
		IS(copy[SIZE - 4], 8);
		/* What has no hole is pinned from here on; while somebody waits, only a few pieces. */
		struct ckt_region physical = {.physical = ID(PHYSICAL, 1), .size = PHYSICAL};
		struct ckt_region holes = {.address = memory, .size = SIZE};
		_Atomic unsigned waiting = 1;
		ckt_swap_pin_least = 0;
		ckt_pause_pin(&ckt_worker, &waiting);
		YES(!ckt_swap_store_place(ckt_swap_store_region(&physical), 0) == !round);
		ckt_swap_pin_least = 100;
		ckt_pause_pin(&ckt_worker, &waiting);
		YES(ckt_swap_store_place(ckt_swap_store_region(&physical), 0) != NULL);
		YES(ckt_swap_store_place(ckt_swap_store_region(&holes), 0) == NULL);
		IS(ckt_resume(&ckt_worker, &taken, message, sizeof message), 0);
		IS(taken, given);
		check();
		if (round == 1)
			inside_fill(mapped + 4096, 10, 4);
	}
	inside_fill(mapped + 4096, 9, 4);
	/* What is no file is refused; another file starts empty. */
	IS(ckt_swap_store_use(-1, 1), -EINVAL);
	YES(ckt_swap_store_bytes() > 0);
	close(swap_file);
	IS(ckt_swap_store_use(memfd_create("other", MFD_CLOEXEC), UINT64_MAX / 2), 0);
	IS(ckt_swap_store_bytes(), 0);
}

/* Pages of the file that the host's memory holds. */
static size_t cached_pages(int fd)
{
	struct stat st;
	size_t cached = 0;
	MUST(fstat(fd, &st), 0);
	size_t pages = (size_t)(st.st_size + 4095) / 4096;
	unsigned char *in_core = calloc(pages + 1, 1);
	void *map = mmap(NULL, pages * 4096, PROT_READ, MAP_SHARED, fd, 0);
	CU_ASSERT_FATAL(in_core && map != MAP_FAILED);
	MUST(mincore(map, pages * 4096, in_core), 0);
	for (size_t i = 0; i < pages; i++)
		cached += in_core[i] & 1;
	munmap(map, pages * 4096);
	free(in_core);
	return cached;
}

/* A file on disk: past the page cache where its file system can, and whatever is not aligned, too. */
static void test_disk(void)
{
	char message[CKT_MESSAGE_MAX] = "";
	uint64_t given = 0, taken = 0, moved = 0;
	int fd = open(".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	YES(fd >= 0);
	IS(ckt_swap_store_use(dup(fd), UINT64_MAX / 2), 0);
	bool direct = fcntl(fd, F_GETFL) & O_DIRECT;
	printf("(%s) ", direct ? "direct" : "this file system has no O_DIRECT");
	for (int round = 0; round < 2; round++) {
		IS(ckt_pause_swap(&ckt_worker, &given, &moved, message, sizeof message), 0);
		YES(moved >= CKT_IMAGE_CHUNK);
		/* Later, the mapping has read some. */
		if (direct && !round)
			IS(cached_pages(fd), 0);
		IS(ckt_resume(&ckt_worker, &taken, message, sizeof message), 0);
		if (direct && !round)
			IS(cached_pages(fd), 0);
		check();
		/* A checkpoint of the swapped session reads by the mapping, also what is written later. */
		IS(ckt_pause_swap(&ckt_worker, &given, &moved, message, sizeof message), 0);
		const uint8_t *copy = ckt_pause_copy(mapped, 0);
		copy = copy ? copy : ckt_pause_copy(0, ID(PHYSICAL, 1));
		CU_ASSERT_PTR_NOT_NULL_FATAL(copy);
		IS(copy[4096], round ? 11 : 9);
		IS(ckt_resume(&ckt_worker, &taken, message, sizeof message), 0);
		inside_fill(mapped + 4096, round ? 9 : 11, 4);
	}
	struct ckt_region physical = {.physical = ID(PHYSICAL, 1), .size = PHYSICAL};
	struct ckt_swap_region *region = ckt_swap_store_region(&physical);
	uint8_t *data = malloc(CKT_IMAGE_CHUNK + 1), *back = malloc(CKT_IMAGE_CHUNK + 1);
	for (size_t i = 0; i <= CKT_IMAGE_CHUNK; i++)
		data[i] = (uint8_t)(i * 7 + i / 4096);
	IS(ckt_swap_store_write(region, 1, data + 1, CKT_IMAGE_CHUNK, NULL), 0);
	IS(ckt_swap_store_read(region, 1, back, CKT_IMAGE_CHUNK), 0);
	IS(memcmp(data + 1, back, CKT_IMAGE_CHUNK), 0);
	free(data);
	free(back);
	close(fd);
}

static CUresult on_node_0(int *value, CUdevice_attribute attribute, CUdevice device)
{
	(void)attribute;
	(void)device;
	*value = 0;
	return CUDA_SUCCESS;
}

/* The swap memory is on the GPU's node of the host. */
static void test_near(void)
{
	char message[CKT_MESSAGE_MAX] = "";
	uint64_t given = 0, taken = 0, moved = 0;
	unsigned long nodes[16] = {0};
	int mode = -1;
	__typeof__(ckt_driver.cuDeviceGetAttribute) genuine = ckt_driver.cuDeviceGetAttribute;
	struct ckt_region physical = {.physical = ID(PHYSICAL, 1), .size = PHYSICAL};
	for (int near = 0; near < 2; near++) {
		IS(ckt_swap_store_use(memfd_create("near", MFD_CLOEXEC), UINT64_MAX / 2), 0);
		ckt_driver.cuDeviceGetAttribute = near ? on_node_0 : genuine;
		IS(ckt_pause_swap(&ckt_worker, &given, &moved, message, sizeof message), 0);
		ckt_driver.cuDeviceGetAttribute = genuine;
		uint8_t *map = ckt_swap_store_map(ckt_swap_store_region(&physical), -1);
		IS(syscall(SYS_get_mempolicy, &mode, nodes, 8 * sizeof nodes, map, MPOL_F_ADDR), 0);
		IS(mode, near ? MPOL_PREFERRED : MPOL_DEFAULT);
		IS(nodes[0], near);
		IS(ckt_resume(&ckt_worker, &taken, message, sizeof message), 0);
		check();
	}
}

static void test_faults(void)
{
	static const struct {
		const char *fault;
		bool pausing;
		int result;
		const char *words;
	} cases[] = {
		{"fail:20", true, -EIO, "cannot copy the GPU's memory to the host"},
		{"fail:21", true, -EIO, "CRICKET_FAULT made this step fail"},
		{"fail:22", false, -ENOMEM, "the session stays paused"},
		{"fail:23", false, -EIO, "cannot copy the memory back to the GPU"},
	};
	char message[CKT_MESSAGE_MAX] = "";
	uint64_t bytes, before = free_bytes();
	for (size_t i = 0; i < COUNT(cases); i++) {
		if (!cases[i].pausing)
			IS(ckt_pause(&ckt_worker, &bytes, message, sizeof message), 0);
		uint64_t now = free_bytes();
		setenv("CRICKET_FAULT", cases[i].fault, 1);
		IS(cases[i].pausing ? ckt_pause(&ckt_worker, &bytes, message, sizeof message)
				    : ckt_resume(&ckt_worker, &bytes, message, sizeof message),
			cases[i].result);
		unsetenv("CRICKET_FAULT");
		HAS(message, cases[i].words);
		IS(free_bytes(), now);
		if (!cases[i].pausing)
			IS(ckt_resume(&ckt_worker, &bytes, message, sizeof message), 0);
		check();
		IS(free_bytes(), before);
	}
}

/* Larger than a step: whatever fails between two, all comes back, or what has left stays out. */
static void test_steps(void)
{
	static const struct {
		const char *fault;
		bool out, half;
		int result;
		const char *words;
	} cases[] = {
		{"fail:236", true, false, -EIO, "cannot copy the GPU's memory to the host"},
		{"fail:237", true, true, -EIO, "come back when there is room"},
		{"fail:238", false, false, -EIO, "cannot copy the memory back to the GPU"},
		{"fail:239", false, false, -ENOMEM, "too little free memory"},
	};
	char message[CKT_MESSAGE_MAX] = "";
	uint64_t bytes, moved, large = inside_memory(LARGE, 5), before = free_bytes();
	IS(ckt_swap_store_use(memfd_create("steps", MFD_CLOEXEC), UINT64_MAX / 2), 0);
	for (size_t i = 0; i < COUNT(cases); i++) {
		if (!cases[i].out)
			IS(ckt_pause_swap(&ckt_worker, &bytes, &moved, message, sizeof message), 0);
		uint64_t now = free_bytes();
		setenv("CRICKET_FAULT", cases[i].fault, 1);
		IS(cases[i].out ? ckt_pause_swap(
					  &ckt_worker, &bytes, &moved, message, sizeof message)
				: ckt_resume_follow(&ckt_worker, &bytes, message, sizeof message),
			cases[i].result);
		unsetenv("CRICKET_FAULT");
		HAS(message, cases[i].words);
		if (cases[i].half) {
			/* A part: it comes in like a whole one. */
			YES(bytes && bytes < SIZE + PHYSICAL + LARGE);
			IS(free_bytes(), now + bytes);
			IS((ckt_pause_copy(memory, 0) != NULL) +
						(ckt_pause_copy(large, 0) != NULL) +
						(ckt_pause_copy(0, ID(PHYSICAL, 1)) != NULL) <
					3,
				true);
		} else {
			IS(free_bytes(), now);
		}
		if (cases[i].half || !cases[i].out)
			IS(ckt_resume_follow(&ckt_worker, &bytes, message, sizeof message), 0);
		check();
		IS(inside_word(large), 5);
		IS(inside_word(large + LARGE - 4), 5);
		IS(free_bytes(), before);
	}
	inside_free(large);
	ckt_memory_trim(&ckt_worker.devices[0].memory);
}

enum { PARTS = 2, END = 6 << 20 };

static void check_large(uint64_t large)
{
	for (int i = 0; i < PARTS; i++) {
		IS(inside_word(large + (uint64_t)i * CKT_MEMORY_PART), 6);
		IS(inside_word(large + (uint64_t)(i + 1) * CKT_MEMORY_PART - 4), (uint32_t)i);
	}
	IS(inside_word(large + PARTS * CKT_MEMORY_PART + END - 4), 6);
}

/* A large allocation comes back in parts, which leave one by one; shared, it is one piece again. */
static void test_parts(void)
{
	struct ckt_memory *allocator = &ckt_worker.devices[0].memory;
	char message[CKT_MESSAGE_MAX] = "";
	uint64_t size = PARTS * CKT_MEMORY_PART + END, before = free_bytes(), bytes, moved;
	uint64_t large = inside_memory(size, 6), now = free_bytes(), owner, base, whole, piece;
	for (int i = 0; i < PARTS; i++)
		inside_fill(large + (uint64_t)(i + 1) * CKT_MEMORY_PART - 4, (uint32_t)i, 4);
	IS(ckt_swap_store_use(memfd_create("parts", MFD_CLOEXEC), UINT64_MAX / 2), 0);
	YES(ckt_memory_extent_of(allocator, large + CKT_MEMORY_PART, &base, &whole, &piece));
	IS(base, large);
	for (int round = 0; round < 3; round++) {
		/* With one piece it leaves as a whole or not at all. */
		if (round == 1)
			setenv("CRICKET_FAULT", "fail:237", 1);
		int error = ckt_pause_swap(&ckt_worker, &bytes, &moved, message, sizeof message);
		unsetenv("CRICKET_FAULT");
		IS(error, round == 1 ? -EIO : 0);
		YES(round != 1 || bytes < size);
		IS(free_bytes(), now + bytes);
		IS(ckt_resume(&ckt_worker, &bytes, message, sizeof message), 0);
		check();
		check_large(large);
		IS(free_bytes(), now);
		YES(ckt_memory_extent_of(
			allocator, large + CKT_MEMORY_PART, &base, &whole, &piece));
		IS(base, large + CKT_MEMORY_PART);
		IS(whole, CKT_MEMORY_PART);
	}
	YES(ckt_memory_locate(allocator, large, &bytes, &owner, &base, &whole, &piece));
	IS(base, large);
	IS(whole, size);
	IS(piece, 0);
	IS(ckt_window_join(&ckt_worker, 0, large, size, &piece), CUDA_SUCCESS);
	check_large(large);
	IS(free_bytes(), now);
	uint64_t joined = piece;
	YES(ckt_memory_locate(allocator, large, &bytes, &owner, &base, &whole, &piece));
	IS(piece, joined);
	/* Freed while it has parts. */
	IS(ckt_pause_swap(&ckt_worker, &bytes, &moved, message, sizeof message), 0);
	IS(ckt_resume(&ckt_worker, &bytes, message, sizeof message), 0);
	inside_free(large);
	ckt_memory_trim(allocator);
	IS(free_bytes(), before);
}

/*
 * Somebody else has the memory meanwhile: it is said how much is missing, and later it comes back.
 */
static void test_short(void)
{
	char message[CKT_MESSAGE_MAX] = "";
	uint64_t given, missing = 0, other, before = free_bytes();
	IS(ckt_pause(&ckt_worker, &given, message, sizeof message), 0);
	uint64_t taken = (free_bytes() - given / 2) / CKT_MEMORY_EXTENT * CKT_MEMORY_EXTENT;
	MUST(ckt_window_create(&ckt_worker, 0, taken, CU_MEM_ALLOCATION_COMP_NONE, &other),
		CUDA_SUCCESS);
	IS(ckt_resume(&ckt_worker, &missing, message, sizeof message), -ENOMEM);
	IS(missing, given - free_bytes());
	HAS(message, "too little free memory");
	CU_ASSERT_PTR_NOT_NULL(ckt_pause_copy(memory, 0));
	ckt_driver.cuMemRelease(other);
	IS(ckt_resume(&ckt_worker, &missing, message, sizeof message), 0);
	check();
	IS(free_bytes(), before);
	IS(ckt_vmm_unmap(&ckt_worker, mapped, PHYSICAL), CUDA_SUCCESS);
	IS(ckt_vmm_free(&ckt_worker, mapped, PHYSICAL), CUDA_SUCCESS);
	ckt_object_destroy(&ckt_worker, ckt_objects_find(&ckt_worker.objects, ID(PHYSICAL, 1)));
	inside_free(memory);
}

UNIT_SUITE(pause, {"pause", test_pause}, {"swap", test_swap}, {"disk", test_disk},
	{"near", test_near}, {"faults", test_faults}, {"steps", test_steps}, {"parts", test_parts},
	{"short of memory", test_short})
