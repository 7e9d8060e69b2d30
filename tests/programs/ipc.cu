/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory and events shared between processes: a producer allocates and fills, a consumer opens, reads, writes and closes; both sorts of handle, small
 * allocations and large, freed by the producer while the consumer has them; and what is refused.
 */
#include "gpus.h"

#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>

extern char **environ;

DRIVER(cuMemAddressReserve);
DRIVER(cuMemAddressFree);
DRIVER(cuMemCreate);
DRIVER(cuMemRelease);
DRIVER(cuMemMap);
DRIVER(cuMemUnmap);
DRIVER(cuMemSetAccess);
DRIVER(cuMemExportToShareableHandle);
DRIVER(cuMemImportFromShareableHandle);

enum { BLOCKS = 3, FD = 3 };
static const size_t PIECE = 4 << 20, sizes[BLOCKS] = {1000, 40000, 6 << 20};

struct handles {
	cudaIpcMemHandle_t block[BLOCKS];
	cudaIpcEventHandle_t filled, changed;
};

__global__ void fill(unsigned *p, size_t n, unsigned value)
{
	for (size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
		p[i] = value ^ (unsigned)i;
}

static unsigned wrong(const void *address, size_t size, unsigned value)
{
	unsigned *host = (unsigned *)malloc(size), bad = 0;

	CHECK(cudaMemcpy(host, address, size, cudaMemcpyDefault));
	for (size_t i = 0; i < size / 4; i++)
		bad += host[i] != (value ^ (unsigned)i);
	free(host);
	return bad;
}

static void put(void *address, size_t size, unsigned value)
{
	fill<<<16, 128>>>((unsigned *)address, size / 4, value);
	CHECK(cudaDeviceSynchronize());
}

static void look_up(void)
{
	LOOK_UP(cuMemAddressReserve);
	LOOK_UP(cuMemAddressFree);
	LOOK_UP(cuMemCreate);
	LOOK_UP(cuMemRelease);
	LOOK_UP(cuMemMap);
	LOOK_UP(cuMemUnmap);
	LOOK_UP(cuMemSetAccess);
	LOOK_UP(cuMemExportToShareableHandle);
	LOOK_UP(cuMemImportFromShareableHandle);
}

static CUdeviceptr map(CUmemGenericAllocationHandle handle)
{
	CUmemAccessDesc access = {};
	CUdeviceptr address;

	access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
	access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
	CU(p_cuMemAddressReserve(&address, PIECE, 0, 0, 0));
	CU(p_cuMemMap(address, PIECE, 0, handle, 0));
	CU(p_cuMemSetAccess(address, PIECE, &access, 1));
	return address;
}

static void unmap(CUdeviceptr address)
{
	CHECK(cudaDeviceSynchronize());
	CU(p_cuMemUnmap(address, PIECE));
	CU(p_cuMemAddressFree(address, PIECE));
}

static void tell(int channel, char word)
{
	if (write(channel, &word, 1) != 1)
		exit(1);
}

static void hear(int channel, char expected)
{
	char word = 0;

	if (read(channel, &word, 1) != 1 || word != expected) {
		printf("the other process said '%c' instead of '%c'\n", word ? word : '-', expected);
		exit(1);
	}
}

static void send_fd(int channel, int fd)
{
	char space[CMSG_SPACE(sizeof(fd))] = "", byte = 'f';
	struct iovec part = {&byte, 1};
	struct msghdr message = {};

	message.msg_iov = &part;
	message.msg_iovlen = 1;
	message.msg_control = space;
	message.msg_controllen = sizeof(space);
	struct cmsghdr *c = CMSG_FIRSTHDR(&message);
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(fd));
	memcpy(CMSG_DATA(c), &fd, sizeof(fd));
	EXPECT(sendmsg(channel, &message, 0) == 1);
}

static int receive_fd(int channel)
{
	char space[CMSG_SPACE(sizeof(int))], byte;
	struct iovec part = {&byte, 1};
	struct msghdr message = {};
	int fd = -1;

	message.msg_iov = &part;
	message.msg_iovlen = 1;
	message.msg_control = space;
	message.msg_controllen = sizeof(space);
	if (recvmsg(channel, &message, 0) == 1 && CMSG_FIRSTHDR(&message))
		memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(fd));
	return fd;
}

static int consumer(void)
{
	struct handles handles;
	CUmemGenericAllocationHandle piece;
	unsigned *block[BLOCKS], *again;
	cudaIpcMemHandle_t bad;
	cudaEvent_t filled, changed;

	if (read(FD, &handles, sizeof(handles)) != (ssize_t)sizeof(handles))
		return 1;
	int fd = receive_fd(FD);
	for (int i = 0; i < BLOCKS; i++) {
		CHECK(cudaIpcOpenMemHandle((void **)&block[i], handles.block[i], cudaIpcMemLazyEnablePeerAccess));
		EXPECT(wrong(block[i], sizes[i], 100 + i) == 0);
		put(block[i], sizes[i], 200 + i);
	}
	/* Work of the producer's that may still be under way is waited for on the GPU, and ours by the producer. */
	CHECK(cudaIpcOpenEventHandle(&filled, handles.filled));
	CHECK(cudaIpcOpenEventHandle(&changed, handles.changed));
	tell(FD, 'o');
	hear(FD, 'e');
	CHECK(cudaStreamWaitEvent(NULL, filled, 0));
	EXPECT(wrong(block[2], sizes[2], 500) == 0);
	fill<<<16, 128>>>(block[2], sizes[2] / 4, 202);
	CHECK(cudaEventRecord(changed, NULL));
	tell(FD, 'e');
	CHECK(cudaEventSynchronize(filled));
	CHECK(cudaEventDestroy(filled));
	CHECK(cudaEventDestroy(changed));
	CHECK(cudaIpcOpenMemHandle((void **)&again, handles.block[2], cudaIpcMemLazyEnablePeerAccess));
	EXPECT(again == block[2]);
	CHECK(cudaIpcCloseMemHandle(again));
	EXPECT_ERROR(cudaFree(block[2]), cudaErrorInvalidValue);
	EXPECT_ERROR(cudaIpcOpenMemHandle((void **)&again, handles.block[2], 0), cudaErrorInvalidValue);
	memset(&bad, 0x5a, sizeof(bad));
	EXPECT(cudaIpcOpenMemHandle((void **)&again, bad, cudaIpcMemLazyEnablePeerAccess) != cudaSuccess);
	EXPECT_ERROR(cudaIpcCloseMemHandle((void *)0x1000), cudaErrorInvalidValue);
	cudaGetLastError();
	CU(p_cuMemImportFromShareableHandle(&piece, (void *)(size_t)fd, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
	close(fd);
	CUdeviceptr address = map(piece);
	CU(p_cuMemRelease(piece));
	EXPECT(wrong((void *)address, PIECE, 300) == 0);
	put((void *)address, PIECE, 400);
	tell(FD, 'w');
	hear(FD, 'g');
	/* Gone with its owner, here it stays. */
	EXPECT(wrong(block[2], sizes[2], 202) == 0);
	EXPECT(wrong((void *)address, PIECE, 400) == 0);
	put(block[2], sizes[2], 1);
	unmap(address);
	for (int i = 0; i < BLOCKS; i++)
		CHECK(cudaIpcCloseMemHandle(block[i]));
	EXPECT_ERROR(cudaIpcCloseMemHandle(block[0]), cudaErrorInvalidValue);
	cudaGetLastError();
	/* Not any more: the producer has freed it. */
	EXPECT(cudaIpcOpenMemHandle((void **)&again, handles.block[2], cudaIpcMemLazyEnablePeerAccess) != cudaSuccess);
	cudaGetLastError();
	tell(FD, 'd');
	fflush(stdout);
	return test_failures ? 1 : 0;
}

int main(int argc, char **argv)
{
	unsigned *block[BLOCKS], *pooled;
	CUmemGenericAllocationHandle piece;
	CUmemAllocationProp prop = {};
	struct handles handles;
	cudaIpcMemHandle_t again;
	cudaEvent_t filled, changed, plain;
	char self[] = "/proc/self/exe", word[] = "consumer";
	char *arguments[] = {argv[0], word, NULL};
	posix_spawn_file_actions_t actions;
	int channel[2], fd, status;
	pid_t pid;

	look_up();
	CHECK(cudaFree(0));
	if (argc > 1 && strcmp(argv[1], "consumer") == 0)
		return consumer();
	for (int i = 0; i < BLOCKS; i++) {
		CHECK(cudaMalloc(&block[i], sizes[i]));
		put(block[i], sizes[i], 100 + i);
		CHECK(cudaIpcGetMemHandle(&handles.block[i], block[i]));
	}
	CHECK(cudaEventCreateWithFlags(&filled, cudaEventInterprocess | cudaEventDisableTiming));
	CHECK(cudaEventCreateWithFlags(&changed, cudaEventInterprocess | cudaEventDisableTiming));
	CHECK(cudaEventCreateWithFlags(&plain, cudaEventDisableTiming));
	CHECK(cudaIpcGetEventHandle(&handles.filled, filled));
	CHECK(cudaIpcGetEventHandle(&handles.changed, changed));
	EXPECT(cudaIpcGetEventHandle(&handles.filled, plain) != cudaSuccess);
	cudaGetLastError();
	CHECK(cudaEventDestroy(plain));
	CHECK(cudaIpcGetMemHandle(&again, block[0]));
	EXPECT(memcmp(&again, &handles.block[0], sizeof(again)) == 0);
	EXPECT_ERROR(cudaIpcGetMemHandle(&again, &again), cudaErrorInvalidValue);
	EXPECT(cudaIpcOpenMemHandle((void **)&pooled, handles.block[0], cudaIpcMemLazyEnablePeerAccess) != cudaSuccess);
	CHECK(cudaMallocAsync(&pooled, 4096, NULL));
	EXPECT_ERROR(cudaIpcGetMemHandle(&again, pooled), cudaErrorInvalidValue);
	cudaGetLastError();
	CHECK(cudaFreeAsync(pooled, NULL));
	prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
	prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
	prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
	CU(p_cuMemCreate(&piece, PIECE, &prop, 0));
	CUdeviceptr address = map(piece);
	put((void *)address, PIECE, 300);
	CU(p_cuMemExportToShareableHandle(&fd, piece, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));

	phase();

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, channel))
		return 1;
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, channel[1], FD);
	if (channel[1] == FD || posix_spawn(&pid, self, &actions, NULL, arguments, environ))
		return 1;
	close(channel[1]);
	if (write(channel[0], &handles, sizeof(handles)) != (ssize_t)sizeof(handles))
		return 1;
	send_fd(channel[0], fd);
	close(fd);
	hear(channel[0], 'o');
	fill<<<16, 128>>>(block[2], sizes[2] / 4, 500);
	CHECK(cudaEventRecord(filled, NULL));
	tell(channel[0], 'e');
	hear(channel[0], 'e');
	CHECK(cudaStreamWaitEvent(NULL, changed, 0));
	EXPECT(wrong(block[2], sizes[2], 202) == 0);
	CHECK(cudaEventDestroy(filled));
	CHECK(cudaEventDestroy(changed));
	hear(channel[0], 'w');
	for (int i = 0; i < BLOCKS; i++)
		EXPECT(wrong(block[i], sizes[i], 200 + i) == 0);
	EXPECT(wrong((void *)address, PIECE, 400) == 0);
	for (int i = 0; i < BLOCKS; i++)
		CHECK(cudaFree(block[i]));
	unmap(address);
	CU(p_cuMemRelease(piece));
	tell(channel[0], 'g');
	hear(channel[0], 'd');
	if (waitpid(pid, &status, 0) != pid)
		return 1;
	EXPECT(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	return finish();
}
