/* SPDX-License-Identifier: Apache-2.0 */
/* See pair.h. */
#include "pair.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

const char pair_ptx[] =
	".version 8.0\n.target sm_70\n.address_size 64\n"
	".visible .global .align 4 .u32 counter = 3;\n"
	".visible .entry add(.param .u64 out, .param .u32 n)\n{\n"
	"\t.reg .b32 %r<4>; .reg .b64 %d<2>;\n"
	"\tld.param.u64 %d1, [out]; ld.param.u32 %r1, [n]; atom.global.add.u32 %r2, [%d1], %r1; ret;\n}\n";

CUcontext contexts[DEVICES];
/* As in relay.c: a fault of managed memory is served on the thread that waits for it. */
__attribute__((visibility("default"))) const char *__tsan_default_options(void);
const char *__tsan_default_options(void)
{
	return "report_signal_unsafe=0";
}

static char directory[64];
static pid_t servers[2];

static bool start_server(const char *path, int number)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	snprintf(address.sun_path, sizeof address.sun_path, "%s/%d", directory, number);
	servers[number] = fork();
	if (servers[number] == 0) {
		prctl(PR_SET_PDEATHSIG, SIGTERM);
		execl(path, path, "--driver", "soft", "--module-cache", "off", "--socket",
			address.sun_path, "--listen", "none", "--grace", "0", "--log-level",
			"warning", (char *)NULL);
		_exit(127);
	}
	for (int i = 0; i < 6000; i++, poll(NULL, 0, 10)) {
		int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
		bool listens = connect(fd, (struct sockaddr *)&address, sizeof address) == 0;
		close(fd);
		if (listens)
			return true;
	}
	return false;
}

int unit_setup(int argc, char **argv)
{
	char address[160];
	snprintf(directory, sizeof directory, "/tmp/ckt-pair-XXXXXX");
	if (argc != 2 || !mkdtemp(directory))
		return 2;
	setenv("CRICKET_SOFT_DEVICES", "12.0:2G,12.0:1G", 1);
	setenv("CRICKET_STATE_DIR", directory, 1);
	unsetenv("CUDA_VISIBLE_DEVICES");
	if (!start_server(argv[1], 0) || !start_server(argv[1], 1))
		return 2;
	setenv("CUDA_VISIBLE_DEVICES", "3,0,2", 1);
	snprintf(address, sizeof address, "unix:%.64s/0,unix:%.64s/1", directory, directory);
	setenv("REMOTE_GPU_ADDRESS", address, 1);
	if (cuInit(0))
		return 2;
	for (int d = 0; d < DEVICES; d++)
		if (cuDevicePrimaryCtxRetain(&contexts[d], d))
			return 2;
	return cuCtxSetCurrent(contexts[0]) ? 2 : 0;
}

void unit_teardown(int status)
{
	char command[128];
	fflush(stdout);
	for (int i = 0; i < 2; i++) {
		kill(servers[i], SIGTERM);
		waitpid(servers[i], NULL, 0);
	}
	snprintf(command, sizeof command, "rm -rf '%s'", directory);
	if (system(command))
		fprintf(stderr, "%s is left\n", directory);
	/* The library's threads run on. */
	_exit(status);
}

void use(int device)
{
	MUST(cuCtxSetCurrent(contexts[device]), CUDA_SUCCESS);
}

CUdeviceptr memory_with(size_t size, uint32_t value)
{
	CUdeviceptr address = 0;
	MUST(cuMemAlloc(&address, size), CUDA_SUCCESS);
	IS(cuMemsetD32(address, value, size / 4), CUDA_SUCCESS);
	/* Other streams need not wait for it. */
	IS(cuCtxSynchronize(), CUDA_SUCCESS);
	return address;
}

unsigned words_not(CUdeviceptr address, size_t size, uint32_t value)
{
	uint32_t *words = malloc(size);
	unsigned wrong = 0;
	IS(cuMemcpyDtoH(words, address, size), CUDA_SUCCESS);
	for (size_t i = 0; i < size / 4; i++)
		wrong += words[i] != value;
	free(words);
	return wrong;
}
