/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cricketctl cdi: a specification of the Container Device Interface, by which Docker, Podman and
 * containerd give a container the client libraries and the way to a server.
 *
 *	containerEdits		what each device brings: mounts of the libraries and of the way to the
 *				server, and the variables that cricket-run sets
 *	devices "0", "1", ...	one GPU of the server's each
 *	device "all"		all of them
 *
 * Places in the container are always the same, so that they hold no space or colon, which LD_PRELOAD
 * could not name.
 */
#include <errno.h>
#include <jansson.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ctl/command.h"
#include "ctl/doctor/doctor.h"
#include "ctl/files.h"
#include "ctl/print.h"
#include "ctl/server.h"
#include "ctl/subcommands.h"
#include "rpc/control.h"
#include "rpc/net.h"

#define CDI_VERSION "0.5.0" /* the oldest that has all we write; Podman 4.3 knows no newer one */
#define LIBRARIES "/usr/lib/cricket"
#define RUN_PROGRAM "/usr/bin/cricket-run"
#define SOCKETS "/run/cricket"
#define TOKEN "/run/cricket-token"

enum { TIMEOUT_MS = 10000 };

struct cdi {
	char libraries[PATH_MAX];                /* the directory on this host */
	char address[CKT_ADDRESS_TEXT_MAX + 32]; /* as the container names the server */
	json_t *mounts;                          /* owned by the specification, once it is made */
};

/* Read-only: a socket can still be connected to. */
static void add_mount(struct cdi *cdi, const char *host, const char *container)
{
	json_array_append_new(cdi->mounts,
		json_pack("{s:o, s:s, s:[s, s, s, s]}", "hostPath", ckt_ctl_json_text(host),
			"containerPath", container, "options", "ro", "nosuid", "nodev", "bind"));
}

static int add_libraries(struct cdi *cdi)
{
	char program[PATH_MAX + sizeof "/../../bin/cricket-run"], resolved[PATH_MAX];
	if (!ckt_ctl_doctor_find_library(cdi->libraries)) {
		fprintf(stderr,
			"cricketctl: libcricket-client.so is not in its directory: install "
			"the client on this host, or name the directory in CRICKET_LIBDIR\n");
		return CKT_EXIT_REFUSED;
	}
	*strrchr(cdi->libraries, '/') = 0;
	add_mount(cdi, cdi->libraries, LIBRARIES);
	snprintf(program, sizeof program, "%s/../../bin/cricket-run", cdi->libraries);
	if (realpath(program, resolved) && access(resolved, X_OK) == 0)
		add_mount(cdi, resolved, RUN_PROGRAM);
	return CKT_EXIT_DONE;
}

/* Whether a directory holds more than a server's sockets, so that a container must not see it. */
static bool is_shared(const char *directory)
{
	static const char *const shared[] = {"", "/tmp", "/run", "/var/run", "/var/tmp", "/dev/shm",
		"/home", "/root", "/etc", "/var"};
	for (size_t i = 0; i < sizeof shared / sizeof *shared; i++)
		if (strcmp(directory, shared[i]) == 0)
			return true;
	return false;
}

/* The directory, not the socket: a server that starts again makes a new socket. */
static int add_socket(struct cdi *cdi, const char *path)
{
	char directory[PATH_MAX];
	if (!realpath(path, directory))
		return ckt_ctl_refuse(path, strerror(errno));
	const char *name = strrchr(path, '/') + 1;
	*strrchr(directory, '/') = 0;
	if (is_shared(directory)) {
		fprintf(stderr,
			"cricketctl: the server's socket is in %s/, which containers would see: start "
			"the server with --socket in a directory of its own\n",
			directory);
		return CKT_EXIT_REFUSED;
	}
	add_mount(cdi, directory, SOCKETS);
	snprintf(cdi->address, sizeof cdi->address, "unix:" SOCKETS "/%s", name);
	return CKT_EXIT_DONE;
}

static int add_token(struct cdi *cdi, const char *token)
{
	char resolved[PATH_MAX];
	if (!realpath(token, resolved))
		return ckt_ctl_refuse(token, strerror(errno));
	add_mount(cdi, resolved, TOKEN);
	fprintf(stderr, "cricketctl: containers with this device can read the token in %s\n",
		resolved);
	return CKT_EXIT_DONE;
}

/* server_text: the address that answered.  ret_token: whether the container has a token. */
static int add_server(struct cdi *cdi, const char *server_text, bool *ret_token)
{
	struct ckt_address address;
	char problem[512];
	const char *token = getenv("CRICKET_TOKEN_FILE");
	*ret_token = false;
	if (ckt_address_parse(server_text, &address, problem, sizeof problem)) {
		fprintf(stderr, "cricketctl: %s\n", problem);
		return CKT_EXIT_USAGE;
	}
	if (address.type == CKT_ADDRESS_UNIX)
		return add_socket(cdi, address.host);
	if (address.type == CKT_ADDRESS_FILE) {
		fprintf(stderr,
			"cricketctl: %s: a container does not see this file; give the "
			"address that it holds\n",
			server_text);
		return CKT_EXIT_USAGE;
	}
	if (strncmp(address.host, "127.", 4) == 0 || strcmp(address.host, "localhost") == 0 ||
		strcmp(address.host, "::1") == 0)
		fprintf(stderr,
			"cricketctl: %s is the container itself, unless it has the host's "
			"network: give another address of the server, or its socket\n",
			address.host);
	snprintf(cdi->address, sizeof cdi->address, "%s", server_text);
	*ret_token = token && *token;
	return *ret_token ? add_token(cdi, token) : CKT_EXIT_DONE;
}

static json_t *device(const struct cdi *cdi, const char *name, int gpu)
{
	json_t *environment = json_array();
	json_array_append_new(environment, json_sprintf("REMOTE_GPU_ADDRESS=%s", cdi->address));
	if (gpu >= 0)
		json_array_append_new(environment, json_sprintf("CUDA_VISIBLE_DEVICES=%d", gpu));
	return json_pack("{s:s, s:{s:o}}", "name", name, "containerEdits", "env", environment);
}

/* What cricket-run sets, but for LD_LIBRARY_PATH: the image's own would be lost. */
static json_t *edits(const struct cdi *cdi, bool token)
{
	json_t *environment = json_pack("[s, s, s]",
		"LD_PRELOAD=" LIBRARIES "/libcricket-client.so:" LIBRARIES
		"/libcudart.so.13:" LIBRARIES "/libcuda.so.1:" LIBRARIES "/libnvidia-ml.so.1",
		"LD_AUDIT=" LIBRARIES "/libcricket-audit.so", "TRITON_LIBCUDA_PATH=" LIBRARIES);
	if (token)
		json_array_append_new(environment, json_string("CRICKET_TOKEN_FILE=" TOKEN));
	return json_pack("{s:o, s:O}", "env", environment, "mounts", cdi->mounts);
}

static json_t *specification(const struct cdi *cdi, unsigned gpus, bool token)
{
	json_t *devices = json_array();
	char name[16];
	for (unsigned i = 0; i < gpus; i++) {
		snprintf(name, sizeof name, "%u", i);
		json_array_append_new(devices, device(cdi, name, (int)i));
	}
	json_array_append_new(devices, device(cdi, "all", -1));
	return json_pack("{s:s, s:s, s:o, s:o}", "cdiVersion", CDI_VERSION, "kind", "cricket/gpu",
		"devices", devices, "containerEdits", edits(cdi, token));
}

/* Container engines read the directory at any time: the file has its name once it is whole. */
static int write_output(const json_t *value, const char *path)
{
	char temporary[PATH_MAX];
	if (snprintf(temporary, sizeof temporary, "%s.XXXXXX", path) >= (int)sizeof temporary)
		return ckt_ctl_refuse(path, "the path is too long");
	int fd = mkstemp(temporary);
	if (fd < 0)
		return ckt_ctl_refuse(path, strerror(errno));
	bool done = fchmod(fd, 0644) == 0 && json_dumpfd(value, fd, JSON_INDENT(2)) == 0 &&
		write(fd, "\n", 1) == 1 && fsync(fd) == 0 && rename(temporary, path) == 0;
	int error = errno;
	close(fd);
	if (!done) {
		unlink(temporary);
		return ckt_ctl_refuse(path, strerror(error));
	}
	return CKT_EXIT_DONE;
}

static int print_output(const json_t *value)
{
	int failed = json_dumpf(value, stdout, JSON_INDENT(2));
	printf("\n");
	return failed ? CKT_EXIT_REFUSED : ckt_ctl_flush();
}

static int describe(struct cdi *cdi, const struct ckt_ctl_args *args, struct ckt_ctl_server *server)
{
	ckt_control_info_res info = {0};
	bool token = false;
	int status = ckt_ctl_call(server, CKT_CONTROL_INFO, NULL, NULL,
		(xdrproc_t)xdr_ckt_control_info_res, &info, TIMEOUT_MS, -1);
	unsigned gpus = info.gpus.gpus_len;
	xdr_free((xdrproc_t)xdr_ckt_control_info_res, (char *)&info);
	if (status == CKT_EXIT_DONE)
		status = add_libraries(cdi);
	if (status == CKT_EXIT_DONE)
		status = add_server(cdi, server->address, &token);
	if (status != CKT_EXIT_DONE)
		return status;
	/* JSON holds UTF-8, and a path may be other bytes. */
	json_t *text = json_string(cdi->address), *value = NULL;
	if (text)
		value = specification(cdi, gpus, token);
	json_decref(text);
	if (!value)
		return ckt_ctl_refuse(
			server->address, "the address is not UTF-8; use another path");
	status = args->output ? write_output(value, args->output) : print_output(value);
	json_decref(value);
	return status;
}

int ckt_ctl_cdi(const struct ckt_ctl_args *args)
{
	struct cdi cdi = {0};
	struct ckt_ctl_server server;
	int status = ckt_ctl_connect(args, &server);
	if (status != CKT_EXIT_DONE)
		return status;
	cdi.mounts = json_array();
	status = describe(&cdi, args, &server);
	json_decref(cdi.mounts);
	ckt_ctl_disconnect(&server);
	return status;
}
