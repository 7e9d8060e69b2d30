/* SPDX-License-Identifier: Apache-2.0 */
/* client/cuda/context/coredump.c: settings of core dumps: remembered here, none is ever made. */
#include <string.h>

#include "relay.h"

static void test_settings(void)
{
	char text[1024];
	bool flag = true;
	unsigned generation = 5;
	size_t size = sizeof text;
	LOCAL(cuCoredumpGetAttribute(CU_COREDUMP_FILE, text, &size), CUDA_SUCCESS);
	HAS(text, "core.cuda.");
	IS(size, sizeof text); /* the room that a text has, not its length */
	size = 3;
	IS(cuCoredumpGetAttributeGlobal(CU_COREDUMP_FILE, text, &size), BAD); /* no room */
	IS(cuCoredumpGetAttributeGlobal(CU_COREDUMP_FILE, NULL, &size), CUDA_SUCCESS);
	YES(size > 3);
	size = 5;
	LOCAL(cuCoredumpSetAttribute(CU_COREDUMP_FILE, (void *)"/x/y", &size), CUDA_SUCCESS);
	size = sizeof text;
	IS(cuCoredumpGetAttributeGlobal(CU_COREDUMP_FILE, text, &size), CUDA_SUCCESS);
	TEXT(text, "/x/y");
	size = sizeof flag;
	LOCAL(cuCoredumpSetAttributeGlobal(CU_COREDUMP_ENABLE_ON_EXCEPTION, &flag, &size),
		CUDA_ERROR_NOT_SUPPORTED);
	flag = false;
	IS(cuCoredumpSetAttributeGlobal(CU_COREDUMP_ENABLE_ON_EXCEPTION, &flag, &size),
		CUDA_SUCCESS);
	IS(cuCoredumpSetAttributeGlobal(CU_COREDUMP_TRIGGER_HOST, &flag, &size), CUDA_SUCCESS);
	flag = true;
	IS(cuCoredumpGetAttributeGlobal(CU_COREDUMP_TRIGGER_HOST, &flag, &size), CUDA_SUCCESS);
	NO(flag);
	size = sizeof generation;
	IS(cuCoredumpSetAttributeGlobal(CU_COREDUMP_GENERATION_FLAGS, &generation, &size),
		CUDA_SUCCESS);
	generation = 0;
	IS(cuCoredumpGetAttributeGlobal(CU_COREDUMP_GENERATION_FLAGS, &generation, &size),
		CUDA_SUCCESS);
	IS(generation, 5);
	size = 2;
	IS(cuCoredumpSetAttributeGlobal(CU_COREDUMP_GENERATION_FLAGS, &generation, &size), BAD);
	IS(cuCoredumpGetAttributeGlobal((CUcoredumpSettings)99, text, &size), BAD);
	IS(cuCoredumpSetAttributeGlobal(CU_COREDUMP_FILE, NULL, &size), BAD);
	IS(cuCoredumpGetAttributeGlobal(CU_COREDUMP_FILE, text, NULL), BAD);
}

UNIT_SUITE(coredump, {"settings", test_settings})
