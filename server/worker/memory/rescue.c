/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory after a device fault.  The context takes no more calls then, but the program's next touch
 * of managed memory finds what is there, as it does natively.  Memory itself does not end with its
 * context: another process that is given its descriptor reads it (an H200, driver 580.159: 0.3 s
 * for the first bytes).
 *
 *	worker                                  cricket-worker --rescue DRIVER (from the first such call to the session's end)
 *	  request, descriptor of the piece --->   imports, maps, copies, forgets
 *	  <--- result, bytes
 *
 * A worker in a cage may execute nothing, and NVIDIA's driver cannot start in the cage of another
 * process: it names its threads below /proc/PID/task, and a worker's cage allows its own PID alone.
 * So the worker forks before it enters its cage.  The child waits for the first request without any
 * cage, reads nothing, then executes the worker's program, which enters a cage of its own.
 */
#include "server/worker/memory/rescue.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/close_from.h"
#include "base/log.h"
#include "rpc/gen/cuda_codec.h"
#include "server/worker/driver.h"
#include "server/worker/objects/device.h"
#include "server/worker/worker.h"

/* The helper's socket there.  Starting a driver takes seconds on a large machine. */
enum { HELPER_FD = 3, HELPER_MS = 20000 };

struct request {
	int32_t ordinal;
	uint32_t length;
	uint64_t size, offset; /* of the piece; of the bytes in it */
};

static struct {
	char driver[4096];
	int fd;
	bool failed;
} helper = {.fd = -1};

/* ---- The helper */

static int send_request(int fd, const struct request *request, int piece)
{
	char control[CMSG_SPACE(sizeof piece)] = {0};
	struct iovec part = {.iov_base = (void *)request, .iov_len = sizeof *request};
	struct msghdr message = {.msg_iov = &part,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = sizeof control};
	struct cmsghdr *header = CMSG_FIRSTHDR(&message);
	*header = (struct cmsghdr){.cmsg_level = SOL_SOCKET,
		.cmsg_type = SCM_RIGHTS,
		.cmsg_len = CMSG_LEN(sizeof piece)};
	memcpy(CMSG_DATA(header), &piece, sizeof piece);
	return sendmsg(fd, &message, MSG_NOSIGNAL) == sizeof *request ? 0 : -EPIPE;
}

static bool take_request(int fd, struct request *ret_request, int *ret_piece)
{
	char control[CMSG_SPACE(sizeof *ret_piece)];
	struct iovec part = {.iov_base = ret_request, .iov_len = sizeof *ret_request};
	struct msghdr message = {.msg_iov = &part,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = sizeof control};
	if (recvmsg(fd, &message, MSG_CMSG_CLOEXEC) != sizeof *ret_request)
		return false;
	const struct cmsghdr *header = CMSG_FIRSTHDR(&message);
	if (!header || header->cmsg_type != SCM_RIGHTS ||
		header->cmsg_len != CMSG_LEN(sizeof *ret_piece))
		return false;
	memcpy(ret_piece, CMSG_DATA(header), sizeof *ret_piece);
	return ret_request->length <= CKT_DATA_MAX;
}

/* Copies the bytes of the piece to `data`. */
static CUresult read_piece(const struct request *request, int piece, uint8_t *data)
{
	CUmemGenericAllocationHandle handle;
	CUdeviceptr address = 0;
	CUcontext context;
	CUmemAccessDesc access = {
		.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = request->ordinal},
		.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
	CUresult result = ckt_driver.cuDevicePrimaryCtxRetain(&context, request->ordinal);
	if (!result)
		result = ckt_driver.cuCtxSetCurrent(context);
	if (!result)
		result = ckt_driver.cuMemImportFromShareableHandle(
			&handle, (void *)(intptr_t)piece, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
	if (result)
		return result;
	result = ckt_driver.cuMemAddressReserve(&address, request->size, 0, 0, 0);
	if (!result) {
		result = ckt_driver.cuMemMap(address, request->size, 0, handle, 0);
		if (!result) {
			result = ckt_driver.cuMemSetAccess(address, request->size, &access, 1);
			if (!result)
				result = ckt_driver.cuMemcpyDtoH_v2(
					data, address + request->offset, request->length);
			ckt_driver.cuMemUnmap(address, request->size);
		}
		ckt_driver.cuMemAddressFree(address, request->size);
	}
	ckt_driver.cuMemRelease(handle);
	return result;
}

static bool give_bytes(const void *data, size_t size)
{
	for (size_t sent = 0; sent < size;) {
		ssize_t n = send(HELPER_FD, (const char *)data + sent, size - sent, MSG_NOSIGNAL);
		if (n <= 0)
			return false;
		sent += (size_t)n;
	}
	return true;
}

int ckt_rescue_main(const char *driver)
{
	char message[CKT_MESSAGE_MAX];
	struct request request;
	int piece;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	/* It reads the program's memory: exec has reset what the worker set. */
	prctl(PR_SET_DUMPABLE, 0);
	uint8_t *data = malloc(CKT_DATA_MAX);
	CUresult ready = data && !ckt_driver_open(driver, message, sizeof message)
		? ckt_driver.cuInit(0)
		: CUDA_ERROR_NOT_INITIALIZED;
	while (take_request(HELPER_FD, &request, &piece)) {
		int32_t result =
			ready ? (int32_t)ready : (int32_t)read_piece(&request, piece, data);
		close(piece);
		if (!give_bytes(&result, sizeof result) ||
			(!result && !give_bytes(data, request.length)))
			break;
	}
	free(data);
	return 0;
}

/* ---- The worker */

/* In the forked child: until the worker asks or ends. */
static void wait_outside(int fd, const char *driver)
{
	char *const arguments[] = {"cricket-worker", "--rescue", (char *)driver, NULL};
	char byte;
	/* The worker's listening socket among others, to which nobody may connect after its end. */
	if (dup2(fd, HELPER_FD) < 0)
		_exit(1);
	ckt_close_from(HELPER_FD + 1);
	ssize_t n;
	do
		n = recv(HELPER_FD, &byte, sizeof byte, MSG_PEEK);
	while (n < 0 && errno == EINTR);
	if (n == sizeof byte)
		execv("/proc/self/exe", arguments);
	_exit(n == 0 ? 0 : 1);
}

int ckt_rescue_fork(const char *driver)
{
	int ends[2];
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends))
		return -errno;
	pid_t pid = fork();
	if (pid == 0) {
		close(ends[0]);
		wait_outside(ends[1], driver);
	}
	int error = pid < 0 ? -errno : 0;
	close(ends[1]);
	if (error)
		close(ends[0]);
	else
		helper.fd = ends[0];
	return error;
}

void ckt_rescue_init(const char *driver)
{
	snprintf(helper.driver, sizeof helper.driver, "%s", driver);
}

/* Without a cage. */
static int start_helper(void)
{
	int ends[2];
	pid_t pid;
	posix_spawn_file_actions_t actions;
	char *const arguments[] = {"cricket-worker", "--rescue", helper.driver, NULL};
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends))
		return -errno;
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, ends[1], HELPER_FD);
	int error = posix_spawn(&pid, "/proc/self/exe", &actions, NULL, arguments, environ);
	posix_spawn_file_actions_destroy(&actions);
	close(ends[1]);
	if (error) {
		close(ends[0]);
		return -error;
	}
	helper.fd = ends[0];
	return 0;
}

static bool take_bytes(void *data, size_t size)
{
	for (size_t got = 0; got < size;) {
		struct pollfd p = {.fd = helper.fd, .events = POLLIN};
		ssize_t n = poll(&p, 1, HELPER_MS) > 0
			? recv(helper.fd, (char *)data + got, size - got, 0)
			: -1;
		if (n <= 0)
			return false;
		got += (size_t)n;
	}
	return true;
}

static CUresult ask_helper(const struct request *request, int piece, uint8_t *data)
{
	int32_t result = CUDA_ERROR_UNKNOWN;
	if (helper.fd < 0 && (helper.failed || start_helper())) {
		helper.failed = true;
		return CUDA_ERROR_OPERATING_SYSTEM;
	}
	bool good = !send_request(helper.fd, request, piece) &&
		take_bytes(&result, sizeof result) && (result || take_bytes(data, request->length));
	if (good)
		return (CUresult)result;
	ckt_warning("cannot read what a failed kernel left in memory: the helper process "
		    "ended");
	close(helper.fd);
	helper.fd = -1;
	helper.failed = true;
	return CUDA_ERROR_UNKNOWN;
}

/* The physical memory behind the address, and the offset in it. */
static bool find_piece(struct ckt_worker *worker, uint64_t address, CUdevice *ret_ordinal,
	uint64_t *ret_handle, struct request *ret_request)
{
	struct ckt_worker_device *device = ckt_worker_device_of(worker, address);
	uint64_t base = 0, size = 0, handle = 0;
	if (device && ckt_memory_extent_of(&device->memory, address, &base, &size, &handle)) {
		*ret_request = (struct request){.size = size, .offset = address - base};
		*ret_ordinal = device->ordinal;
		*ret_handle = handle;
		return true;
	}
	for (size_t i = 0; i < worker->vmm.mapping_count; i++) {
		const struct ckt_mapping *m = &worker->vmm.mappings[i];
		const struct ckt_object *object = address - m->address < m->size
			? ckt_objects_find(&worker->objects, m->physical)
			: NULL;
		if (!object)
			continue;
		*ret_request = (struct request){.size = object->physical.size,
			.offset = m->offset + (address - m->address)};
		*ret_ordinal = worker->devices[object->physical.device].ordinal;
		*ret_handle = object->physical.handle;
		return true;
	}
	return false;
}

static CUresult rescue(struct ckt_worker *worker, uint64_t address, uint32_t size, uint8_t *data)
{
	CUresult result = CUDA_SUCCESS;
	if (!ckt_driver.cuMemExportToShareableHandle)
		return CKT_INTERNAL_NOT_SUPPORTED;
	while (size && !result) {
		struct request request;
		CUdevice ordinal;
		uint64_t handle;
		int piece;
		if (!find_piece(worker, address, &ordinal, &handle, &request))
			return CUDA_ERROR_INVALID_VALUE;
		uint64_t left = request.size - request.offset;
		request.length = left < size ? (uint32_t)left : size;
		request.ordinal = ordinal;
		result = ckt_driver.cuMemExportToShareableHandle(
			&piece, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
		if (result)
			return result;
		result = ask_helper(&request, piece, data);
		close(piece);
		address += request.length;
		data += request.length;
		size -= request.length;
	}
	return result;
}

int ckt_worker_memory_rescue(struct ckt_wcall *call)
{
	struct ckt_memory_rescue_args args;
	if (!ckt_memory_rescue_args_get(&call->args, &args))
		return CKT_WCALL_GARBAGE;
	if (!args.size || args.size > CKT_DATA_MAX)
		return CUDA_ERROR_INVALID_VALUE;
	uint8_t *data = malloc(args.size);
	if (!data)
		return CUDA_ERROR_OUT_OF_MEMORY;
	CUresult result = rescue(call->worker, args.address, args.size, data);
	if (!result) {
		struct ckt_memory_rescue_res res = {.data = data, .data_len = args.size};
		ckt_memory_rescue_res_put(
			ckt_wcall_results(call, ckt_memory_rescue_res_size(&res)), &res);
	}
	free(data);
	return result;
}
