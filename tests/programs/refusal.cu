/* SPDX-License-Identifier: Apache-2.0 */
/* A kernel that cannot be compiled: the line that says why has come before the call that fails returns, since a program may end there. */
#include "phase.h"

static const char ptx[] =
	".version 7.8\n"
	".target sm_75\n"
	".address_size 64\n"
	".visible .entry strange(.param .u64 p)\n"
	"{\n"
	"	.reg .b32 %r<3>;\n"
	"	mov.u32 %r1, %tid.x;\n"
	"	frobnicate.b32 %r2, %r1;\n"
	"	ret;\n"
	"}\n";

/* What has come to stderr, which is a file meanwhile. */
static size_t written(int file, char *text, size_t room)
{
	ssize_t n = pread(file, text, room - 1, 0);
	text[n > 0 ? n : 0] = 0;
	return n > 0 ? (size_t)n : 0;
}

static cudaError_t refused(cudaLibrary_t *library)
{
	cudaKernel_t kernel;
	void *pointer = NULL, *params[] = { &pointer };
	cudaError_t error = cudaLibraryLoadData(library, ptx, NULL, NULL, 0, NULL, NULL, 0);

	if (!error)
		error = cudaLibraryGetKernel(&kernel, *library, "strange");
	if (!error)
		error = cudaLaunchKernel((const void *)kernel, dim3(1), dim3(1), params, 0, 0);
	return error ? error : cudaDeviceSynchronize();
}

int main(void)
{
	char path[] = "/tmp/ckt-refusal-XXXXXX", text[4096];
	cudaLibrary_t library = NULL;
	cudaDeviceProp properties;
	int kept = dup(STDERR_FILENO), file = mkstemp(path);

	CHECK(cudaGetDeviceProperties(&properties, 0));
	CHECK(cudaFree(NULL));
	unlink(path);
	fcntl(file, F_SETFL, O_APPEND);
	dup2(file, STDERR_FILENO);
	cudaError_t error = refused(&library);
	/* NVIDIA's driver says it in the log of the just-in-time compiler alone. */
	bool said = written(file, text, sizeof(text)) && strstr(text, "frobnicate");
	dup2(kept, STDERR_FILENO);
	EXPECT(error != cudaSuccess);
	EXPECT(said || !strstr(properties.name, "Soft GPU"));
	if (!said)
		printf("on stderr: %s\n", text);
	phase();
	printf("refused\n");
	return finish();
}
