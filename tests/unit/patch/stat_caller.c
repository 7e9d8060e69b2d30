/* SPDX-License-Identifier: Apache-2.0 */
/* A library that looks at files, by a call and by a pointer. */
#include <sys/stat.h>

int call_stat(const char *path, struct stat *ret_status)
{
	return stat(path, ret_status);
}

int point_stat(const char *path, struct stat *ret_status)
{
	int (*volatile pointer)(const char *, struct stat *) = stat;
	return pointer(path, ret_status);
}
