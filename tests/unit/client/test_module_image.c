/* SPDX-License-Identifier: Apache-2.0 */
/*
 * client/cuda/module/module_image.c: where a module's image ends by its own header, whatever the
 * header says, and how its bytes are brought to the worker.
 */
#include <CUnit/Basic.h>
#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "client/conn/call.h"
#include "client/conn/module_hints.h"
#include "client/cuda/module/module_image.h"
#include "rpc/gen/cuda_codec.h"

/* ---- A connection that remembers */

static struct {
	unsigned questions, pieces, wrong, released;
	bool have;
	CUresult answer, queued; /* queued: of the third piece */
	uint64_t size;
	uint8_t *bytes;
	uint32_t proc;
	uint8_t args[2 << 20], result[64];
} sent;

CUresult ckt_call_begin(struct ckt_call *call, uint32_t proc, size_t args_bytes, unsigned flags)
{
	sent.proc = proc;
	CU_ASSERT_FATAL(args_bytes <= sizeof sent.args);
	CU_ASSERT_EQUAL(flags, proc == CKT_PROC_BLOB_DATA ? CKT_CALL_F_BATCHED : 0);
	call->p = sent.args;
	call->size_bytes = (uint32_t)args_bytes;
	return CUDA_SUCCESS;
}

CUresult ckt_call_queue(struct ckt_call *call)
{
	struct ckt_cursor c = {.p = sent.args, .end = sent.args + call->size_bytes};
	struct ckt_blob_data_args args;
	CU_ASSERT_EQUAL_FATAL(sent.proc, CKT_PROC_BLOB_DATA);
	CU_ASSERT_TRUE_FATAL(ckt_blob_data_args_get(&c, &args));
	/* In order, none twice, each of the same whole. */
	sent.wrong += args.total != sent.size ||
		args.offset != (uint64_t)sent.pieces * CKT_DATA_MAX ||
		args.data_len > CKT_DATA_MAX || args.offset + args.data_len > args.total;
	memcpy(sent.bytes + args.offset, args.data, args.data_len);
	return ++sent.pieces == 3 ? sent.queued : CUDA_SUCCESS;
}

CUresult ckt_call_wait(struct ckt_call *call, struct ckt_reply *ret_reply)
{
	struct ckt_cursor c = {.p = sent.args, .end = sent.args + call->size_bytes};
	struct ckt_blob_have_args args;
	CU_ASSERT_EQUAL_FATAL(sent.proc, CKT_PROC_BLOB_HAVE);
	CU_ASSERT_TRUE(ckt_blob_have_args_get(&c, &args) && args.hash_len == 32);
	sent.questions++;
	ckt_put_u32(sent.result, sent.have);
	*ret_reply = (struct ckt_reply){.results = {.p = sent.result, .end = sent.result + 4}};
	return sent.answer;
}

void ckt_call_reply_release(struct ckt_reply *reply)
{
	(void)reply;
	sent.released++;
}

static enum ckt_module_hint hint;

enum ckt_module_hint ckt_call_module_hint(const uint8_t hash[32])
{
	(void)hash;
	return hint;
}

bool ckt_call_durable(void)
{
	return false;
}

/* ---- Extents */

static CUresult extent(const void *image, size_t *ret_size)
{
	const void *data = NULL;
	*ret_size = 0;
	return ckt_client_image_extent(image, &data, ret_size);
}

static void test_text(void)
{
	size_t size;
	CU_ASSERT_TRUE(extent(".version 8.0\n", &size) == CUDA_SUCCESS && size == 14);
	CU_ASSERT_EQUAL(extent("", &size), CUDA_ERROR_INVALID_IMAGE);
	CU_ASSERT_EQUAL(extent(NULL, &size), CUDA_ERROR_INVALID_VALUE);
}

static void test_fat_binary(void)
{
	struct {
		uint32_t magic;
		uint16_t version, header;
		uint64_t size;
	} fat = {0xBA55ED50, 1, 16, 1000};
	struct {
		uint32_t magic, version;
		const void *data;
	} wrapper = {0x466243B1, 1, &fat};
	size_t size;
	const void *data;
	CU_ASSERT_TRUE(extent(&fat, &size) == CUDA_SUCCESS && size == 1016);
	CU_ASSERT_TRUE(ckt_client_image_extent(&wrapper, &data, &size) == CUDA_SUCCESS &&
		size == 1016 && data == &fat);
	/*
	 * A size that carries beyond the end of all addresses, a header shorter than what was read
	 * of it.
	 */
	fat.size = UINT64_MAX - 8;
	CU_ASSERT_EQUAL(extent(&fat, &size), CUDA_ERROR_INVALID_IMAGE);
	fat.size = 1000;
	fat.header = 8;
	CU_ASSERT_EQUAL(extent(&wrapper, &size), CUDA_ERROR_INVALID_IMAGE);
	/* A wrapper around nothing, around text, around itself. */
	wrapper.data = NULL;
	CU_ASSERT_EQUAL(extent(&wrapper, &size), CUDA_ERROR_INVALID_IMAGE);
	wrapper.data = ".version 8.0\n";
	CU_ASSERT_EQUAL(extent(&wrapper, &size), CUDA_ERROR_INVALID_IMAGE);
	wrapper.data = &wrapper;
	CU_ASSERT_EQUAL(extent(&wrapper, &size), CUDA_ERROR_INVALID_IMAGE);
}

static struct {
	Elf64_Ehdr header;
	Elf64_Shdr sections[4];
} elf;

static void make_elf(void)
{
	memset(&elf, 0, sizeof elf);
	memcpy(elf.header.e_ident, ELFMAG, SELFMAG);
	elf.header.e_ident[EI_CLASS] = ELFCLASS64;
	elf.header.e_shoff = sizeof elf.header;
	elf.header.e_shentsize = sizeof(Elf64_Shdr);
	elf.header.e_shnum = 4;
	for (int i = 1; i < 4; i++)
		elf.sections[i] =
			(Elf64_Shdr){.sh_type = SHT_PROGBITS, .sh_offset = 8, .sh_size = 8};
}

static void test_elf(void)
{
	size_t size;
	make_elf();
	CU_ASSERT_TRUE(extent(&elf, &size) == CUDA_SUCCESS && size == sizeof elf);
	elf.sections[2].sh_offset = 5000;
	CU_ASSERT_TRUE(extent(&elf, &size) == CUDA_SUCCESS && size == 5008);
	/*
	 * What takes no room in the file does not count, and neither does what the first section
	 * says beside.
	 */
	elf.sections[3] =
		(Elf64_Shdr){.sh_type = SHT_NOBITS, .sh_offset = 5008, .sh_size = 1 << 20};
	CU_ASSERT_TRUE(extent(&elf, &size) == CUDA_SUCCESS && size == 5008);
	elf.header.e_phoff = 6000;
	elf.header.e_phnum = 2;
	elf.header.e_phentsize = sizeof(Elf64_Phdr);
	CU_ASSERT_TRUE(
		extent(&elf, &size) == CUDA_SUCCESS && size == 6000 + 2 * sizeof(Elf64_Phdr));
	/* More sections than 16 bits count: their number stands in the first. */
	elf.header.e_shnum = 0;
	elf.sections[0].sh_size = 4;
	elf.sections[1].sh_offset = 7000;
	CU_ASSERT_TRUE(extent(&elf, &size) == CUDA_SUCCESS && size == 7008);
	/* No sections at all. */
	elf.header.e_shoff = 0;
	CU_ASSERT_TRUE(
		extent(&elf, &size) == CUDA_SUCCESS && size == 6000 + 2 * sizeof(Elf64_Phdr));
}

static void test_bad_elf(void)
{
	size_t size;
	make_elf();
	elf.header.e_ident[EI_CLASS] = ELFCLASS32;
	CU_ASSERT_EQUAL(extent(&elf, &size), CUDA_ERROR_INVALID_IMAGE);
	make_elf();
	elf.header.e_shentsize = 8;
	CU_ASSERT_EQUAL(extent(&elf, &size), CUDA_ERROR_INVALID_IMAGE);
	make_elf();
	elf.sections[2].sh_size = UINT64_MAX - 4;
	CU_ASSERT_EQUAL(extent(&elf, &size), CUDA_ERROR_INVALID_IMAGE);
	make_elf();
	elf.header.e_phoff = UINT64_MAX - 4;
	elf.header.e_phnum = 1;
	elf.header.e_phentsize = 56;
	CU_ASSERT_EQUAL(extent(&elf, &size), CUDA_ERROR_INVALID_IMAGE);
	/* A number of sections that no file has: nothing is read behind them. */
	make_elf();
	elf.header.e_shnum = 0;
	elf.sections[0].sh_size = UINT64_MAX / 2;
	CU_ASSERT_EQUAL(extent(&elf, &size), CUDA_ERROR_INVALID_IMAGE);
}

/* ---- Sending */

static unsigned questions = 1; /* that the next image needs */

static void blob(size_t size, bool have, CUresult answer, CUresult queued, CUresult expected,
	unsigned pieces)
{
	uint8_t hash[32], *data = malloc(size + 1);
	for (size_t i = 0; i < size; i++)
		data[i] = (uint8_t)(i * 7 + i / 1000);
	memset(&sent, 0, sizeof sent);
	sent.have = have;
	sent.answer = answer;
	sent.queued = queued;
	sent.size = size;
	sent.bytes = calloc(1, size + 1);
	CU_ASSERT_EQUAL(ckt_client_blob_send(data, size, hash), expected);
	CU_ASSERT_EQUAL(sent.questions, questions);
	CU_ASSERT_EQUAL(sent.pieces, pieces);
	CU_ASSERT_EQUAL(sent.wrong, 0);
	CU_ASSERT_EQUAL(sent.released, questions && answer == CUDA_SUCCESS);
	if (pieces && !expected)
		CU_ASSERT_EQUAL(memcmp(sent.bytes, data, size), 0);
	free(sent.bytes);
	free(data);
}

static void test_send(void)
{
	enum { SMALL = 64 << 10, LARGE = SMALL + 1 };
	blob(LARGE, true, CUDA_SUCCESS, CUDA_SUCCESS, CUDA_SUCCESS, 0);
	blob(LARGE, false, CUDA_SUCCESS, CUDA_SUCCESS, CUDA_SUCCESS, 1);
	blob(CKT_DATA_MAX, false, CUDA_SUCCESS, CUDA_SUCCESS, CUDA_SUCCESS, 1);
	blob((size_t)CKT_DATA_MAX * 4 + 1, false, CUDA_SUCCESS, CUDA_SUCCESS, CUDA_SUCCESS, 5);
	/* Nothing follows an error. */
	blob(LARGE, false, CUDA_ERROR_DEVICE_UNAVAILABLE, CUDA_SUCCESS,
		CUDA_ERROR_DEVICE_UNAVAILABLE, 0);
	blob((size_t)CKT_DATA_MAX * 4 + 1, false, CUDA_SUCCESS, CUDA_ERROR_DEVICE_UNAVAILABLE,
		CUDA_ERROR_DEVICE_UNAVAILABLE, 3);
	/* A small one goes without a question the first time, and as often as 64 others came between. */
	questions = 0;
	for (size_t size = 1; size <= 65; size++)
		blob(size, true, CUDA_SUCCESS, CUDA_SUCCESS, CUDA_SUCCESS, 1);
	blob(1, true, CUDA_SUCCESS, CUDA_SUCCESS, CUDA_SUCCESS, 1);
	blob(SMALL, true, CUDA_SUCCESS, CUDA_SUCCESS, CUDA_SUCCESS, 1);
	questions = 1;
	blob(SMALL, true, CUDA_SUCCESS, CUDA_SUCCESS, CUDA_SUCCESS, 0);
	blob(65, false, CUDA_SUCCESS, CUDA_SUCCESS, CUDA_SUCCESS, 1);
}

/* ---- Offering: a large image is sent only when the worker turns out to lack it */

static void offer(size_t size, unsigned pieces)
{
	uint8_t hash[32], sent_hash[32], *data = calloc(1, size);
	data[0] = 'o';
	memset(&sent, 0, sizeof sent);
	sent.size = size;
	sent.bytes = calloc(1, size);
	CU_ASSERT_EQUAL(ckt_client_blob_offer(data, size, hash), CUDA_SUCCESS);
	CU_ASSERT_TRUE(!sent.questions && sent.pieces == pieces && !sent.wrong);
	if (!pieces)
		CU_ASSERT_EQUAL(ckt_client_blob_put(data, size, hash), CUDA_SUCCESS);
	CU_ASSERT_TRUE(!sent.questions && sent.pieces == 1 && !sent.wrong);
	CU_ASSERT_EQUAL(memcmp(sent.bytes, data, size), 0);
	/* The same hash as when it is asked for. */
	sent.have = true;
	CU_ASSERT_EQUAL(ckt_client_blob_send(data, size, sent_hash), CUDA_SUCCESS);
	CU_ASSERT_EQUAL(memcmp(hash, sent_hash, sizeof hash), 0);
	free(sent.bytes);
	free(data);
}

static void test_offer(void)
{
	enum { SMALL = 64 << 10, LARGE = SMALL + 1 };
	offer(SMALL, 1);
	offer(SMALL, 0);
	offer(LARGE, 0);
	/* The server has told what it keeps. */
	hint = CKT_MODULE_KEPT;
	offer(SMALL - 1, 0);
	offer(LARGE, 0);
	hint = CKT_MODULE_NOT_KEPT;
	offer(SMALL - 2, 1);
	offer(LARGE, 1);
	offer(LARGE, 0);
	hint = CKT_MODULE_UNKNOWN;
}

int main(void)
{
	CU_initialize_registry();
	CU_pSuite suite = CU_add_suite("image", NULL, NULL);
	CU_add_test(suite, "text", test_text);
	CU_add_test(suite, "fat binaries", test_fat_binary);
	CU_add_test(suite, "elf", test_elf);
	CU_add_test(suite, "bad elf", test_bad_elf);
	CU_add_test(suite, "send", test_send);
	CU_add_test(suite, "offer", test_offer);
	CU_basic_run_tests();
	unsigned failures = CU_get_number_of_failures();
	CU_cleanup_registry();
	return failures != 0;
}
