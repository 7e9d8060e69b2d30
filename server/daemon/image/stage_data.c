/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connections that carry the files of a stage: a thread each, because reading and writing files
 * waits for disks and the loop must not wait.
 *
 * Threading: the loop makes and ends; the threads share the directory under a lock that each holds
 * for one piece at most, so that an end waits for a piece and no longer.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fault_point.h"
#include "base/log.h"
#include "base/thread.h"
#include "rpc/transport/transport.h"
#include "server/daemon/audit/audit_pieces.h"
#include "server/daemon/image/image_space.h"
#include "server/daemon/image/stage.h"

enum { CONNECTIONS_MAX = 16, IDLE_MS = 60000, THREAD_STACK = 256 << 10 };
static const uint64_t file_bytes_max = UINT64_C(1) << 50;

struct ckt_stage_data {
	atomic_uint refs;
	pthread_rwlock_t lock; /* read: while a piece is moved; write: at the end */
	bool dead;
	int dir_fd;
	struct ckt_image_space *space; /* the account for written bytes; NULL: not counted */
	_Atomic uint64_t taken_bytes;
	atomic_uint files;
	pthread_mutex_t fds_lock;
	int fds[CONNECTIONS_MAX];
};

struct connection {
	struct connection *next; /* of all, under connections_lock */
	struct ckt_stage_data *data;
	int fd;
	unsigned slot;
	struct ckt_identity identity;
	struct ckt_audit_pieces *pieces;
};

static pthread_mutex_t connections_lock = PTHREAD_MUTEX_INITIALIZER;
static struct connection *connections;

static void connection_note(struct connection *connection, bool here)
{
	pthread_mutex_lock(&connections_lock);
	struct connection **place = &connections;
	while (*place && *place != connection)
		place = &(*place)->next;
	if (here) {
		connection->next = connections;
		connections = connection;
	} else if (*place) {
		*place = connection->next;
	}
	pthread_mutex_unlock(&connections_lock);
}

unsigned ckt_stage_data_connections(const struct ckt_identity *identity)
{
	unsigned count = 0;
	pthread_mutex_lock(&connections_lock);
	for (const struct connection *connection = connections; connection;
		connection = connection->next)
		count += ckt_identity_same(&connection->identity, identity);
	pthread_mutex_unlock(&connections_lock);
	return count;
}

static void data_unref(struct ckt_stage_data *data)
{
	if (atomic_fetch_sub(&data->refs, 1) != 1)
		return;
	close(data->dir_fd);
	/* Its stage counts what remains of it on the disk. */
	if (data->space)
		ckt_daemon_image_space_release(data->space, atomic_load(&data->taken_bytes));
	ckt_daemon_image_space_put(data->space);
	pthread_rwlock_destroy(&data->lock);
	pthread_mutex_destroy(&data->fds_lock);
	free(data);
}

struct ckt_stage_data *ckt_stage_data_create(int dir_fd, struct ckt_image_space *space)
{
	struct ckt_stage_data *data = calloc(1, sizeof *data);
	if (!data)
		return NULL;
	data->dir_fd = fcntl(dir_fd, F_DUPFD_CLOEXEC, 3);
	if (data->dir_fd < 0) {
		free(data);
		return NULL;
	}
	pthread_rwlock_init(&data->lock, NULL);
	pthread_mutex_init(&data->fds_lock, NULL);
	memset(data->fds, -1, sizeof data->fds);
	data->space = space ? ckt_daemon_image_space_ref(space) : NULL;
	atomic_store(&data->refs, 1);
	return data;
}

void ckt_stage_data_release(struct ckt_stage_data *data)
{
	data_unref(data);
}

void ckt_stage_data_destroy(struct ckt_stage_data *data)
{
	if (!data)
		return;
	pthread_rwlock_wrlock(&data->lock);
	data->dead = true;
	pthread_rwlock_unlock(&data->lock);
	pthread_mutex_lock(&data->fds_lock);
	for (unsigned i = 0; i < CONNECTIONS_MAX; i++) {
		struct ckt_transport connection;
		ckt_transport_init_socket(&connection, data->fds[i]);
		ckt_transport_shutdown(&connection);
	}
	pthread_mutex_unlock(&data->fds_lock);
	data_unref(data);
}

/* A plain file of the directory, or -errno. */
static int open_file(struct ckt_stage_data *data, const char *name, bool write)
{
	struct stat st;
	if (!ckt_stage_name_good(name))
		return -EINVAL;
	int fd = openat(data->dir_fd, name,
		(write ? O_WRONLY : O_RDONLY) | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0 && errno == ENOENT && write) {
		if (atomic_fetch_add(&data->files, 1) >= CKT_CONTROL_FILES_MAX)
			return -EMFILE;
		fd = openat(data->dir_fd, name, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	}
	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) || !S_ISREG(st.st_mode)) {
		close(fd);
		return -EINVAL;
	}
	return fd;
}

static int read_piece(struct ckt_stage_data *data, const ckt_control_read_args *args, char *buffer,
	u_int *ret_size)
{
	if (args->offset > file_bytes_max || args->bytes > CKT_CONTROL_DATA_MAX)
		return -EINVAL;
	int fd = open_file(data, args->file, false);
	if (fd < 0)
		return fd;
	size_t have = 0;
	int result = 0;
	while (have < args->bytes) {
		ssize_t n =
			pread(fd, buffer + have, args->bytes - have, (off_t)(args->offset + have));
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			result = -errno;
		if (n <= 0)
			break;
		have += (size_t)n;
	}
	close(fd);
	*ret_size = (u_int)have;
	return result;
}

static int write_piece(struct ckt_stage_data *data, const ckt_control_write_args *args)
{
	const char *p = args->data.data_val;
	size_t left = args->data.data_len;
	uint64_t offset = args->offset;
	if (offset > file_bytes_max)
		return -EINVAL;
	int fd = open_file(data, args->file, true);
	if (fd < 0)
		return fd;
	int result = data->space ? ckt_daemon_image_space_take(data->space, data->dir_fd, left) : 0;
	if (!result)
		atomic_fetch_add(&data->taken_bytes, left);
	while (left && !result) {
		ssize_t n = pwrite(fd, p, left, (off_t)offset);
		if (n < 0 && errno != EINTR)
			result = -errno;
		if (n > 0) {
			p += n;
			left -= (size_t)n;
			offset += (uint64_t)n;
		}
	}
	if (close(fd) && !result)
		result = -errno;
	return result;
}

static int reply(int fd, uint32_t xid, xdrproc_t xdr, void *res)
{
	uint8_t *data;
	size_t size;
	int result = ckt_net_encode_reply(xid, 0, xdr, res, &data, &size);
	if (result)
		return result;
	result = ckt_net_write_record(fd, data, size, ckt_net_now_ms() + IDLE_MS, -1);
	free(data);
	return result;
}

static int serve_read(
	struct connection *connection, uint32_t xid, struct ckt_cursor *c, char *buffer)
{
	struct ckt_stage_data *data = connection->data;
	ckt_control_read_args args = {0};
	ckt_control_read_res res = {.data = {.data_val = buffer}};
	int result = ckt_net_decode(c, (xdrproc_t)xdr_ckt_control_read_args, &args);
	if (result)
		return result;
	ckt_fault(CKT_FAULT_SERVER_STAGE_READ);
	pthread_rwlock_rdlock(&data->lock);
	res.status = data->dead ? -ESTALE : read_piece(data, &args, buffer, &res.data.data_len);
	pthread_rwlock_unlock(&data->lock);
	xdr_free((xdrproc_t)xdr_ckt_control_read_args, (char *)&args);
	ckt_audit_pieces_count(connection->pieces, CKT_CONTROL_READ, res.status);
	return reply(connection->fd, xid, (xdrproc_t)xdr_ckt_control_read_res, &res);
}

static int serve_write(struct connection *connection, uint32_t xid, struct ckt_cursor *c)
{
	struct ckt_stage_data *data = connection->data;
	ckt_control_write_args args = {0};
	int result = ckt_net_decode(c, (xdrproc_t)xdr_ckt_control_write_args, &args);
	if (result)
		return result;
	pthread_rwlock_rdlock(&data->lock);
	int status = data->dead ? -ESTALE : write_piece(data, &args);
	pthread_rwlock_unlock(&data->lock);
	ckt_fault(CKT_FAULT_SERVER_STAGE_WRITE);
	xdr_free((xdrproc_t)xdr_ckt_control_write_args, (char *)&args);
	ckt_audit_pieces_count(connection->pieces, CKT_CONTROL_WRITE, status);
	return reply(connection->fd, xid, (xdrproc_t)xdr_int, &status);
}

static void *data_thread(void *opaque)
{
	struct connection *connection = opaque;
	struct ckt_stage_data *data = connection->data;
	char *buffer = malloc(CKT_CONTROL_DATA_MAX);
	int result = buffer ? 0 : -ENOMEM;
	while (!result) {
		uint8_t *record;
		size_t size;
		struct ckt_call_header header = {0};
		result = ckt_net_read_record(connection->fd, CKT_RECORD_MAX,
			ckt_net_now_ms() + IDLE_MS, &record, &size, NULL);
		if (result)
			break;
		struct ckt_cursor c = {.p = record, .end = record + size};
		bool good = ckt_call_header_get(&c, &header) && header.prog == CRICKET_CONTROL_PROG;
		if (good && header.proc == CKT_CONTROL_READ)
			result = serve_read(connection, header.xid, &c, buffer);
		else if (good && header.proc == CKT_CONTROL_WRITE)
			result = serve_write(connection, header.xid, &c);
		else
			result = -EPROTO;
		free(record);
	}
	free(buffer);
	ckt_audit_pieces_end(connection->pieces, result == -EPROTO);
	connection_note(connection, false);
	pthread_mutex_lock(&data->fds_lock);
	data->fds[connection->slot] = -1;
	close(connection->fd);
	pthread_mutex_unlock(&data->fds_lock);
	data_unref(data);
	free(connection);
	return NULL;
}

static int find_slot(struct ckt_stage_data *data, int fd, unsigned *ret_slot)
{
	int result = -EBUSY;
	pthread_mutex_lock(&data->fds_lock);
	for (unsigned i = 0; i < CONNECTIONS_MAX && result; i++) {
		if (data->fds[i] >= 0)
			continue;
		data->fds[i] = fd;
		*ret_slot = i;
		result = 0;
	}
	pthread_mutex_unlock(&data->fds_lock);
	return result;
}

int ckt_stage_data_serve(struct ckt_stage_data *data, int fd, const struct ckt_identity *identity,
	struct ckt_audit_pieces *pieces)
{
	struct connection *connection = calloc(1, sizeof *connection);
	int result = connection ? find_slot(data, fd, &connection->slot) : -ENOMEM;
	if (result) {
		ckt_audit_pieces_end(pieces, false);
		free(connection);
		close(fd);
		return result;
	}
	connection->pieces = pieces;
	connection->data = data;
	connection->fd = fd;
	connection->identity = *identity;
	connection_note(connection, true);
	atomic_fetch_add(&data->refs, 1);
	result = ckt_thread_start(NULL, THREAD_STACK, data_thread, connection);
	if (result) {
		ckt_audit_pieces_end(pieces, false);
		connection_note(connection, false);
		pthread_mutex_lock(&data->fds_lock);
		data->fds[connection->slot] = -1;
		pthread_mutex_unlock(&data->fds_lock);
		close(fd);
		data_unref(data);
		free(connection);
	}
	return result;
}
