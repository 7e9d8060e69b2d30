/* SPDX-License-Identifier: Apache-2.0 */
/* See inside.h. */
#include "base/log.h"
#include "checkpoint/format/store.h"
#include "ctl/cleanup.h"
#include "ctl/command.h"
#include "inside.h"
#include "rpc/control.h"
#include "rpc/net.h"
#include "rpc/session.h"
#include "rpc/wire.h"

#include <fcntl.h>
#include <pthread.h>
#include <rpc/rpc.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

char directory[64], address[96], out[8192], err[8192];
struct reply replies[96];
struct seen seen[64];
_Atomic unsigned seen_count;
ckt_hello_status hello_status;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void reply(int fd, uint32_t xid, xdrproc_t xdr, void *res)
{
	uint8_t *data;
	size_t size;
	if (ckt_net_encode_reply(xid, 0, xdr, res, &data, &size))
		abort();
	ckt_net_write_record(fd, data, size, -1, -1);
	free(data);
}

static bool answer(int fd, const uint8_t *data, size_t size, int passed)
{
	struct ckt_cursor c = {.p = data, .end = data + size};
	struct ckt_call_header header = {0};
	static ckt_control_result good = {CKT_CONTROL_OK, (char *)""};
	if (!ckt_call_header_get(&c, &header) || header.proc >= COUNT(replies))
		return false;
	pthread_mutex_lock(&lock);
	if (seen_count < COUNT(seen)) {
		struct seen *s = &seen[seen_count];
		*s = (struct seen){
			.proc = header.proc, .fd = passed >= 0, .size = (size_t)(c.end - c.p)};
		if (s->size > sizeof s->args)
			s->size = sizeof s->args;
		memcpy(s->args, c.p, s->size);
		seen_count++;
	}
	struct reply *r = &replies[header.proc];
	xdrproc_t xdr = r->xdr ? r->xdr : (xdrproc_t)xdr_ckt_control_result;
	void *res = r->xdr ? r->res : &good;
	bool open = !r->answer || r->answer(&c, passed, &xdr, &res);
	if (open)
		reply(fd, header.xid, xdr, res);
	pthread_mutex_unlock(&lock);
	return open;
}

static void *serve(void *opaque)
{
	int fd = (int)(intptr_t)opaque, passed;
	uint8_t *data;
	size_t size;
	uint32_t flavours[] = {CKT_AUTH_NONE};
	ckt_greeting greeting = {.protocol = CKT_PROTOCOL_VERSION, .flavours = {1, flavours}};
	if (ckt_net_encode_call(0, CRICKET_CALLBACK_PROG, CKT_CALLBACK_GREETING,
		    (xdrproc_t)xdr_ckt_greeting, &greeting, &data, &size))
		abort();
	ckt_net_write_record(fd, data, size, -1, -1);
	free(data);
	if (!ckt_net_read_record(fd, CKT_HELLO_MAX, -1, &data, &size, NULL)) {
		ckt_hello_res res = {.status = hello_status};
		free(data);
		if (hello_status == CKT_HELLO_OK)
			res.ckt_hello_res_u.ok = (ckt_hello_ok){.protocol = CKT_PROTOCOL_VERSION,
				.session = (char *)"",
				.server = (char *)"here",
				.build = (char *)"test"};
		else
			res.ckt_hello_res_u.refused.message = (char *)"not you",
			res.ckt_hello_res_u.refused.moved_to = (char *)"";
		reply(fd, 1, (xdrproc_t)xdr_ckt_hello_res, &res);
		while (hello_status == CKT_HELLO_OK &&
			!ckt_net_read_record(fd, CKT_RECORD_MAX, -1, &data, &size, &passed)) {
			bool open = answer(fd, data, size, passed);
			free(data);
			if (passed >= 0)
				close(passed);
			if (!open)
				break;
		}
	}
	close(fd);
	return NULL;
}

static void *accept_all(void *opaque)
{
	pthread_t thread;
	for (int fd; (fd = accept((int)(intptr_t)opaque, NULL, NULL)) >= 0;)
		if (pthread_create(&thread, NULL, serve, (void *)(intptr_t)fd) == 0)
			pthread_detach(thread);
	return NULL;
}

/*
 * `--interrupted PATH SIGNAL REGISTERED`: a cricketctl that is making a directory, or is done with
 * it, and gets the signal.
 */
static void interrupted(const char *path, int number, bool registered)
{
	char other[300];
	snprintf(other, sizeof other, "%s-too", path);
	ckt_ctl_cleanup_add(path);
	ckt_ctl_cleanup_add(other);
	if (!registered)
		ckt_ctl_cleanup_drop(path);
	kill(getpid(), number);
	sleep(10);
	_exit(0);
}

int unit_setup(int argc, char **argv)
{
	struct ckt_address here = {.type = CKT_ADDRESS_UNIX};
	char message[256];
	pthread_t thread;
	int fd;
	if (argc == 5 && !strcmp(argv[1], "--interrupted"))
		interrupted(argv[2], atoi(argv[3]), atoi(argv[4]));
	snprintf(directory, sizeof directory, "/tmp/ckt-ctl-XXXXXX");
	if (!mkdtemp(directory))
		return 2;
	snprintf(here.host, sizeof here.host, "%s/socket", directory);
	snprintf(address, sizeof address, "unix:%s/socket", directory);
	ckt_log_init("test", CKT_LOG_ERROR, NULL);
	unsetenv("CRICKET_TOKEN_FILE");
	/* ckt_net_listen's are not blocking. */
	if (ckt_net_listen(&here, 0600, &fd, message, sizeof message) || fcntl(fd, F_SETFL, 0))
		return 2;
	return pthread_create(&thread, NULL, accept_all, (void *)(intptr_t)fd) ||
			pthread_detach(thread)
		? 2
		: 0;
}

void unit_teardown(int status)
{
	char command[128];
	(void)status;
	snprintf(command, sizeof command, "rm -rf '%s'", directory);
	if (system(command))
		fprintf(stderr, "%s is left\n", directory);
}

void begin(void)
{
	pthread_mutex_lock(&lock);
	memset(replies, 0, sizeof replies);
	seen_count = 0;
	hello_status = CKT_HELLO_OK;
	pthread_mutex_unlock(&lock);
}

static int divert(int fd, FILE *stream, int *ret_kept)
{
	int file = memfd_create("said", MFD_CLOEXEC);
	fflush(stream);
	*ret_kept = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	dup2(file, fd);
	return file;
}

static void take_back(int fd, FILE *stream, int kept, int file, char *ret_text, size_t size)
{
	fflush(stream);
	dup2(kept, fd);
	close(kept);
	ssize_t n = pread(file, ret_text, size - 1, 0);
	ret_text[n > 0 ? n : 0] = 0;
	close(file);
}

int run(int (*command)(const struct ckt_ctl_args *args), struct ckt_ctl_args args, ...)
{
	static char *words[16];
	va_list list;
	int kept_out, kept_err;
	va_start(list, args);
	args.word_count = 0;
	while ((words[args.word_count] = va_arg(list, char *)))
		args.word_count++;
	va_end(list);
	args.words = words;
	if (!args.command)
		args.command = "test";
	if (!args.server)
		args.server = address;
	int file_out = divert(STDOUT_FILENO, stdout, &kept_out),
	    file_err = divert(STDERR_FILENO, stderr, &kept_err);
	int status = command(&args);
	take_back(STDOUT_FILENO, stdout, kept_out, file_out, out, sizeof out);
	take_back(STDERR_FILENO, stderr, kept_err, file_err, err, sizeof err);
	return status;
}

void calls_are(const uint32_t *procs, unsigned count)
{
	IS(seen_count, count);
	for (unsigned i = 0; i < count && i < seen_count; i++)
		IS(seen[i].proc, procs[i]);
}

bool decode(unsigned call, xdrproc_t xdr, void *ret_args)
{
	struct ckt_cursor c = {.p = seen[call].args, .end = seen[call].args + seen[call].size};
	return call < seen_count && ckt_net_decode(&c, xdr, ret_args) == 0;
}

/* ---- Files */

char *path_in(const char *name)
{
	static char paths[8][256];
	static unsigned next;
	char *path = paths[next++ % 8];
	snprintf(path, sizeof paths[0], "%s/%s", directory, name);
	return path;
}

void write_file(const char *path, const char *text)
{
	FILE *file = fopen(path, "w");
	CU_ASSERT_PTR_NOT_NULL_FATAL(file);
	fputs(text, file);
	fclose(file);
}

const char *read_file(const char *path)
{
	static char text[4096];
	FILE *file = fopen(path, "r");
	text[0] = 0;
	if (file) {
		text[fread(text, 1, sizeof text - 1, file)] = 0;
		fclose(file);
	}
	return text;
}

bool exists(const char *path)
{
	struct stat st;
	return lstat(path, &st) == 0;
}

void image_in(int dir_fd, uint8_t id, const char *ancestors)
{
	static ckt_image_ancestor list[CKT_IMAGE_ANCESTORS];
	static ckt_image_device device = {.name = (char *)"GPU"};
	char message[256];
	ckt_image image = {.session = (char *)"0123456789ab",
		.program_name = (char *)"p",
		.client = (char *)"",
		.build = (char *)"test",
		.owner_name = (char *)"",
		.owner_project = (char *)"",
		.window_base = (uint64_t)2 << 44,
		.window_bytes = (uint64_t)4 << 40,
		.slice_bytes = (uint64_t)4 << 40,
		.devices = {1, &device}};
	memset(image.id, id, sizeof image.id);
	image.ancestors.ancestors_val = list;
	for (; *ancestors; ancestors++)
		memset(list[image.ancestors.ancestors_len++].id, *ancestors, CKT_IMAGE_ID);
	IS(ckt_image_write(dir_fd, &image, message, sizeof message), 0);
}

void image_make(const char *path, uint8_t id, const char *ancestors)
{
	mkdir(path, 0700);
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	image_in(fd, id, ancestors);
	close(fd);
}
