/* SPDX-License-Identifier: Apache-2.0 */
/*
 * softgpu/module/archive.c: fat binaries found wherever they lie in an object or archive, and what
 * only looks like one.
 */
#include "files.h"
#include "softgpu/module/archive.h"
#include "softgpu/module/fatbin.h"

/* One PTX entry for a capability in a container, as fatbin.c's head draws it; the bytes it took. */
static size_t container(
	unsigned char *at, unsigned capability, const char *text, uint32_t compressed)
{
	uint64_t padded = (strlen(text) + 8) & ~7ull, entries = 64 + padded;
	memset(at, 0, 16 + entries);
	memcpy(at, (const unsigned char[]){0x50, 0xed, 0x55, 0xba, 1, 0, 16, 0}, 8);
	memcpy(at + 8, &entries, 8);
	memcpy(at + 16, (const unsigned char[]){1, 0, 1, 1, 64, 0, 0, 0}, 8);
	memcpy(at + 24, &padded, 8);
	memcpy(at + 32, &compressed, 4);
	memcpy(at + 44, &capability, 4);
	memcpy(at + 80, text, strlen(text));
	return 16 + entries;
}

static struct ckt_soft_texts texts;
static char text_log[256];

static CUresult look(const void *bytes, size_t size)
{
	/* Of its exact size, so that the sanitizer sees every byte read too many. */
	void *copy = malloc(size ? size : 1);
	memcpy(copy, bytes, size);
	ckt_soft_texts_fini(&texts);
	CUresult result = ckt_soft_archive_texts(
		copy, size, 80, &texts, "an archive", text_log, sizeof(text_log));
	free(copy);
	return result;
}

static const char one[] = ".version 8.0\n.target sm_75\n// one",
		  two[] = ".version 8.0\n.target sm_80\n// two, longer",
		  later[] = ".version 8.0\n.target sm_90\n// later";

static void test_places(void)
{
	unsigned char bytes[1024];
	for (unsigned shift = 0; shift < 9; shift++) {
		memset(bytes, 0x5a, sizeof(bytes));
		size_t n = shift;
		n += container(bytes + n, 75, one, 0);
		n += 3;
		n += container(bytes + n, 80, two, 0);
		n += 5;
		IS(look(bytes, n), CUDA_SUCCESS);
		IS(texts.n, 2);
		if (texts.n == 2) {
			TEXT(texts.buffers[0], one);
			TEXT(texts.buffers[1], two);
		}
	}
	ckt_soft_texts_fini(&texts);
}

/* What has nothing for the device is passed over, and the rest is taken. */
static void test_passed_over(void)
{
	unsigned char bytes[1024];
	size_t n = container(bytes, 90, later, 0), first = n;
	IS(look(bytes, n), CUDA_SUCCESS);
	IS(texts.n, 0);
	TEXT(text_log, "");
	n += container(bytes + n, 75, one, 0);
	IS(look(bytes, n), CUDA_SUCCESS);
	IS(texts.n, 1);
	/*
	 * A length that reaches behind the end is no header, and what lies inside is still found.
	 */
	uint64_t huge = UINT64_MAX - 8;
	memcpy(bytes + 8, &huge, 8);
	IS(look(bytes, n), CUDA_SUCCESS);
	IS(texts.n, 1);
	/* Cut off inside the second: nothing of it. */
	for (size_t cut = 0; cut < n - first; cut++) {
		IS(look(bytes + first, cut), CUDA_SUCCESS);
		IS(texts.n, 0);
	}
	IS(look("", 0), CUDA_SUCCESS);
	ckt_soft_texts_fini(&texts);
}

/* A text that says it is compressed and is not is damage, which a linker must not ignore. */
static void test_damaged(void)
{
	unsigned char bytes[512];
	size_t n = container(bytes, 75, one, 8);
	uint64_t flags = 0x2000, uncompressed = 1000;
	memcpy(bytes + 16 + 40, &flags, 8);
	memcpy(bytes + 16 + 56, &uncompressed, 8);
	IS(look(bytes, n), CUDA_ERROR_INVALID_IMAGE);
	HAS(text_log, "decompress");
	ckt_soft_texts_fini(&texts);
}

UNIT_SUITE(softgpu / module / archive, {"places", test_places}, {"passed over", test_passed_over},
	{"damaged", test_damaged})
