/* SPDX-License-Identifier: Apache-2.0 */
/* ctl/cdi.c: cricketctl cdi: what a container is given, and what it must not be given. */
#include <jansson.h>
#include <rpc/rpc.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "ctl/command.h"
#include "ctl/subcommands.h"
#include "inside.h"
#include "rpc/control.h"

static ckt_control_gpu gpus[] = {
	{.ordinal = 3, .name = (char *)"X"}, {.ordinal = 5, .name = (char *)"Y"}};
static ckt_control_info_res info = {.build = (char *)"1.2",
	.host = (char *)"host",
	.driver = (char *)"",
	.socket = (char *)"",
	.gpus = {2, gpus}};

static void prepare(void)
{
	begin();
	replies[CKT_CONTROL_INFO] =
		(struct reply){(xdrproc_t)xdr_ckt_control_info_res, &info, NULL};
	mkdir(path_in("lib"), 0755);
	write_file(path_in("lib/libcricket-client.so"), "");
	setenv("CRICKET_LIBDIR", path_in("lib"), 1);
}

/* The value of a variable among edits; NULL: not set. */
static const char *variable(const json_t *edits, const char *name)
{
	size_t i;
	json_t *entry;
	json_array_foreach(json_object_get(edits, "env"), i, entry)
	{
		const char *text = json_string_value(entry);
		if (strncmp(text, name, strlen(name)) == 0 && text[strlen(name)] == '=')
			return text + strlen(name) + 1;
	}
	return NULL;
}

/* What is mounted there; all must be read-only. */
static const char *mounted(const json_t *value, const char *place)
{
	size_t i;
	json_t *mount;
	const char *found = NULL;
	json_array_foreach(
		json_object_get(json_object_get(value, "containerEdits"), "mounts"), i, mount)
	{
		TEXT(json_string_value(json_array_get(json_object_get(mount, "options"), 0)), "ro");
		if (strcmp(json_string_value(json_object_get(mount, "containerPath")), place) == 0)
			found = json_string_value(json_object_get(mount, "hostPath"));
	}
	return found;
}

static void check(const json_t *value)
{
	json_t *devices = json_object_get(value, "devices");
	TEXT(json_string_value(json_object_get(value, "cdiVersion")), "0.5.0");
	TEXT(json_string_value(json_object_get(value, "kind")), "cricket/gpu");
	IS(json_array_size(devices), 3);
	static const char *const names[] = {"0", "1", "all"}, *const visible[] = {"0", "1", NULL};
	for (size_t i = 0; i < 3; i++) {
		const json_t *device = json_array_get(devices, i);
		const json_t *edits = json_object_get(device, "containerEdits");
		TEXT(json_string_value(json_object_get(device, "name")), names[i]);
		HAS(variable(edits, "REMOTE_GPU_ADDRESS"), "unix:/run/cricket/");
		const char *gpu = variable(edits, "CUDA_VISIBLE_DEVICES");
		IS(gpu != NULL, visible[i] != NULL);
		if (gpu && visible[i])
			TEXT(gpu, visible[i]);
	}
	const json_t *edits = json_object_get(value, "containerEdits");
	HAS(variable(edits, "LD_PRELOAD"), "/usr/lib/cricket/libcricket-client.so:");
	HAS(variable(edits, "LD_AUDIT"), "/usr/lib/cricket/libcricket-audit.so");
	CU_ASSERT_PTR_NULL(variable(edits, "CRICKET_TOKEN_FILE"));
	CU_ASSERT_PTR_NULL(variable(edits, "LD_LIBRARY_PATH"));
	TEXT(mounted(value, "/usr/lib/cricket"), path_in("lib"));
	CU_ASSERT_PTR_NULL(mounted(value, "/run/cricket-token"));
	TEXT(mounted(value, "/run/cricket"), directory);
}

static void test_socket(void)
{
	prepare();
	/* A token is for TCP: the kernel names the user of a socket. */
	write_file(path_in("token"), "secret");
	setenv("CRICKET_TOKEN_FILE", path_in("token"), 1);
	IS(run(ckt_ctl_cdi, (struct ckt_ctl_args){0}, NULL), CKT_EXIT_DONE);
	unsetenv("CRICKET_TOKEN_FILE");
	json_t *value = json_loads(out, 0, NULL);
	CU_ASSERT_PTR_NOT_NULL_FATAL(value);
	check(value);
	json_decref(value);
	CU_ASSERT_PTR_NULL(strstr(out, "secret"));
}

static void test_file(void)
{
	struct stat status;
	prepare();
	IS(run(ckt_ctl_cdi, (struct ckt_ctl_args){.output = path_in("cricket.json")}, NULL),
		CKT_EXIT_DONE);
	TEXT(out, "");
	json_t *value = json_load_file(path_in("cricket.json"), 0, NULL);
	CU_ASSERT_PTR_NOT_NULL_FATAL(value);
	check(value);
	json_decref(value);
	IS(stat(path_in("cricket.json"), &status), 0);
	IS(status.st_mode & 0777, 0644);
	/* Nothing is left where the file cannot be made, and its cause is said. */
	IS(run(ckt_ctl_cdi, (struct ckt_ctl_args){.output = "/nowhere/cricket.json"}, NULL),
		CKT_EXIT_REFUSED);
	HAS(err, "/nowhere/cricket.json: No such file or directory");
	IS(run(ckt_ctl_cdi, (struct ckt_ctl_args){.output = directory}, NULL), CKT_EXIT_REFUSED);
}

static void test_refused(void)
{
	prepare();
	setenv("CRICKET_LIBDIR", "/nowhere", 1);
	IS(run(ckt_ctl_cdi, (struct ckt_ctl_args){0}, NULL), CKT_EXIT_REFUSED);
	HAS(err, "CRICKET_LIBDIR");
	TEXT(out, "");
	prepare();
	IS(run(ckt_ctl_cdi, (struct ckt_ctl_args){.server = "unix:/nowhere"}, NULL),
		CKT_EXIT_NO_SERVER);
	/* The whole of /tmp is no way to a server. */
	char link_path[64], text[80];
	snprintf(link_path, sizeof link_path, "/tmp/cricket-cdi-%d", (int)getpid());
	snprintf(text, sizeof text, "unix:%s", link_path);
	IS(link(address + strlen("unix:"), link_path), 0);
	IS(run(ckt_ctl_cdi, (struct ckt_ctl_args){.server = text}, NULL), CKT_EXIT_REFUSED);
	HAS(err, "--socket in a directory of its own");
	TEXT(out, "");
	unlink(link_path);
	/* JSON cannot hold such a name. */
	IS(link(address + strlen("unix:"), path_in("s\xff")), 0);
	snprintf(text, sizeof text, "unix:%s", path_in("s\xff"));
	IS(run(ckt_ctl_cdi, (struct ckt_ctl_args){.server = text}, NULL), CKT_EXIT_REFUSED);
	HAS(err, "not UTF-8");
	TEXT(out, "");
	/* A container does not see a file that names the address. */
	write_file(path_in("address"), address);
	snprintf(text, sizeof text, "file:%s", path_in("address"));
	IS(run(ckt_ctl_cdi, (struct ckt_ctl_args){.server = text}, NULL), CKT_EXIT_USAGE);
	HAS(err, "give the address that it holds");
	unsetenv("CRICKET_LIBDIR");
}

UNIT_SUITE(cdi, {"socket", test_socket}, {"file", test_file}, {"refused", test_refused})
