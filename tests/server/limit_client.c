/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that takes memory as lines of its standard input say; test_limits.py and
 * test_waiting.py read one line of numbers for each.
 *
 *	alloc MIB, async MIB, vmm MIB, array MIB	the CUresult
 *	plan MIB					of cuFFT with such a work area: the cufftResult
 *	unplan						of the latest plan: the cufftResult
 *	fill WORD					each block with WORD plus its number: the CUresult
 *	check WORD					how many blocks hold something else
 *	free						of the latest alloc: the CUresult
 *	begin MIB					0: another thread does alloc
 *	done, join					whether it has; its CUresult, awaited
 *	long LOOPS					a kernel that runs so long, without a wait: the CUresult
 *	fault						a kernel that writes where nothing is, awaited: the CUresult
 *	sync						cuCtxSynchronize: the CUresult
 *	info						cuMemGetInfo's free and total bytes, cuDeviceTotalMem's
 *	nvml						NVML's free and total bytes of GPU 0
 *	count						GPUs
 *	give FILE					the latest block, for others: the CUresult
 *	open FILE MIB					what another gave: the CUresult
 *	close						of the latest opened: the CUresult
 *	share FILE MIB					physical memory for others, mapped: the CUresult
 *	import FILE MIB					what another shared so, mapped: the CUresult
 *	put WORD, see WORD				fill and check of what was opened, shared or imported
 *	use GPU						before the first block: the CUresult
 *	unique, rank, train, leave			ranked.h
 */
#include <cuda.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "loaded.h"

/* name is CUDA's macro, so its versions are resolved. */
#define TEXT_OF(name) #name
#define CALL(name, ...) (((__typeof__(&name))function(TEXT_OF(name)))(__VA_ARGS__))

#define MUST(call)                                          \
	do {                                                \
		int result_ = (int)(call);                  \
		if (result_) {                              \
			printf("%s: %d\n", #call, result_); \
			exit(2);                            \
		}                                           \
	} while (0)

#define MIB ((size_t)1 << 20)

enum { BLOCKS = 4096 };

static CUdeviceptr blocks[BLOCKS];
static size_t sizes[BLOCKS];
static unsigned count;
static CUdevice device;

static int take(size_t mib)
{
	int result = (int)CALL(cuMemAlloc, &blocks[count], mib * MIB);
	sizes[count] = mib * MIB;
	count += !result;
	return result;
}

static int fill(size_t word)
{
	int result = 0;
	for (unsigned i = 0; i < count && !result; i++)
		result = (int)CALL(
			cuMemsetD32, blocks[i], (unsigned)word + i, sizes[i] / sizeof(unsigned));
	return result ? result : (int)CALL(cuCtxSynchronize);
}

static int check(size_t word)
{
	int bad = 0;
	for (unsigned i = 0; i < count; i++) {
		unsigned *copy = malloc(sizes[i]);
		if (!copy)
			exit(2);
		MUST(CALL(cuMemcpyDtoH, copy, blocks[i], sizes[i]));
		bad += copy[0] != (unsigned)word + i ||
			memcmp(copy, copy + 1, sizes[i] - sizeof *copy) != 0;
		free(copy);
	}
	return bad;
}

static int take_async(size_t mib)
{
	CUdeviceptr block;
	return (int)CALL(cuMemAllocAsync, &block, mib * MIB, NULL);
}

static int take_physical(size_t mib)
{
	CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device}};
	CUmemGenericAllocationHandle handle;
	return (int)CALL(cuMemCreate, &handle, mib * MIB, &prop, 0);
}

static int take_array(size_t mib)
{
	CUDA_ARRAY_DESCRIPTOR desc = {.Width = 1 << 16,
		.Height = mib << 4,
		.Format = CU_AD_FORMAT_UNSIGNED_INT8,
		.NumChannels = 1};
	CUarray array;
	return (int)CALL(cuArrayCreate, &array, &desc);
}

/* ---- Memory that a library takes for itself */

static void *cufft_function(const char *name)
{
	static void *cufft;
	if (!cufft)
		cufft = dlopen("libcufft.so.12", RTLD_NOW);
	void *found = cufft ? dlsym(cufft, name) : NULL;
	if (!found)
		exit(2);
	return found;
}

static int plan;

static int make_plan(size_t mib)
{
	enum { C2C = 0x29, BYTES = 32 }; /* of the soft GPU's work area for each number */
	int (*plan_1d)(int *, int, int, int);
	*(void **)&plan_1d = cufft_function("cufftPlan1d");
	return plan_1d(&plan, (int)(mib * MIB / BYTES), C2C, 1);
}

static int end_plan(size_t unused)
{
	int (*destroy)(int);
	(void)unused;
	*(void **)&destroy = cufft_function("cufftDestroy");
	return destroy(plan);
}

/* ---- A kernel that runs long */

static const char ptx[] = ".version 7.0\n.target sm_70\n.address_size 64\n"
			  ".visible .entry count(.param .u64 loops)\n"
			  "{\n"
			  ".reg .b64 %rd<3>;\n.reg .pred %p;\n"
			  "ld.param.u64 %rd2, [loops];\n"
			  "mov.u64 %rd1, 0;\n"
			  "again:\n"
			  "mad.lo.u64 %rd1, %rd1, 6364136223846793005, 1442695040888963407;\n"
			  "sub.u64 %rd2, %rd2, 1;\n"
			  "setp.ne.u64 %p, %rd2, 0;\n"
			  "@%p bra again;\n"
			  "ret;\n}\n";

static int run_long(size_t loops)
{
	static CUmodule module;
	CUfunction kernel;
	void *params[] = {&loops};
	if (!module)
		MUST(CALL(cuModuleLoadData, &module, ptx));
	MUST(CALL(cuModuleGetFunction, &kernel, module, "count"));
	return (int)CALL(cuLaunchKernel, kernel, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL);
}

static int synchronize(size_t unused)
{
	(void)unused;
	return (int)CALL(cuCtxSynchronize);
}

static const char bad_ptx[] = ".version 7.0\n.target sm_70\n.address_size 64\n"
			      ".visible .entry bad()\n{\n.reg .b64 %rd<2>;\n"
			      "mov.u64 %rd1, 16;\nst.global.u64 [%rd1], %rd1;\nret;\n}\n";

static int fault(size_t unused)
{
	CUmodule module;
	CUfunction kernel;
	(void)unused;
	MUST(CALL(cuModuleLoadData, &module, bad_ptx));
	MUST(CALL(cuModuleGetFunction, &kernel, module, "bad"));
	MUST(CALL(cuLaunchKernel, kernel, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
	return (int)CALL(cuCtxSynchronize);
}

/* ---- Another thread's */

static struct {
	pthread_t thread;
	CUcontext context;
	size_t mib;
	int result;
	_Atomic int done;
} other;

static void *take_beside(void *opaque)
{
	CUdeviceptr block;
	(void)opaque;
	MUST(CALL(cuCtxSetCurrent, other.context));
	other.result = (int)CALL(cuMemAlloc, &block, other.mib * MIB);
	atomic_store(&other.done, 1);
	return NULL;
}

static int begin(size_t mib)
{
	other.mib = mib;
	atomic_store(&other.done, 0);
	return pthread_create(&other.thread, NULL, take_beside, NULL);
}

static int join(void)
{
	pthread_join(other.thread, NULL);
	return other.result;
}

static void print_info(void)
{
	size_t left, total, all;
	MUST(CALL(cuMemGetInfo, &left, &total));
	MUST(CALL(cuDeviceTotalMem, &all, device));
	printf("%zu %zu %zu\n", left, total, all);
}

/* As nvml.h has them. */
struct nvml_memory {
	unsigned long long total, free, used;
};

static void print_nvml(void)
{
	void *cuda = library, *gpu;
	struct nvml_memory memory;
	library = dlopen("libnvidia-ml.so.1", RTLD_NOW);
	if (!library)
		exit(2);
	MUST(((int (*)(void))function("nvmlInit_v2"))());
	MUST(((int (*)(unsigned, void **))function("nvmlDeviceGetHandleByIndex_v2"))(0, &gpu));
	MUST(((int (*)(void *, struct nvml_memory *))function("nvmlDeviceGetMemoryInfo"))(
		gpu, &memory));
	printf("%llu %llu\n", memory.free, memory.total);
	library = cuda;
}

/* ---- Memory of several programs */

static CUdeviceptr shared[BLOCKS];
static size_t shared_sizes[BLOCKS];
static unsigned shared_count;

static void write_to(const char *path, const void *data, size_t size)
{
	FILE *file = fopen(path, "w");
	if (!file || fwrite(data, size, 1, file) != 1 || fclose(file))
		exit(2);
}

static void read_from(const char *path, void *data, size_t size)
{
	FILE *file = fopen(path, "r");
	if (!file || fread(data, size, 1, file) != 1)
		exit(2);
	fclose(file);
}

static int enter_shared(CUdeviceptr address, size_t mib)
{
	shared[shared_count] = address;
	shared_sizes[shared_count++] = mib * MIB;
	return 0;
}

static int give(const char *path, size_t unused)
{
	CUipcMemHandle handle;
	(void)unused;
	int result = (int)CALL(cuIpcGetMemHandle, &handle, blocks[count - 1]);
	if (!result)
		write_to(path, &handle, sizeof handle);
	return result;
}

static int open_given(const char *path, size_t mib)
{
	CUipcMemHandle handle;
	CUdeviceptr address;
	read_from(path, &handle, sizeof handle);
	int result =
		(int)CALL(cuIpcOpenMemHandle, &address, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
	return result ? result : enter_shared(address, mib);
}

static int map_physical(CUmemGenericAllocationHandle handle, size_t mib)
{
	const CUmemAccessDesc access = {
		.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device},
		.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
	CUdeviceptr address;
	MUST(CALL(cuMemAddressReserve, &address, mib * MIB, 0, 0, 0));
	MUST(CALL(cuMemMap, address, mib * MIB, 0, handle, 0));
	MUST(CALL(cuMemSetAccess, address, mib * MIB, &access, 1));
	return enter_shared(address, mib);
}

static int share(const char *path, size_t mib)
{
	CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
		.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device}};
	CUmemGenericAllocationHandle handle;
	char bytes[64];
	int fd;
	int result = (int)CALL(cuMemCreate, &handle, mib * MIB, &prop, 0);
	if (result)
		return result;
	MUST(CALL(cuMemExportToShareableHandle, &fd, handle,
		CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
	if (pread(fd, bytes, sizeof bytes, 0) != sizeof bytes || close(fd))
		exit(2);
	write_to(path, bytes, sizeof bytes);
	return map_physical(handle, mib);
}

static int import(const char *path, size_t mib)
{
	CUmemGenericAllocationHandle handle;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	int result = (int)CALL(cuMemImportFromShareableHandle, &handle, (void *)(intptr_t)fd,
		CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
	close(fd);
	return result ? result : map_physical(handle, mib);
}

/* As fill and check, of those blocks: all hold the same word. */
static int put(size_t word)
{
	int result = 0;
	for (unsigned i = 0; i < shared_count && !result; i++)
		result = (int)CALL(
			cuMemsetD32, shared[i], (unsigned)word, shared_sizes[i] / sizeof(unsigned));
	return result ? result : (int)CALL(cuCtxSynchronize);
}

static int see(size_t word)
{
	int bad = 0;
	for (unsigned i = 0; i < shared_count; i++) {
		unsigned *copy = malloc(shared_sizes[i]);
		if (!copy)
			exit(2);
		bad += CALL(cuMemcpyDtoH, copy, shared[i], shared_sizes[i]) != CUDA_SUCCESS ||
			copy[0] != (unsigned)word ||
			memcmp(copy, copy + 1, shared_sizes[i] - sizeof *copy) != 0;
		free(copy);
	}
	return bad;
}

static int close_given(size_t unused)
{
	(void)unused;
	return shared_count ? (int)CALL(cuIpcCloseMemHandle, shared[--shared_count]) : -1;
}

#include "ranked.h"

static bool obey_sharing(const char *line)
{
	static const struct {
		const char *name;
		int (*obey)(const char *path, size_t mib);
	} commands[] = {{"give", give}, {"open", open_given}, {"share", share}, {"import", import}};
	char command[32], path[4000];
	size_t mib = 0;
	if (sscanf(line, "%31s %3999s %zu", command, path, &mib) < 2)
		return false;
	for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
		if (strcmp(command, commands[i].name) == 0) {
			printf("%d\n", commands[i].obey(path, mib));
			fflush(stdout);
			return true;
		}
	return false;
}

static int use(size_t gpu)
{
	MUST(CALL(cuDeviceGet, &device, (int)gpu));
	MUST(CALL(cuDevicePrimaryCtxRetain, &other.context, device));
	return (int)CALL(cuCtxSetCurrent, other.context);
}

static void obey(const char *command, size_t mib)
{
	static const struct {
		const char *name;
		int (*take)(size_t mib);
	} takes[] = {{"alloc", take}, {"async", take_async}, {"vmm", take_physical},
		{"array", take_array}, {"begin", begin}, {"fill", fill}, {"check", check},
		{"long", run_long}, {"fault", fault}, {"sync", synchronize}, {"put", put},
		{"see", see}, {"close", close_given}, {"use", use}, {"plan", make_plan},
		{"unplan", end_plan}};
	int gpus;
	for (size_t i = 0; i < sizeof takes / sizeof *takes; i++)
		if (strcmp(command, takes[i].name) == 0)
			printf("%d\n", takes[i].take(mib));
	if (strcmp(command, "free") == 0)
		printf("%d\n", count ? (int)CALL(cuMemFree, blocks[--count]) : -1);
	if (strcmp(command, "done") == 0)
		printf("%d\n", atomic_load(&other.done));
	if (strcmp(command, "join") == 0)
		printf("%d\n", join());
	if (strcmp(command, "info") == 0)
		print_info();
	if (strcmp(command, "nvml") == 0)
		print_nvml();
	if (strcmp(command, "count") == 0) {
		MUST(CALL(cuDeviceGetCount, &gpus));
		printf("%d\n", gpus);
	}
	fflush(stdout);
}

int main(void)
{
	CUcontext context;
	char line[4096], command[32];
	library = dlopen("libcuda.so.1", RTLD_NOW);
	if (!library)
		return 2;
	MUST(CALL(cuInit, 0));
	MUST(CALL(cuDeviceGet, &device, 0));
	MUST(CALL(cuDevicePrimaryCtxRetain, &context, device));
	MUST(CALL(cuCtxSetCurrent, context));
	other.context = context;
	printf("0\n");
	fflush(stdout);
	while (fgets(line, sizeof line, stdin)) {
		size_t mib = 0;
		if (!obey_ranked(line) && !obey_sharing(line) &&
			sscanf(line, "%31s %zu", command, &mib) >= 1)
			obey(command, mib);
	}
	return 0;
}
