/* SPDX-License-Identifier: Apache-2.0 */
/* See files.h. */
#include <stdatomic.h>
#include <unistd.h>

#include "files.h"
#include "softgpu/context/context.h"
#include "softgpu/context/log.h"

int unit_setup(int argc, char **argv)
{
	/* For test_log.c, which runs this program again to see what a fresh process does. */
	if (argc > 1 && !strcmp(argv[1], "debug")) {
		ckt_soft_debug("told %d", 5);
		exit(0);
	}
	return setenv("CRICKET_SOFT_DEVICES", "9.0:128M,8.0:64M", 1);
}

CUcontext files_second(void)
{
	CUcontext context = NULL;
	OK(cuInit(0));
	OK(cuCtxCreate(&context, NULL, 0, 1));
	return context;
}

void files_second_end(CUcontext context)
{
	OK(cuCtxDestroy(context));
}

struct ckt_soft_context *files_context(void)
{
	struct ckt_soft_context *context = NULL;
	OK(ckt_soft_enter(&context));
	return context;
}

CUfunction files_kernel(const char *text, const char *name)
{
	CUmodule module = NULL;
	CUfunction function = NULL;
	char *whole = NULL;
	if (asprintf(&whole, ".version 8.0\n.target sm_80\n.address_size 64\n%s", text) < 0)
		abort();
	OK(cuModuleLoadData(&module, whole));
	OK(cuModuleGetFunction(&function, module, name));
	free(whole);
	return function;
}

static int caught_fd, kept_fd;
static FILE *caught;

void files_catch(int fd)
{
	fflush(NULL);
	caught_fd = fd;
	caught = tmpfile();
	kept_fd = dup(fd);
	if (!caught || kept_fd < 0 || dup2(fileno(caught), fd) < 0)
		abort();
}

const char *files_caught(void)
{
	static char text[1 << 16];
	fflush(NULL);
	dup2(kept_fd, caught_fd);
	close(kept_fd);
	rewind(caught);
	text[fread(text, 1, sizeof(text) - 1, caught)] = '\0';
	fclose(caught);
	return text;
}

static atomic_int gate_open;

static void CUDA_CB wait_for_gate(void *data)
{
	(void)data;
	while (!atomic_load(&gate_open))
		usleep(100);
}

CUstream files_gated(void)
{
	CUstream stream = NULL;
	atomic_store(&gate_open, 0);
	OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	OK(cuLaunchHostFunc(stream, wait_for_gate, NULL));
	return stream;
}

void files_open(void)
{
	atomic_store(&gate_open, 1);
}

uint32_t files_word(CUdeviceptr address)
{
	uint32_t word = 0xdeadbeef;
	OK(cuMemcpyDtoH(&word, address, 4));
	return word;
}
