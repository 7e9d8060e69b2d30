/* SPDX-License-Identifier: Apache-2.0 */
/* See answers.h. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "answers.h"
#include "rpc/control.h"
#include "rpc/net.h"
#include "rpc/session.h"

struct shared_answers *shared_answers;
static char directory[] = "/tmp/ckt-nvml-XXXXXX", address[128];
static FILE *errors;
static int listener, kept_stderr;
static pid_t server;

static void reply_as(enum how how, int fd, uint32_t xid, xdrproc_t xdr, void *res)
{
	uint8_t *bytes;
	size_t size;
	if (ckt_net_encode_reply(xid, 0, xdr, res, &bytes, &size))
		abort();
	switch (how) {
	case CUTS_SHORT:
		size -= 8;
		break;
	case SAYS_NONSENSE:
		memset(bytes + 40, 0xff, size - 40);
		break;
	default:
		break;
	}
	ckt_net_write_record(fd, bytes, size, -1, -1);
	free(bytes);
}

static void reply(int fd, uint32_t xid, xdrproc_t xdr, void *res)
{
	reply_as(atomic_load(&answers.how), fd, xid, xdr, res);
}

static void greet(int fd)
{
	uint32_t flavours[] = {0};
	ckt_greeting greeting = {.protocol = CKT_PROTOCOL_VERSION, .flavours = {1, flavours}};
	uint8_t *bytes;
	size_t size;
	if (ckt_net_encode_call(0, CRICKET_CALLBACK_PROG, CKT_CALLBACK_GREETING,
		    (xdrproc_t)xdr_ckt_greeting, &greeting, &bytes, &size))
		abort();
	ckt_net_write_record(fd, bytes, size, -1, -1);
	free(bytes);
}

static void answer_hello(int fd)
{
	enum { HELLO_XID = 1 };
	ckt_hello_res res = {.status = CKT_HELLO_OK,
		.ckt_hello_res_u.ok = {
			.session = (char *)"", .server = (char *)"", .build = (char *)""}};
	if (answers.how == REFUSES)
		res = (ckt_hello_res){.status = CKT_HELLO_DENIED,
			.ckt_hello_res_u.refused = {
				.message = (char *)"not you", .moved_to = (char *)""}};
	/* Whole in any case; and the test may set anew how to answer as soon as it has this. */
	reply_as(ANSWERS, fd, HELLO_XID, (xdrproc_t)xdr_ckt_hello_res, &res);
}

static void answer_call(int fd, const uint8_t *bytes, size_t size)
{
	struct ckt_cursor c = {.p = bytes, .end = bytes + size};
	struct ckt_call_header header = {0};
	ckt_control_gpu_args gpu = {0};
	if (!ckt_call_header_get(&c, &header))
		return;
	answers.proc = header.proc;
	answers.calls++;
	switch (header.proc) {
	case CKT_CONTROL_DEVICES:
		reply(fd, header.xid, (xdrproc_t)xdr_ckt_control_devices_res, &answers.devices);
		break;
	case CKT_CONTROL_NVML:
		answers.nvml_args = (ckt_control_nvml_args){0};
		ckt_net_decode(&c, (xdrproc_t)xdr_ckt_control_nvml_args, &answers.nvml_args);
		reply(fd, header.xid, (xdrproc_t)xdr_ckt_control_nvml_res, &answers.nvml);
		break;
	case CKT_CONTROL_GPU_USE:
		ckt_net_decode(&c, (xdrproc_t)xdr_ckt_control_gpu_args, &gpu);
		answers.gpu = gpu.gpu;
		reply(fd, header.xid, (xdrproc_t)xdr_ckt_control_gpu_use_res, &answers.use);
		break;
	default:
		break;
	}
}

/* Reads until the client has gone, so that it meets no reset. */
static void serve_one(int fd)
{
	uint8_t *bytes;
	size_t size;
	bool said_hello = false;
	greet(fd);
	while (ckt_net_read_record(fd, CKT_RECORD_MAX, -1, &bytes, &size, NULL) == 0) {
		bool silent = answers.how == SAYS_NOTHING,
		     gone = answers.how == HANGS_UP && said_hello;
		if (!silent && !gone && said_hello)
			answer_call(fd, bytes, size);
		else if (!silent && !gone)
			answer_hello(fd);
		said_hello = true;
		free(bytes);
		if (gone)
			break;
	}
}

static void __attribute__((noreturn)) serve(void)
{
	int fd;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	while ((fd = accept(listener, NULL, NULL)) >= 0) {
		answers.connections++;
		serve_one(fd);
		close(fd);
	}
	_exit(1);
}

static ckt_control_device device(unsigned ordinal, const char *name, const char *pci, uint8_t uuid)
{
	ckt_control_device made = {.ordinal = ordinal,
		.name = (char *)name,
		.pci_bus_id = (char *)pci,
		.major = 9,
		.minor = ordinal,
		.memory_bytes = 1000};
	memset(made.uuid, uuid, sizeof made.uuid);
	return made;
}

void answers_reset(void)
{
	answers.devices_list[0] = device(4, "Later", "0001:2a:00.0", 0xab);
	answers.devices_list[1] = device(2, "Sooner", "0001:1b:00.0", 0xcd);
	answers.devices = (ckt_control_devices_res){
		.cuda_version = 13000, .devices = {2, answers.devices_list}};
	memset(answers.data, 0, sizeof answers.data);
	answers.nvml = (ckt_control_nvml_res){.data = {0, answers.data}, .text = (char *)""};
	answers.use = (ckt_control_gpu_use_res){
		.total_bytes = 1000, .free_bytes = 400, .processes = {0, answers.processes}};
	answers.how = ANSWERS;
	answers.connections = answers.calls = 0;
	answers_forget();
}

void stderr_begin(void)
{
	fflush(stderr);
	errors = tmpfile();
	kept_stderr = dup(STDERR_FILENO);
	dup2(fileno(errors), STDERR_FILENO);
}

const char *stderr_end(void)
{
	static char text[4096];
	fflush(stderr);
	dup2(kept_stderr, STDERR_FILENO);
	close(kept_stderr);
	ssize_t n = pread(fileno(errors), text, sizeof text - 1, 0);
	fclose(errors);
	text[n > 0 ? n : 0] = 0;
	return text;
}

int unit_setup(int argc, char **argv)
{
	struct sockaddr_un name = {.sun_family = AF_UNIX};
	(void)argc, (void)argv;
	shared_answers = mmap(NULL, sizeof *shared_answers, PROT_READ | PROT_WRITE,
		MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared_answers == MAP_FAILED || !mkdtemp(directory))
		return 2;
	snprintf(name.sun_path, sizeof name.sun_path, "%s/s", directory);
	snprintf(address, sizeof address, "unix:%s", name.sun_path);
	listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (bind(listener, (struct sockaddr *)&name, sizeof name) || listen(listener, 16) ||
		(server = fork()) < 0)
		return 2;
	if (server == 0)
		serve();
	setenv("REMOTE_GPU_ADDRESS", address, 1);
	unsetenv("CRICKET_TOKEN_FILE");
	setenv("CRICKET_LOG", "warning", 1);
	return 0;
}

void unit_teardown(int status)
{
	(void)status;
	kill(server, SIGKILL);
	waitpid(server, NULL, 0);
	close(listener);
	munmap(shared_answers, sizeof *shared_answers);
	unlink(address + 5);
	rmdir(directory);
}
