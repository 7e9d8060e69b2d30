/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Three processes that share memory and events in both directions when they pass the mid point: what each of them wrote before is there for the others,
 * at the addresses that they had it at, what is written afterwards is seen by all, and a handle from before can still be opened.
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

enum { BLOCKS = 3, PEERS = 2, FD = 3 };
static const size_t PIECE = 4 << 20, sizes[BLOCKS] = {1000, 40000, 6 << 20}, OWN = 300000;

struct handles {
	cudaIpcMemHandle_t block[BLOCKS], late;
	cudaIpcEventHandle_t filled, changed;
};

__global__ void fill(unsigned *p, size_t n, unsigned value)
{
	for (size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
		p[i] = value ^ (unsigned)i;
}

static void put(void *address, size_t size, unsigned value)
{
	fill<<<16, 128>>>((unsigned *)address, size / 4, value);
	CHECK(cudaDeviceSynchronize());
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

static int peer(unsigned number)
{
	struct handles handles;
	CUmemGenericAllocationHandle piece;
	unsigned *block[BLOCKS], *own, *again, *late;
	cudaIpcMemHandle_t handle;
	cudaEvent_t filled, changed;

	if (recv(FD, &handles, sizeof(handles), MSG_WAITALL) != (ssize_t)sizeof(handles))
		return 1;
	int fd = receive_fd(FD);
	/* The image of a session has none of what is another's, but all of its own beside it. */
	CHECK(cudaMalloc(&own, OWN));
	put(own, OWN, 1000 + number);
	CHECK(cudaIpcGetMemHandle(&handle, own));
	for (int i = 0; i < BLOCKS; i++) {
		CHECK(cudaIpcOpenMemHandle((void **)&block[i], handles.block[i], cudaIpcMemLazyEnablePeerAccess));
		EXPECT(wrong(block[i], sizes[i], 100 + i) == 0);
	}
	CHECK(cudaIpcOpenEventHandle(&filled, handles.filled));
	CHECK(cudaIpcOpenEventHandle(&changed, handles.changed));
	CU(p_cuMemImportFromShareableHandle(&piece, (void *)(size_t)fd, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
	close(fd);
	CUdeviceptr address = map(piece);
	CU(p_cuMemRelease(piece));
	EXPECT(wrong((void *)address, PIECE, 300) == 0);
	if (write(FD, &handle, sizeof(handle)) != (ssize_t)sizeof(handle))
		return 1;
	hear(FD, 'w');
	put(block[number], sizes[number], 200 + number);
	tell(FD, 'w');

	/* Here all of them are when the mid point comes. */
	hear(FD, 'c');
	EXPECT(wrong(own, OWN, 2000 + number) == 0);
	EXPECT(wrong(block[0], sizes[0], 200) == 0);
	EXPECT(wrong(block[1], sizes[1], 201) == 0);
	EXPECT(wrong(block[2], sizes[2], 102) == 0);
	EXPECT(wrong((void *)address, PIECE, 300) == 0);
	put(own, OWN, 3000 + number);
	CHECK(cudaIpcOpenMemHandle((void **)&again, handles.block[2], cudaIpcMemLazyEnablePeerAccess));
	EXPECT(again == block[2]);
	CHECK(cudaIpcCloseMemHandle(again));
	CHECK(cudaIpcOpenMemHandle((void **)&late, handles.late, cudaIpcMemLazyEnablePeerAccess));
	EXPECT(wrong(late, OWN, 700) == 0);
	CHECK(cudaIpcCloseMemHandle(late));
	tell(FD, 'c');
	/* One after the other: the producer fills, and waits on the GPU for what comes back. */
	hear(FD, 'e');
	CHECK(cudaStreamWaitEvent(NULL, filled, 0));
	EXPECT(wrong(block[2], sizes[2], 500 + number) == 0);
	EXPECT(wrong((void *)address, PIECE, 600 + number) == 0);
	fill<<<16, 128>>>((unsigned *)address, PIECE / 4, 800 + number);
	fill<<<16, 128>>>(block[2], sizes[2] / 4, 900 + number);
	CHECK(cudaEventRecord(changed, NULL));
	tell(FD, 'e');
	hear(FD, 'g');
	CHECK(cudaDeviceSynchronize());
	CHECK(cudaEventDestroy(filled));
	CHECK(cudaEventDestroy(changed));
	unmap(address);
	for (int i = 0; i < BLOCKS; i++)
		CHECK(cudaIpcCloseMemHandle(block[i]));
	/* Nobody has it open any more. */
	tell(FD, 'd');
	hear(FD, 'd');
	CHECK(cudaFree(own));
	fflush(stdout);
	return test_failures ? 1 : 0;
}

int main(int argc, char **argv)
{
	unsigned *block[BLOCKS], *theirs[PEERS], *late;
	CUmemGenericAllocationHandle piece;
	CUmemAllocationProp prop = {};
	struct handles handles;
	cudaIpcMemHandle_t handle;
	cudaEvent_t filled, changed;
	char self[] = "/proc/self/exe", numbers[PEERS][2] = {"0", "1"};
	int channel[PEERS][2], fd, status;
	pid_t pid[PEERS];

	look_up();
	CHECK(cudaFree(0));
	if (argc > 1)
		return peer((unsigned)atoi(argv[1]));
	for (int i = 0; i < BLOCKS; i++) {
		CHECK(cudaMalloc(&block[i], sizes[i]));
		put(block[i], sizes[i], 100 + i);
		CHECK(cudaIpcGetMemHandle(&handles.block[i], block[i]));
	}
	CHECK(cudaMalloc(&late, OWN));
	put(late, OWN, 700);
	CHECK(cudaIpcGetMemHandle(&handles.late, late));
	CHECK(cudaEventCreateWithFlags(&filled, cudaEventInterprocess | cudaEventDisableTiming));
	CHECK(cudaEventCreateWithFlags(&changed, cudaEventInterprocess | cudaEventDisableTiming));
	CHECK(cudaIpcGetEventHandle(&handles.filled, filled));
	CHECK(cudaIpcGetEventHandle(&handles.changed, changed));
	prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
	prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
	prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
	CU(p_cuMemCreate(&piece, PIECE, &prop, 0));
	CUdeviceptr address = map(piece);
	put((void *)address, PIECE, 300);
	CU(p_cuMemExportToShareableHandle(&fd, piece, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
	for (int p = 0; p < PEERS; p++) {
		posix_spawn_file_actions_t actions;
		char *arguments[] = {argv[0], numbers[p], NULL};
		if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, channel[p]))
			return 1;
		posix_spawn_file_actions_init(&actions);
		posix_spawn_file_actions_adddup2(&actions, channel[p][1], FD);
		if (channel[p][1] == FD || posix_spawn(&pid[p], self, &actions, NULL, arguments, environ))
			return 1;
		close(channel[p][1]);
		if (write(channel[p][0], &handles, sizeof(handles)) != (ssize_t)sizeof(handles))
			return 1;
		send_fd(channel[p][0], fd);
	}
	close(fd);
	for (int p = 0; p < PEERS; p++) {
		if (recv(channel[p][0], &handle, sizeof(handle), MSG_WAITALL) != (ssize_t)sizeof(handle))
			return 1;
		CHECK(cudaIpcOpenMemHandle((void **)&theirs[p], handle, cudaIpcMemLazyEnablePeerAccess));
		EXPECT(wrong(theirs[p], OWN, 1000 + p) == 0);
		put(theirs[p], OWN, 2000 + p);
	}
	for (int p = 0; p < PEERS; p++) {
		tell(channel[p][0], 'w');
		hear(channel[p][0], 'w');
	}

	phase();

	for (int i = 0; i < BLOCKS; i++)
		EXPECT(wrong(block[i], sizes[i], i < 2 ? 200 + i : 102) == 0);
	for (int p = 0; p < PEERS; p++)
		EXPECT(wrong(theirs[p], OWN, 2000 + p) == 0);
	for (int p = 0; p < PEERS; p++) {
		tell(channel[p][0], 'c');
		hear(channel[p][0], 'c');
		EXPECT(wrong(theirs[p], OWN, 3000 + p) == 0);
	}
	for (int p = 0; p < PEERS; p++) {
		fill<<<16, 128>>>(block[2], sizes[2] / 4, 500 + p);
		fill<<<16, 128>>>((unsigned *)address, PIECE / 4, 600 + p);
		CHECK(cudaEventRecord(filled, NULL));
		tell(channel[p][0], 'e');
		hear(channel[p][0], 'e');
		CHECK(cudaStreamWaitEvent(NULL, changed, 0));
		EXPECT(wrong(block[2], sizes[2], 900 + p) == 0);
		EXPECT(wrong((void *)address, PIECE, 800 + p) == 0);
	}
	for (int p = 0; p < PEERS; p++) {
		tell(channel[p][0], 'g');
		hear(channel[p][0], 'd');
		CHECK(cudaIpcCloseMemHandle(theirs[p]));
		tell(channel[p][0], 'd');
		if (waitpid(pid[p], &status, 0) != pid[p])
			return 1;
		EXPECT(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	}
	CHECK(cudaEventDestroy(filled));
	CHECK(cudaEventDestroy(changed));
	unmap(address);
	CU(p_cuMemRelease(piece));
	for (int i = 0; i < BLOCKS; i++)
		CHECK(cudaFree(block[i]));
	CHECK(cudaFree(late));
	return finish();
}
