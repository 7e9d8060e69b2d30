/* server/daemon/libraries.c: what workers are told of where libraries lie, and which --library-path is none. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "inside.h"

static struct ckt_server fresh;

static const char *variable(const char *name)
{
	size_t length = strlen(name);
	for (unsigned i = 0; i < fresh.library_variable_count; i++)
		if (!strncmp(fresh.library_variables[i], name, length) && fresh.library_variables[i][length] == '=')
			return fresh.library_variables[i] + length + 1;
	return "(none)";
}

static int init(const char *path, char message[512])
{
	ckt_libraries_fini(&fresh);
	fresh.options.library_path = (char *)path;
	*message = 0;
	return ckt_libraries_init(&fresh, message, 512);
}

static void test_told(void)
{
	char message[512], owner[16], two[1024];
	snprintf(owner, sizeof owner, "%u", geteuid());
	snprintf(fresh.driver.path, sizeof fresh.driver.path, "/usr/lib/libcuda.so.1");
	setenv("CUDA_HOME", "/opt/cuda-x", 1);
	setenv("VIRTUAL_ENV", "relative", 1);
	setenv("HOME", "/home/operator", 1);
	IS(init(NULL, message), 0);
	TEXT(variable("CRICKET_LIBRARY_OWNER"), owner);
	TEXT(variable("CRICKET_LIBRARY_PATH"), "(none)");
	TEXT(variable("CRICKET_LIBRARY_SOFT"), "(none)");
	HAS(variable("CRICKET_LIBRARY_ROOTS"), "/opt/cuda-x");
	HAS(variable("CRICKET_LIBRARY_ROOTS"), "/home/operator/.local");
	CU_ASSERT_PTR_NULL(strstr(variable("CRICKET_LIBRARY_ROOTS"), "relative"));
	fresh.driver.soft = true;
	IS(mkdir(path_in("libs-a"), 0755), 0);
	IS(mkdir(path_in("libs-b"), 0755), 0);
	snprintf(two, sizeof two, "%s:", path_in("libs-a"));
	strcat(two, path_in("libs-b"));
	IS(init(two, message), 0);
	TEXT(variable("CRICKET_LIBRARY_PATH"), two);
	TEXT(variable("CRICKET_LIBRARY_SOFT"), "/usr/lib:/usr/lib/libs");
	ckt_libraries_fini(&fresh);
	IS(fresh.library_variable_count, 0);
}

static void test_refused(void)
{
	char message[512];
	IS(init("/nowhere/at/all", message), -EINVAL);
	HAS(message, "--library-path: '/nowhere/at/all': No such file or directory");
	write_file(path_in("libs-file"), "x", 0644);
	IS(init(path_in("libs-file"), message), -EINVAL);
	HAS(message, "Not a directory");
	IS(mkdir(path_in("libs-open"), 0755), 0);
	IS(chmod(path_in("libs-open"), 0777), 0);
	IS(init(path_in("libs-open"), message), -EINVAL);
	HAS(message, "others may write");
	IS(chmod(path_in("libs-open"), 0755), 0);
	IS(init(path_in("libs-open"), message), 0);
	if (geteuid() == 0) {
		IS(chown(path_in("libs-open"), 4242, 4242), 0);
		IS(init(path_in("libs-open"), message), -EINVAL);
		HAS(message, "belongs to user 4242");
	}
	ckt_libraries_fini(&fresh);
}

UNIT_SUITE(libraries, {"told", test_told}, {"refused", test_refused})
