/* SPDX-License-Identifier: Apache-2.0 */
/* client/libs/libs.c: the way from a shim to our libcuda.so.1. */
#include <dlfcn.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client/libs/libs.h"
#include "tests/unit/suite.h"

static const char *libcuda;

int unit_setup(int argc, char **argv)
{
	libcuda = argc == 2 ? argv[1] : NULL;
	/* No session is to be had. */
	setenv("REMOTE_GPU_ADDRESS", "127.0.0.1:1", 1);
	return !libcuda;
}

static void test_found(void)
{
	static struct ckt_lib_opened opened;
	/* Neither in the process nor beside this program. */
	YES(ckt_client() == NULL);
	IS(ckt_lib_open(&opened, "toy", CKT_LIB_PROC(CKT_LIB_CUBLAS, 1), 130000),
		CUDA_ERROR_NOT_INITIALIZED);
	/* Opened by someone else, under another name than a shim asks for, and for itself alone. */
	void *own = dlopen(libcuda, RTLD_NOW | RTLD_LOCAL);
	MUST(own != NULL, true);
	const struct ckt_client_table *table = ckt_client();
	MUST(table != NULL, true);
	YES(table == dlsym(own, CKT_CLIENT_TABLE_SYMBOL));
	YES(table == ckt_client());
	/* There is no server: the library is not open, and the next attempt is one. */
	YES(ckt_lib_open(&opened, "toy", CKT_LIB_PROC(CKT_LIB_CUBLAS, 1), 130000) != CUDA_SUCCESS);
	NO(opened.open);
}

/* ---- A fork while another thread opens the library */

static sem_t inside, go_on;
static bool child;

static CUresult entered(void)
{
	return CUDA_SUCCESS;
}

static CUresult held_up(struct ckt_call *call, uint32_t proc, size_t bytes, unsigned flags)
{
	(void)call, (void)proc, (void)bytes, (void)flags;
	if (!child) {
		sem_post(&inside);
		sem_wait(&go_on);
	}
	return CUDA_ERROR_NOT_SUPPORTED;
}

static void *open_it(void *opened)
{
	return ckt_lib_open(opened, "toy", CKT_LIB_PROC(CKT_LIB_CUBLAS, 1), 130000) ==
			CUDA_ERROR_NOT_SUPPORTED
		? opened
		: NULL;
}

static void test_fork(void)
{
	static struct ckt_lib_opened opened;
	static const struct ckt_client_table table = {.enter = entered, .begin = held_up};
	pthread_t thread;
	void *good;
	int status;

	ckt_lib_client_find();
	const struct ckt_client_table *before = atomic_exchange(&ckt_client_found, &table);
	sem_init(&inside, 0, 0);
	sem_init(&go_on, 0, 0);
	MUST(pthread_create(&thread, NULL, open_it, &opened), 0);
	sem_wait(&inside);
	pid_t pid = fork();
	if (pid == 0) {
		child = true;
		alarm(20); /* ends a child that waits for the thread */
		_exit(open_it(&opened) ? 0 : 1);
	}
	MUST(pid > 0, true);
	IS(waitpid(pid, &status, 0), pid);
	IS(status, 0);
	sem_post(&go_on);
	pthread_join(thread, &good);
	YES(good == &opened);
	ckt_client_found = before;
}

UNIT_SUITE(libs, {"found", test_found}, {"fork", test_fork})
