/* SPDX-License-Identifier: Apache-2.0 */
/* Stands for libnvrtc.so and libnvJitLink.so: each function says which it is. */
#include <stddef.h>

int nvrtcGetPTXSize(void *program, size_t *size)
{
	*size = 100 + *(int *)program;
	return 1;
}

int nvrtcGetPTX(void *program, char *text)
{
	*text = 'P';
	return 2 + *(int *)program;
}

int nvrtcGetCUBINSize(void *program, size_t *size)
{
	*size = 200 + *(int *)program;
	return 3;
}

int nvrtcGetCUBIN(void *program, char *text)
{
	*text = 'C';
	return 4 + *(int *)program;
}

int nvJitLinkVersion(unsigned *major, unsigned *minor)
{
	*major = *minor = 99;
	return 5;
}

int nvJitLinkCreate(void)
{
	return 6;
}
