/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NCCL in limit_client.c, loaded as a program's own dlopen() does: a communicator with other programs, over
 * the first two of the program's blocks.
 *
 *	unique FILE		a unique id, for others: the ncclResult_t
 *	rank FILE NUMBER COUNT	this one of so many ranks: the ncclResult_t
 *	train LOOPS		so many times, with no wait between: the second block is the sum of all ranks' first ones, and
 *				the first one is made of it and of the rank.  Then a wait: the word that all of the first block
 *				holds, or -1
 *	leave			ends the communicator: the ncclResult_t
 */
#pragma once

struct nccl_id {
	char bytes[128];
};

enum { NCCL_UINT32 = 3, NCCL_SUM = 0 };

static struct {
	void *library, *comm;
	int number;
} ranked;

static void *nccl_function(const char *name)
{
	void *cuda = library;
	if (!ranked.library)
		ranked.library = dlopen("libnccl.so.2", RTLD_NOW);
	library = ranked.library;
	void *found = function(name);
	library = cuda;
	return found;
}

static int make_id(const char *path)
{
	struct nccl_id id;
	int result = ((int (*)(struct nccl_id *))nccl_function("ncclGetUniqueId"))(&id);
	if (!result)
		write_to(path, &id, sizeof id);
	return result;
}

static int join_ranks(const char *path, int number, int all)
{
	struct nccl_id id;
	read_from(path, &id, sizeof id);
	ranked.number = number;
	return ((int (*)(void **, int, struct nccl_id, int))nccl_function("ncclCommInitRank"))(
		&ranked.comm, all, id, number);
}

static const char mix_ptx[] =
	".version 7.0\n.target sm_70\n.address_size 64\n"
	".visible .entry mix(.param .u64 to, .param .u64 from, .param .u32 add)\n"
	"{\n"
	".reg .b64 %rd<4>;\n.reg .b32 %r<6>;\n"
	"ld.param.u64 %rd1, [to];\n"
	"ld.param.u64 %rd2, [from];\n"
	"ld.param.u32 %r1, [add];\n"
	"mov.u32 %r2, %ctaid.x;\n"
	"mov.u32 %r3, %ntid.x;\n"
	"mov.u32 %r4, %tid.x;\n"
	"mad.lo.u32 %r2, %r2, %r3, %r4;\n"
	"mul.wide.u32 %rd3, %r2, 4;\n"
	"add.u64 %rd1, %rd1, %rd3;\n"
	"add.u64 %rd2, %rd2, %rd3;\n"
	"ld.global.u32 %r5, [%rd2];\n"
	"mad.lo.u32 %r5, %r5, 1664525, %r1;\n"
	"st.global.u32 [%rd1], %r5;\n"
	"ret;\n}\n";

/* How many words of the blocks take part. */
enum { TRAINED = 1 << 16 };

static int train(size_t loops)
{
	static CUmodule module;
	CUfunction kernel;
	unsigned add = 1013904223u + (unsigned)ranked.number;
	void *params[] = {&blocks[0], &blocks[1], &add};
	int (*sum)(const void *, void *, size_t, int, int, void *, CUstream) =
		(int (*)(const void *, void *, size_t, int, int, void *, CUstream))nccl_function(
			"ncclAllReduce");
	if (!module)
		MUST(CALL(cuModuleLoadData, &module, mix_ptx));
	MUST(CALL(cuModuleGetFunction, &kernel, module, "mix"));
	for (size_t i = 0; i < loops; i++) {
		if (sum((void *)(uintptr_t)blocks[0], (void *)(uintptr_t)blocks[1], TRAINED,
			    NCCL_UINT32, NCCL_SUM, ranked.comm, NULL))
			return -1;
		MUST(CALL(cuLaunchKernel, kernel, TRAINED / 256, 1, 1, 256, 1, 1, 0, NULL, params,
			NULL));
	}
	return (int)CALL(cuCtxSynchronize);
}

/* The word of all, or -1. */
static long long trained(void)
{
	static unsigned copy[TRAINED];
	if (CALL(cuMemcpyDtoH, copy, blocks[0], sizeof copy) ||
		memcmp(copy, copy + 1, sizeof copy - sizeof *copy) != 0)
		return -1;
	return copy[0];
}

static bool obey_ranked(const char *line)
{
	char command[32], path[4000];
	int number = 0, all = 0;
	size_t loops;
	if (sscanf(line, "%31s", command) != 1)
		return false;
	if (strcmp(command, "unique") == 0 && sscanf(line, "%*s %3999s", path) == 1)
		printf("%d\n", make_id(path));
	else if (strcmp(command, "rank") == 0 &&
		sscanf(line, "%*s %3999s %d %d", path, &number, &all) == 3)
		printf("%d\n", join_ranks(path, number, all));
	else if (strcmp(command, "train") == 0 && sscanf(line, "%*s %zu", &loops) == 1)
		printf("%lld\n", train(loops) ? -1 : trained());
	else if (strcmp(command, "leave") == 0)
		printf("%d\n", ((int (*)(void *))nccl_function("ncclCommDestroy"))(ranked.comm));
	else
		return false;
	fflush(stdout);
	return true;
}
