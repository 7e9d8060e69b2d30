/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuBLAS's log, for the calls that the program makes here: what the genuine library at the server
 * would print of them is not heard here.
 *
 * As in NVIDIA's, cublasLoggerConfigure says whether and where (standard output, standard error, a
 * file), CUBLAS_LOGINFO_DBG and CUBLAS_LOGDEST_DBG say so before any call, and a callback hears
 * each message wherever else it goes.  A call is two messages: its name; time, process and thread.
 * NVIDIA's has its parameters in between.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "client/libs/cublas/cublas.h"
#include "base/fork.h"

_Atomic bool ckt_cublas_logs;

static CKT_LOCK(lock);
/* Under lock. */
static struct {
	bool to_stdout, to_stderr;
	FILE *file;
	cublasLogCallback callback;
	double began;
} to;

static double seconds(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* Precondition: lock held.  A file that cannot be opened is no error, as in NVIDIA's library. */
static void configure(bool on, bool to_stdout, bool to_stderr, const char *name)
{
	if (to.file)
		fclose(to.file);
	to.file = on && name ? fopen(name, "we") : NULL;
	to.to_stdout = on && to_stdout;
	to.to_stderr = on && to_stderr;
	if (!to.began)
		to.began = seconds();
	ckt_cublas_logs = on;
}

static __attribute__((constructor)) void read_environment(void)
{
	const char *on = getenv("CUBLAS_LOGINFO_DBG"), *where = getenv("CUBLAS_LOGDEST_DBG");
	if (!on || atoi(on) != 1 || !where)
		return;
	bool to_stdout = !strcmp(where, "stdout"), to_stderr = !strcmp(where, "stderr");
	pthread_mutex_lock(&lock);
	configure(true, to_stdout, to_stderr, to_stdout || to_stderr ? NULL : where);
	pthread_mutex_unlock(&lock);
}

static void say(const char *message)
{
	FILE *const files[] = {to.to_stdout ? stdout : NULL, to.to_stderr ? stderr : NULL, to.file};
	for (unsigned i = 0; i < 3; i++)
		if (files[i]) {
			fputs(message, files[i]);
			fflush(files[i]);
		}
}

void ckt_cublas_log(const char *function)
{
	char head[256], tail[256], when[32] = "";
	int before = errno;
	time_t now = time(NULL);
	struct tm parts;
	if (localtime_r(&now, &parts))
		strftime(when, sizeof when, "%FT%T", &parts);
	snprintf(head, sizeof head, "I! cuBLAS function %s called:\n", function);
	pthread_mutex_lock(&lock);
	double elapsed = seconds() - to.began;
	snprintf(tail, sizeof tail,
		"i! Time: %s elapsed from start %f minutes or %f seconds\ni!Process=%d; Thread=%llu\n",
		when, elapsed / 60, elapsed, (int)getpid(), (unsigned long long)pthread_self());
	say(head);
	say(tail);
	cublasLogCallback told = to.callback;
	pthread_mutex_unlock(&lock);
	/* It may call the library. */
	if (told) {
		told(head);
		told(tail);
	}
	errno = before;
}

CKT_LIB_EXPORT cublasStatus_t cublasLoggerConfigure(
	int on, int to_stdout, int to_stderr, const char *file)
{
	pthread_mutex_lock(&lock);
	configure(on, to_stdout, to_stderr, file);
	pthread_mutex_unlock(&lock);
	return CUBLAS_STATUS_SUCCESS;
}

/* A callback turns the log on by itself. */
CKT_LIB_EXPORT cublasStatus_t cublasSetLoggerCallback(cublasLogCallback callback)
{
	pthread_mutex_lock(&lock);
	to.callback = callback;
	if (!to.began)
		to.began = seconds();
	ckt_cublas_logs = ckt_cublas_logs || callback;
	pthread_mutex_unlock(&lock);
	return CUBLAS_STATUS_SUCCESS;
}

CKT_LIB_EXPORT cublasStatus_t cublasGetLoggerCallback(cublasLogCallback *callback)
{
	if (!callback)
		return CUBLAS_STATUS_INVALID_VALUE;
	pthread_mutex_lock(&lock);
	*callback = to.callback;
	pthread_mutex_unlock(&lock);
	return CUBLAS_STATUS_SUCCESS;
}
