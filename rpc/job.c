/* SPDX-License-Identifier: Apache-2.0 */
/* Names of jobs; see job.h. */
#include "rpc/job.h"

#include <string.h>

#define ALPHANUMERIC "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"

bool ckt_job_name_good(const char *name)
{
	size_t length = strlen(name);
	return length && length <= CKT_JOB_NAME_MAX && strspn(name, ALPHANUMERIC) > 0 &&
		strspn(name, ALPHANUMERIC "._:-") == length;
}

const char *ckt_job_of_capability(const char *name)
{
	size_t length = strlen(CKT_JOB_CAPABILITY);
	return strncmp(name, CKT_JOB_CAPABILITY, length) == 0 && ckt_job_name_good(name + length)
		? name + length
		: NULL;
}
