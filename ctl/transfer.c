/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Images between this host and a server that a descriptor cannot reach: the files go in pieces over
 * several connections at once.
 *
 * Threading: a thread for each connection; they share a cursor over the pieces of all files.
 */
#include "ctl/transfer.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <dirent.h>
#include <unistd.h>

#include "base/fault_point.h"
#include "ctl/command.h"
#include "ctl/files.h"
#include "ctl/progress.h"
#include "ctl/server.h"
#include "rpc/control.h"
#include "rpc/net.h"

enum { CONNECTIONS = 4, ANSWER_MS = 60000 };

struct file {
	char name[CKT_CONTROL_NAME_MAX + 1];
	uint64_t bytes;
};

struct transfer {
	const struct ckt_ctl_args *args;
	const char *address, *stage;
	int dir_fd;
	bool to_server;
	struct file *files;
	unsigned count;
	pthread_mutex_t lock;
	unsigned at; /* file and offset of the next piece */
	uint64_t offset;
	int error; /* the first */
	struct ckt_ctl_progress *progress;
};

bool ckt_ctl_name_good(const char *name)
{
	size_t length = strlen(name);
	return length && length <= CKT_CONTROL_NAME_MAX &&
		strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-") == length;
}

/* The next piece, or false at the end. An empty file has one piece, so that it comes to be. */
static bool next_piece(struct transfer *transfer, struct file **ret_file, uint64_t *ret_offset,
	uint32_t *ret_bytes)
{
	pthread_mutex_lock(&transfer->lock);
	bool found = !transfer->error && transfer->at < transfer->count;
	if (found) {
		struct file *file = &transfer->files[transfer->at];
		uint64_t left = file->bytes - transfer->offset;
		*ret_file = file;
		*ret_offset = transfer->offset;
		*ret_bytes = left > CKT_CONTROL_DATA_MAX ? CKT_CONTROL_DATA_MAX : (uint32_t)left;
		transfer->offset += *ret_bytes;
		if (transfer->offset >= file->bytes) {
			transfer->at++;
			transfer->offset = 0;
		}
	}
	pthread_mutex_unlock(&transfer->lock);
	return found;
}

static void fail(struct transfer *transfer, int error)
{
	pthread_mutex_lock(&transfer->lock);
	if (!transfer->error)
		transfer->error = error;
	pthread_mutex_unlock(&transfer->lock);
}

static int move_bytes(int fd, char *data, size_t size, uint64_t offset, bool write)
{
	while (size) {
		ssize_t n = write ? pwrite(fd, data, size, (off_t)offset)
				  : pread(fd, data, size, (off_t)offset);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n ? -errno : -EIO;
		data += n;
		size -= (size_t)n;
		offset += (uint64_t)n;
	}
	return 0;
}

static int fetch_piece(struct transfer *transfer, struct ckt_ctl_server *server, struct file *file,
	uint64_t offset, uint32_t bytes)
{
	ckt_control_read_args args = {.file = file->name, .offset = offset, .bytes = bytes};
	ckt_control_read_res res = {0};
	int result = ckt_net_call(server->fd, CRICKET_CONTROL_PROG, CKT_CONTROL_READ,
		(xdrproc_t)xdr_ckt_control_read_args, &args, (xdrproc_t)xdr_ckt_control_read_res,
		&res, ckt_net_now_ms() + ANSWER_MS, -1);
	if (result)
		return result;
	result = res.status                  ? (res.status < 0 ? res.status : -EPROTO)
		: res.data.data_len != bytes ? -EPROTO
					     : 0;
	int fd = result ? -1
			: openat(transfer->dir_fd, file->name,
				  O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (!result && fd < 0)
		result = -errno;
	if (!result)
		result = move_bytes(fd, res.data.data_val, bytes, offset, true);
	if (fd >= 0)
		close(fd);
	xdr_free((xdrproc_t)xdr_ckt_control_read_res, (char *)&res);
	ckt_fault(CKT_FAULT_CTL_FETCH);
	return result;
}

static int send_piece(struct transfer *transfer, struct ckt_ctl_server *server, struct file *file,
	uint64_t offset, uint32_t bytes, char *buffer)
{
	ckt_control_write_args args = {
		.file = file->name, .offset = offset, .data = {bytes, buffer}};
	int status = 0,
	    fd = openat(transfer->dir_fd, file->name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	int result = fd < 0 ? -errno : move_bytes(fd, buffer, bytes, offset, false);
	if (fd >= 0)
		close(fd);
	if (!result)
		result = ckt_net_call(server->fd, CRICKET_CONTROL_PROG, CKT_CONTROL_WRITE,
			(xdrproc_t)xdr_ckt_control_write_args, &args, (xdrproc_t)xdr_int, &status,
			ckt_net_now_ms() + ANSWER_MS, -1);
	ckt_fault(CKT_FAULT_CTL_SEND);
	return result ? result : status > 0 ? -EPROTO : status;
}

/* A further connection of ours to the same server, for the files of the stage alone. */
static int open_data(struct transfer *transfer, struct ckt_ctl_server *ret_server)
{
	struct ckt_ctl_args args = *transfer->args;
	char message[1200];
	ckt_control_stage_args stage = {.stage = (char *)transfer->stage};
	ckt_control_result answer = {0};
	args.server = transfer->address;
	if (ckt_ctl_try_connect(&args, ret_server, message, sizeof message) != CKT_EXIT_DONE)
		return -ECONNREFUSED;
	int result = ckt_net_call(ret_server->fd, CRICKET_CONTROL_PROG, CKT_CONTROL_STAGE_DATA,
		(xdrproc_t)xdr_ckt_control_stage_args, &stage, (xdrproc_t)xdr_ckt_control_result,
		&answer, ckt_net_now_ms() + ANSWER_MS, -1);
	if (!result && answer.status != CKT_CONTROL_OK)
		result = -ENOENT;
	xdr_free((xdrproc_t)xdr_ckt_control_result, (char *)&answer);
	if (result)
		ckt_ctl_disconnect(ret_server);
	return result;
}

static void *transfer_thread(void *opaque)
{
	struct transfer *transfer = opaque;
	struct ckt_ctl_server server = {.fd = -1};
	struct file *file;
	uint64_t offset;
	uint32_t bytes;
	char *buffer = malloc(CKT_CONTROL_DATA_MAX);
	int result = buffer ? open_data(transfer, &server) : -ENOMEM;
	while (!result && next_piece(transfer, &file, &offset, &bytes)) {
		result = transfer->to_server
			? send_piece(transfer, &server, file, offset, bytes, buffer)
			: fetch_piece(transfer, &server, file, offset, bytes);
		if (!result && transfer->progress)
			ckt_ctl_progress_add(transfer->progress, bytes);
	}
	if (result)
		fail(transfer, result);
	ckt_ctl_disconnect(&server);
	free(buffer);
	return NULL;
}

static int run(struct transfer *transfer)
{
	pthread_t threads[CONNECTIONS];
	unsigned started = 0;
	pthread_mutex_init(&transfer->lock, NULL);
	while (started < CONNECTIONS &&
		pthread_create(&threads[started], NULL, transfer_thread, transfer) == 0)
		started++;
	if (!started)
		transfer->error = -EAGAIN;
	for (unsigned i = 0; i < started; i++)
		pthread_join(threads[i], NULL);
	pthread_mutex_destroy(&transfer->lock);
	if (!transfer->error)
		return CKT_EXIT_DONE;
	fprintf(stderr, "cricketctl: cannot transfer the image %s %s: %s\n",
		transfer->to_server ? "to" : "here from", transfer->address,
		strerror(-transfer->error));
	return CKT_EXIT_REFUSED;
}

static int sync_files(const struct transfer *transfer)
{
	for (unsigned i = 0; i < transfer->count; i++) {
		int fd = openat(transfer->dir_fd, transfer->files[i].name,
			O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
		int failed = fd < 0 || fsync(fd);
		if (fd >= 0)
			close(fd);
		if (failed)
			return ckt_ctl_refuse(transfer->files[i].name, strerror(errno));
	}
	return CKT_EXIT_DONE;
}

int ckt_ctl_fetch(const struct ckt_ctl_args *args, struct ckt_ctl_server *server, const char *stage,
	int dir_fd, bool sync, struct ckt_ctl_progress *progress)
{
	ckt_control_stage_args call = {.stage = (char *)stage};
	ckt_control_files_res res = {0};
	struct transfer transfer = {.args = args,
		.address = server->address,
		.stage = stage,
		.dir_fd = dir_fd,
		.progress = progress};
	uint64_t total = 0;
	int status =
		ckt_ctl_call(server, CKT_CONTROL_STAGE_LIST, (xdrproc_t)xdr_ckt_control_stage_args,
			&call, (xdrproc_t)xdr_ckt_control_files_res, &res, ANSWER_MS, -1);
	if (status == CKT_EXIT_DONE)
		status = ckt_ctl_result(&res.result);
	transfer.files = calloc(res.files.files_len + 1, sizeof *transfer.files);
	for (u_int i = 0; transfer.files && status == CKT_EXIT_DONE && i < res.files.files_len;
		i++) {
		/* The server's word is not taken for a name here. */
		if (!ckt_ctl_name_good(res.files.files_val[i].name))
			status = ckt_ctl_refuse(
				server->address, "names a file that does not belong to an image");
		else
			strcpy(transfer.files[transfer.count].name, res.files.files_val[i].name);
		total += transfer.files[transfer.count++].bytes = res.files.files_val[i].bytes;
	}
	if (status == CKT_EXIT_DONE && !transfer.files)
		status = ckt_ctl_refuse("fetch", "out of memory");
	if (progress)
		ckt_ctl_progress_phase(progress, "fetch", total);
	if (status == CKT_EXIT_DONE)
		status = run(&transfer);
	if (status == CKT_EXIT_DONE && sync)
		status = sync_files(&transfer);
	ckt_ctl_progress_phase(progress, "", 0);
	free(transfer.files);
	xdr_free((xdrproc_t)xdr_ckt_control_files_res, (char *)&res);
	return status;
}

int ckt_ctl_send(const struct ckt_ctl_args *args, struct ckt_ctl_server *server, const char *stage,
	int dir_fd, struct ckt_ctl_progress *progress)
{
	struct transfer transfer = {.args = args,
		.address = server->address,
		.stage = stage,
		.dir_fd = dir_fd,
		.to_server = true,
		.progress = progress};
	uint64_t total = 0;
	int list = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = list >= 0 ? fdopendir(list) : NULL;
	transfer.files = calloc(CKT_CONTROL_FILES_MAX, sizeof *transfer.files);
	for (struct dirent *entry; dir && transfer.files && (entry = readdir(dir));) {
		struct stat st;
		if (!ckt_ctl_name_good(entry->d_name) || strcmp(entry->d_name, "base") == 0 ||
			transfer.count >= CKT_CONTROL_FILES_MAX ||
			fstatat(dir_fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) ||
			!S_ISREG(st.st_mode))
			continue;
		struct file *file = &transfer.files[transfer.count++];
		snprintf(file->name, sizeof file->name, "%.64s", entry->d_name);
		total += file->bytes = (uint64_t)st.st_size;
	}
	if (dir)
		closedir(dir);
	if (progress)
		ckt_ctl_progress_phase(progress, "send", total);
	int status =
		!dir || !transfer.files ? ckt_ctl_refuse("send", strerror(errno)) : run(&transfer);
	ckt_ctl_progress_phase(progress, "", 0);
	free(transfer.files);
	return status;
}

int ckt_ctl_stage_make(struct ckt_ctl_server *server, char ret_stage[CKT_CONTROL_NAME_MAX + 1])
{
	ckt_control_stage_res res = {0};
	int status = ckt_ctl_call(server, CKT_CONTROL_STAGE_MAKE, NULL, NULL,
		(xdrproc_t)xdr_ckt_control_stage_res, &res, ANSWER_MS, -1);
	if (status == CKT_EXIT_DONE)
		status = ckt_ctl_result(&res.result);
	if (status == CKT_EXIT_DONE)
		snprintf(ret_stage, CKT_CONTROL_NAME_MAX + 1, "%s", res.stage);
	xdr_free((xdrproc_t)xdr_ckt_control_stage_res, (char *)&res);
	return status;
}

int ckt_ctl_stage_remove(struct ckt_ctl_server *server, const char *stage)
{
	ckt_control_stage_args call = {.stage = (char *)stage};
	ckt_control_result result = {0};
	int status = ckt_ctl_call(server, CKT_CONTROL_STAGE_REMOVE,
		(xdrproc_t)xdr_ckt_control_stage_args, &call, (xdrproc_t)xdr_ckt_control_result,
		&result, ANSWER_MS, -1);
	if (status == CKT_EXIT_DONE)
		status = ckt_ctl_result(&result);
	xdr_free((xdrproc_t)xdr_ckt_control_result, (char *)&result);
	return status;
}

int ckt_ctl_stage_keep(struct ckt_ctl_server *server, const char *stage, const char *name)
{
	ckt_control_keep_args call = {.stage = (char *)stage, .name = (char *)name};
	ckt_control_result result = {0};
	int status =
		ckt_ctl_call(server, CKT_CONTROL_STAGE_KEEP, (xdrproc_t)xdr_ckt_control_keep_args,
			&call, (xdrproc_t)xdr_ckt_control_result, &result, ANSWER_MS, -1);
	if (status == CKT_EXIT_DONE)
		status = ckt_ctl_result(&result);
	xdr_free((xdrproc_t)xdr_ckt_control_result, (char *)&result);
	return status;
}
