/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuBLASLt's logger, for the calls that the program makes here: failures, and each call where the
 * mask has the trace of the API.  Traces of the genuine library's inside are the server's and are
 * not heard here.
 *
 * CUBLASLT_LOG_LEVEL, CUBLASLT_LOG_MASK and CUBLASLT_LOG_FILE (%i: the process's id) are looked at
 * once; functions come after them.
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "client/libs/cublasLt/logger.h"
#include "base/fork.h"
#include "client/libs/libs.h"

enum { MASK_ERRORS = 1, MASK_API = 16, LEVEL_ERRORS = 1, LEVEL_API = 5, LEVEL_MAX = 6 };

/* Negative: the environment was not looked at yet. */
static _Atomic int mask = -1;
static _Atomic bool disabled;
static _Atomic(cublasLtLoggerCallback_t) callback;
static CKT_LOCK(lock);
/* The file and whether we opened it; under lock. */
static FILE *file;
static bool ours;

static int mask_of_level(int level)
{
	return level >= LEVEL_API ? 31 : (1 << level) - 1;
}

static void use_file(FILE *other, bool opened)
{
	if (ours && file)
		fclose(file);
	file = other;
	ours = opened;
}

/* Precondition: lock held. */
static void open_named(const char *name)
{
	char path[4096];
	const char *id = strstr(name, "%i");
	int length = id ? snprintf(path, sizeof path, "%.*s%d%s", (int)(id - name), name,
				  (int)getpid(), id + 2)
			: snprintf(path, sizeof path, "%s", name);
	FILE *opened = length > 0 && length < (int)sizeof path ? fopen(path, "we") : NULL;
	if (opened)
		use_file(opened, true);
}

static int current_mask(void)
{
	int now = mask;
	if (__builtin_expect(now >= 0, 1))
		return now;
	const char *level = getenv("CUBLASLT_LOG_LEVEL"), *bits = getenv("CUBLASLT_LOG_MASK"),
		   *name = getenv("CUBLASLT_LOG_FILE");
	pthread_mutex_lock(&lock);
	now = mask;
	if (now < 0) {
		now = bits ? atoi(bits) & 31 : 0;
		if (level && !now) {
			int wanted = atoi(level);
			now = wanted > 0 ? mask_of_level(wanted) : 0;
		}
		if (now && name)
			open_named(name);
		mask = now;
	}
	pthread_mutex_unlock(&lock);
	return now;
}

static void say(int level, const char *function, const char *message)
{
	char when[32] = "";
	time_t now = time(NULL);
	struct tm parts;
	cublasLtLoggerCallback_t told = callback;
	if (told)
		told(level, function, message);
	if (localtime_r(&now, &parts))
		strftime(when, sizeof when, "%F %T", &parts);
	pthread_mutex_lock(&lock);
	/*
	 * Without a file and a callback the genuine library writes to the standard output, as its
	 * environment variable's documentation says.
	 */
	FILE *out = file ? file : told ? NULL : stdout;
	if (out) {
		fprintf(out, "[%s][cublasLt][%d][%s][%s] %s\n", when, (int)getpid(),
			level == LEVEL_ERRORS ? "Error" : "Api", function, message);
		fflush(out);
	}
	pthread_mutex_unlock(&lock);
}

cublasStatus_t ckt_lt_log(const char *function, cublasStatus_t status)
{
	int wanted = current_mask();
	if (__builtin_expect(!wanted || disabled, 1))
		return status;
	int before = errno;
	if (status && wanted & MASK_ERRORS)
		say(LEVEL_ERRORS, function, cublasLtGetStatusName(status));
	else if (wanted & MASK_API)
		say(LEVEL_API, function, cublasLtGetStatusName(status));
	errno = before;
	return status;
}

CKT_LIB_EXPORT cublasStatus_t cublasLtLoggerSetCallback(cublasLtLoggerCallback_t told)
{
	callback = told;
	return CUBLAS_STATUS_SUCCESS;
}

CKT_LIB_EXPORT cublasStatus_t cublasLtLoggerSetFile(FILE *other)
{
	pthread_mutex_lock(&lock);
	use_file(other, false);
	pthread_mutex_unlock(&lock);
	return CUBLAS_STATUS_SUCCESS;
}

CKT_LIB_EXPORT cublasStatus_t cublasLtLoggerOpenFile(const char *name)
{
	FILE *opened = name ? fopen(name, "we") : NULL;
	if (name && !opened)
		return CUBLAS_STATUS_INVALID_VALUE;
	pthread_mutex_lock(&lock);
	use_file(opened, true);
	pthread_mutex_unlock(&lock);
	return CUBLAS_STATUS_SUCCESS;
}

CKT_LIB_EXPORT cublasStatus_t cublasLtLoggerSetLevel(int level)
{
	if (level < 0 || level > LEVEL_MAX)
		return CUBLAS_STATUS_INVALID_VALUE;
	mask = mask_of_level(level);
	return CUBLAS_STATUS_SUCCESS;
}

CKT_LIB_EXPORT cublasStatus_t cublasLtLoggerSetMask(int bits)
{
	mask = bits & 31;
	return CUBLAS_STATUS_SUCCESS;
}

/* The header's declaration is no prototype. */
CKT_LIB_EXPORT cublasStatus_t cublasLtLoggerForceDisable(void);
CKT_LIB_EXPORT cublasStatus_t cublasLtLoggerForceDisable(void)
{
	disabled = true;
	return CUBLAS_STATUS_SUCCESS;
}
