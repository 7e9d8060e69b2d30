/* SPDX-License-Identifier: Apache-2.0 */
/* CRIU; see criu.h. */
#include "ctl/client/criu.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "rpc/net.h"
#include "ctl/client/process_watch.h"

enum {
	CAP_BIT_SYS_ADMIN = 21,
	CAP_BIT_CHECKPOINT_RESTORE = 40,
	ASK_TIMEOUT_S = 60, /* limit for requests that are immediate */
	LOOK_MS = 200,      /* how often a working CRIU is checked */
	MESSAGE_SIZE = 65536,
	LOG_LEVEL = 4,
};

/* The numbers of rpc.proto. */
enum { REQ_TYPE = 1, REQ_OPTS = 2, REQ_NOTIFY_SUCCESS = 3 };
enum {
	RESP_TYPE = 1,
	RESP_SUCCESS = 2,
	RESP_RESTORE = 4,
	RESP_NOTIFY = 5,
	RESP_ERRNO = 7,
	RESP_ERRMSG = 9,
	RESP_VERSION = 10
};
enum { TYPE_DUMP = 1, TYPE_RESTORE = 2, TYPE_CHECK = 3, TYPE_NOTIFY = 6, TYPE_VERSION = 10 };
enum {
	OPT_IMAGES_DIR_FD = 1,
	OPT_PID = 2,
	OPT_LEAVE_RUNNING = 3,
	OPT_SHELL_JOB = 7,
	OPT_FILE_LOCKS = 8,
	OPT_LOG_LEVEL = 9,
	OPT_LOG_FILE = 10,
	OPT_NOTIFY_SCRIPTS = 12,
	OPT_WORK_DIR_FD = 17,
	OPT_INHERIT_FD = 27,
	OPT_MANAGE_CGROUPS_MODE = 34,
	OPT_UNPRIVILEGED = 67,
};
enum {
	NOTIFY_SCRIPT = 1,
	RESTORE_PID = 1,
	VERSION_MAJOR = 1,
	VERSION_MINOR = 2,
	VERSION_SUBLEVEL = 4,
	INHERIT_KEY = 1,
	INHERIT_FD = 2
};
enum { WIRE_VARINT = 0, WIRE_FIXED64 = 1, WIRE_BYTES = 2, WIRE_FIXED32 = 5 };

/* ---- Protocol buffers, as much as this needs */

struct message {
	uint8_t data[4096];
	size_t size;
};

static void put_varint(struct message *m, uint64_t value)
{
	do {
		uint8_t byte = (uint8_t)(value & 0x7f);
		value >>= 7;
		if (m->size < sizeof m->data)
			m->data[m->size++] = (uint8_t)(byte | (value ? 0x80 : 0));
	} while (value);
}

static void put_number(struct message *m, unsigned field, uint64_t value)
{
	put_varint(m, (uint64_t)field << 3 | WIRE_VARINT);
	put_varint(m, value);
}

static void put_bytes(struct message *m, unsigned field, const void *data, size_t size)
{
	put_varint(m, (uint64_t)field << 3 | WIRE_BYTES);
	put_varint(m, size);
	if (size <= sizeof m->data - m->size) {
		memcpy(m->data + m->size, data, size);
		m->size += size;
	}
}

static void put_text(struct message *m, unsigned field, const char *text)
{
	put_bytes(m, field, text, strlen(text));
}

struct reader {
	const uint8_t *p, *end;
};

struct field {
	unsigned number;
	uint64_t value; /* of a varint */
	struct reader bytes;
};

static bool get_varint(struct reader *r, uint64_t *ret_value)
{
	uint64_t value = 0;
	for (unsigned shift = 0; r->p < r->end && shift < 64; shift += 7) {
		uint8_t byte = *r->p++;
		value |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80)) {
			*ret_value = value;
			return true;
		}
	}
	return false;
}

/* False at the end, and for a malformed message. */
static bool get_field(struct reader *r, struct field *ret_field)
{
	uint64_t key, size = 0;
	*ret_field = (struct field){0};
	if (!get_varint(r, &key) || key >> 3 > UINT32_MAX)
		return false;
	ret_field->number = (unsigned)(key >> 3);
	switch (key & 7) {
	case WIRE_VARINT:
		return get_varint(r, &ret_field->value);
	case WIRE_FIXED64:
		size = 8;
		break;
	case WIRE_FIXED32:
		size = 4;
		break;
	case WIRE_BYTES:
		if (!get_varint(r, &size))
			return false;
		break;
	default:
		return false;
	}
	if (size > (uint64_t)(r->end - r->p))
		return false;
	ret_field->bytes = (struct reader){r->p, r->p + size};
	r->p += size;
	return true;
}

static void get_text(const struct reader *bytes, char *ret_text, size_t size)
{
	snprintf(ret_text, size, "%.*s", (int)(bytes->end - bytes->p), (const char *)bytes->p);
}

struct response {
	unsigned type;
	bool success;
	int error;
	pid_t pid;
	unsigned version;
	char script[64], message[256];
};

static void read_version(struct reader r, struct response *response)
{
	struct field field;
	while (get_field(&r, &field)) {
		if (field.value >= 100)
			field.value = 99;
		if (field.number == VERSION_MAJOR)
			response->version += (unsigned)field.value * 10000;
		else if (field.number == VERSION_MINOR)
			response->version += (unsigned)field.value * 100;
		else if (field.number == VERSION_SUBLEVEL)
			response->version += (unsigned)field.value;
	}
}

static void read_response(struct reader r, struct response *response)
{
	struct field field, inner;
	*response = (struct response){0};
	while (get_field(&r, &field)) {
		struct reader bytes = field.bytes;
		if (field.number == RESP_TYPE)
			response->type = (unsigned)field.value;
		else if (field.number == RESP_SUCCESS)
			response->success = field.value;
		else if (field.number == RESP_ERRNO)
			response->error = (int)field.value;
		else if (field.number == RESP_ERRMSG)
			get_text(&bytes, response->message, sizeof response->message);
		else if (field.number == RESP_VERSION)
			read_version(bytes, response);
		else if (field.number == RESP_RESTORE && get_field(&bytes, &inner) &&
			inner.number == RESTORE_PID)
			response->pid = (pid_t)inner.value;
		else if (field.number == RESP_NOTIFY)
			while (get_field(&bytes, &inner))
				if (inner.number == NOTIFY_SCRIPT)
					get_text(&inner.bytes, response->script,
						sizeof response->script);
	}
}

/* ---- One process of CRIU's */

struct worker {
	pid_t pid;
	int fd;
	struct ckt_watch watch;
};

/* A request: its message, its callback for CRIU's notices, its time limit. */
struct task {
	unsigned type;
	const struct message *opts;
	int (*written)(void *data);
	void *data;
	unsigned timeout_ms; /* in all; 0: no limit as long as it makes progress */
	unsigned stall_ms;
	int images_fd;
	const struct ckt_criu_progress *progress;
};

static int start(const char *path, bool silent, struct worker *ret_worker)
{
	int fds[2];
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds))
		return -errno;
	pid_t pid = fork();
	if (pid == 0) {
		char number[16];
		int null = silent ? open("/dev/null", O_RDWR | O_CLOEXEC) : -1;
		if (null >= 0 && (dup2(null, STDOUT_FILENO) < 0 || dup2(null, STDERR_FILENO) < 0))
			_exit(127);
		fcntl(fds[1], F_SETFD, 0);
		snprintf(number, sizeof number, "%d", fds[1]);
		execl(path, "criu", "swrk", number, (char *)NULL);
		_exit(127);
	}
	int result = pid < 0 ? -errno : 0;
	close(fds[1]);
	if (result)
		close(fds[0]);
	else
		*ret_worker = (struct worker){.pid = pid, .fd = fds[0]};
	return result;
}

/* It ends by itself once its socket is closed. */
static void finish(struct worker *worker)
{
	close(worker->fd);
	while (waitpid(worker->pid, NULL, 0) < 0 && errno == EINTR)
		;
}

static int say(const struct worker *worker, const struct message *m)
{
	return send(worker->fd, m->data, m->size, MSG_NOSIGNAL) == (ssize_t)m->size ? 0 : -EPIPE;
}

uint64_t ckt_ctl_criu_image_bytes(int directory)
{
	uint64_t size = 0;
	int fd = openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
	struct stat st;
	for (struct dirent *entry; dir && (entry = readdir(dir));)
		if (fstatat(fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
			S_ISREG(st.st_mode))
			size += (uint64_t)st.st_size;
	if (dir)
		closedir(dir);
	return size;
}

/*
 * Waits for CRIU's message; ends CRIU if it makes no progress for too long, with all its processes.
 */
static int await(struct worker *worker, const struct task *task)
{
	int64_t deadline_ms = ckt_net_now_ms() + task->timeout_ms;
	ckt_ctl_watch_begin(&worker->watch);
	for (;;) {
		struct pollfd ready = {.fd = worker->fd, .events = POLLIN};
		int n = poll(&ready, 1, LOOK_MS);
		if (n > 0)
			return 0;
		if (n < 0 && errno != EINTR)
			return -errno;
		int64_t idle_ms = ckt_ctl_watch_look(&worker->watch);
		if (task->progress)
			task->progress->moved(task->type == TYPE_DUMP
					? ckt_ctl_criu_image_bytes(task->images_fd)
					: worker->watch.read_bytes,
				task->progress->data);
		if (task->timeout_ms ? ckt_net_now_ms() > deadline_ms : idle_ms > task->stall_ms) {
			ckt_ctl_watch_kill();
			return -ETIMEDOUT;
		}
	}
}

static int hear(struct worker *worker, const struct task *task, struct response *response)
{
	static uint8_t buffer[MESSAGE_SIZE];
	ssize_t n;
	int result = await(worker, task);
	if (result)
		return result;
	do
		n = recv(worker->fd, buffer, sizeof buffer, 0);
	while (n < 0 && errno == EINTR);
	if (n <= 0)
		return n ? -errno : -EPIPE;
	read_response((struct reader){buffer, buffer + n}, response);
	return 0;
}

/* Sends a request and waits for the reply; passes CRIU's notices to `written`. */
static int ask(struct worker *worker, const struct task *task, struct response *response)
{
	struct message request = {0};
	put_number(&request, REQ_TYPE, task->type);
	if (task->opts)
		put_bytes(&request, REQ_OPTS, task->opts->data, task->opts->size);
	int result = say(worker, &request), refused = 0;
	for (;;) {
		if (!result)
			result = hear(worker, task, response);
		if (result || response->type != TYPE_NOTIFY)
			return result ? result : refused;
		if (task->written && strcmp(response->script, "post-dump") == 0)
			refused = task->written(task->data);
		struct message answer = {0};
		put_number(&answer, REQ_TYPE, TYPE_NOTIFY);
		put_number(&answer, REQ_NOTIFY_SUCCESS, !refused);
		result = say(worker, &answer);
	}
}

/* ---- Its log */

void ckt_ctl_criu_log_error(const char *path, char *ret_text, size_t text_size)
{
	char line[1024];
	FILE *file = fopen(path, "re");
	*ret_text = 0;
	while (file && !*ret_text && fgets(line, sizeof line, file)) {
		const char *error = strstr(line, "Error (");
		const char *text = error ? strstr(error, "): ") : NULL;
		/*
		 * Every CRIU that may not raise its limit of open files logs this; it has no
		 * consequence.
		 */
		if (!text || strstr(text, "RLIMIT_NOFILE"))
			continue;
		line[strcspn(line, "\n")] = 0;
		snprintf(ret_text, text_size, "%s", text + 3);
	}
	if (file)
		fclose(file);
}

/* Where CRIU writes its log; gone after success. */
struct place {
	char path[512];
	int fd;
};

static int place_make(struct place *place)
{
	const char *directory = getenv("TMPDIR");
	*place = (struct place){.fd = -1};
	if (snprintf(place->path, sizeof place->path, "%s/cricket-criu.XXXXXX",
		    directory && *directory ? directory : "/tmp") >= (int)sizeof place->path)
		return -ENAMETOOLONG;
	if (!mkdtemp(place->path))
		return -errno;
	place->fd = open(place->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return place->fd < 0 ? -errno : 0;
}

static void place_remove(struct place *place)
{
	static const char *const names[] = {"criu.log", "stats-dump", "stats-restore", "criu.kdat"};
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		unlinkat(place->fd, names[i], 0);
	close(place->fd);
	rmdir(place->path);
}

/*
 * The sentence for a failed request: CRIU's error, and where the log is. The log stays, if there is
 * one.
 */
static void explain(struct place *place, const struct response *response, int result,
	const char *what, char *ret_message, size_t message_size)
{
	char log[sizeof place->path + 16], error[256];
	snprintf(log, sizeof log, "%s/criu.log", place->path);
	ckt_ctl_criu_log_error(log, error, sizeof error);
	const char *cause = *error   ? error
		: *response->message ? response->message
		: response->error    ? strerror(response->error)
				     : strerror(-result);
	if (access(log, F_OK) == 0) {
		snprintf(ret_message, message_size, "%s: %s; CRIU's log is %s", what, cause, log);
		close(place->fd);
	} else {
		snprintf(ret_message, message_size, "%s: %s", what, cause);
		place_remove(place);
	}
}

static void put_common(
	struct message *opts, const struct ckt_criu *criu, int images_fd, const struct place *place)
{
	put_number(opts, OPT_IMAGES_DIR_FD, (uint64_t)images_fd);
	put_number(opts, OPT_WORK_DIR_FD, (uint64_t)place->fd);
	put_number(opts, OPT_LOG_LEVEL, LOG_LEVEL);
	put_text(opts, OPT_LOG_FILE, "criu.log");
	if (criu->unprivileged)
		put_number(opts, OPT_UNPRIVILEGED, true);
}

static int request(const struct ckt_criu *criu, struct place *place, const struct task *task,
	const char *what, struct response *response, char *ret_message, size_t message_size)
{
	struct worker worker;
	char stalled[192];
	int result = start(criu->path, task->type == TYPE_CHECK, &worker);
	*response = (struct response){0};
	if (!result) {
		result = ask(&worker, task, response);
		finish(&worker);
	}
	if (!result && response->success) {
		place_remove(place);
		return 0;
	}
	if (result == -ETIMEDOUT) {
		snprintf(stalled, sizeof stalled, "%s: made no progress for %u s and was ended",
			what, (task->timeout_ms ? task->timeout_ms : task->stall_ms) / 1000);
		what = stalled;
	}
	explain(place, response, result, what, ret_message, message_size);
	return result ? result : -EIO;
}

static int no_place(const struct place *place, int error, char *ret_message, size_t message_size)
{
	snprintf(ret_message, message_size, "no directory for CRIU's log: %s: %s", place->path,
		strerror(-error));
	return error;
}

/* ---- Whether it is there, and good */

const char *ckt_ctl_criu_version_text(unsigned version, char ret_text[CKT_CRIU_TEXT])
{
	snprintf(ret_text, CKT_CRIU_TEXT, version % 100 ? "%u.%u.%u" : "%u.%u", version / 10000,
		version / 100 % 100, version % 100);
	return ret_text;
}

int ckt_ctl_criu_version_check(
	unsigned version, const char *path, char *ret_message, size_t message_size)
{
	char text[CKT_CRIU_TEXT], least[CKT_CRIU_TEXT];
	if (version >= CKT_CRIU_VERSION_MIN)
		return 0;
	ckt_ctl_criu_version_text(CKT_CRIU_VERSION_MIN, least);
	if (version)
		snprintf(ret_message, message_size,
			"%s is CRIU %s, but --with-client needs %s or later: install "
			"that, or put it first in PATH",
			path, ckt_ctl_criu_version_text(version, text), least);
	else
		snprintf(ret_message, message_size,
			"%s does not report its version, but --with-client needs CRIU "
			"%s or later: try '%s --version'",
			path, least, path);
	return -EPROTONOSUPPORT;
}

int ckt_ctl_criu_rights_check(const struct ckt_criu_rights *rights, const char *path,
	bool *ret_unprivileged, char *ret_message, size_t message_size)
{
	const uint64_t admin = 1ull << CAP_BIT_SYS_ADMIN,
		       restore = 1ull << CAP_BIT_CHECKPOINT_RESTORE;
	if (rights->root) {
		*ret_unprivileged = !(rights->effective & admin);
		if (rights->effective & (admin | restore))
			return 0;
		snprintf(ret_message, message_size,
			"root has neither CAP_SYS_ADMIN nor CAP_CHECKPOINT_RESTORE "
			"here, and CRIU needs one of them: start the container with "
			"'--cap-add CHECKPOINT_RESTORE --cap-add SYS_PTRACE', or as "
			"privileged");
		return -EPERM;
	}
	*ret_unprivileged = true;
	if (rights->file_capabilities || rights->ambient & (admin | restore))
		return 0;
	snprintf(ret_message, message_size,
		"saving and restoring a process needs root or CAP_CHECKPOINT_RESTORE: "
		"run 'sudo cricketctl ...', or once 'sudo setcap "
		"cap_checkpoint_restore,cap_sys_ptrace+eip %s'",
		path);
	return -EPERM;
}

static void read_rights(const char *path, struct ckt_criu_rights *ret_rights)
{
	char line[256], value[64];
	FILE *file = fopen("/proc/self/status", "re");
	*ret_rights = (struct ckt_criu_rights){.root = geteuid() == 0};
	while (file && fgets(line, sizeof line, file)) {
		sscanf(line, "CapEff: %lx", &ret_rights->effective);
		sscanf(line, "CapAmb: %lx", &ret_rights->ambient);
	}
	if (file)
		fclose(file);
	ret_rights->file_capabilities =
		getxattr(path, "security.capability", value, sizeof value) > 0;
}

/* As the shell does, and then in directories that only root's PATH names. */
static int find_program(char *ret_path, size_t path_size)
{
	const char *path = getenv("PATH");
	char list[8192];
	snprintf(list, sizeof list, "%s:/usr/local/sbin:/usr/sbin:/sbin", path ? path : "");
	for (char *save, *one = strtok_r(list, ":", &save); one; one = strtok_r(NULL, ":", &save)) {
		struct stat st;
		if (snprintf(ret_path, path_size, "%s/criu", one) < (int)path_size &&
			access(ret_path, X_OK) == 0 && stat(ret_path, &st) == 0 &&
			S_ISREG(st.st_mode))
			return 0;
	}
	return -ENOENT;
}

static unsigned ask_version(const char *path)
{
	struct worker worker;
	struct response response = {0};
	const struct task task = {.type = TYPE_VERSION, .timeout_ms = ASK_TIMEOUT_S * 1000};
	if (start(path, true, &worker))
		return 0;
	int result = ask(&worker, &task, &response);
	finish(&worker);
	return result || !response.success ? 0 : response.version;
}

static int check_kernel(const struct ckt_criu *criu, char *ret_message, size_t message_size)
{
	struct message opts = {0};
	struct response response;
	struct place place;
	int result = place_make(&place);
	if (result)
		return no_place(&place, result, ret_message, message_size);
	put_common(&opts, criu, place.fd, &place);
	char what[4200];
	snprintf(what, sizeof what, "CRIU cannot work on this kernel: see '%s check'", criu->path);
	const struct task task = {
		.type = TYPE_CHECK, .opts = &opts, .timeout_ms = ASK_TIMEOUT_S * 1000};
	return request(criu, &place, &task, what, &response, ret_message, message_size);
}

int ckt_ctl_criu_find(struct ckt_criu *ret_criu, char *ret_message, size_t message_size)
{
	struct ckt_criu criu = {0};
	struct ckt_criu_rights rights;
	if (find_program(criu.path, sizeof criu.path)) {
		snprintf(ret_message, message_size,
			"--with-client needs CRIU 4.1 or later, but PATH has no criu: "
			"install it on this host (most distributions have a package "
			"'criu')");
		return -ENOENT;
	}
	criu.version = ask_version(criu.path);
	int result = ckt_ctl_criu_version_check(criu.version, criu.path, ret_message, message_size);
	if (result)
		return result;
	read_rights(criu.path, &rights);
	result = ckt_ctl_criu_rights_check(
		&rights, criu.path, &criu.unprivileged, ret_message, message_size);
	if (!result)
		result = check_kernel(&criu, ret_message, message_size);
	if (!result)
		*ret_criu = criu;
	return result;
}

/* ---- Dump and restore */

static unsigned stall_ms(const struct ckt_criu *criu)
{
	return criu->stall_ms ? criu->stall_ms : CKT_CRIU_STALL_MS;
}

int ckt_ctl_criu_dump(const struct ckt_criu *criu, pid_t pid, int images_fd, bool keep_running,
	int (*written)(void *data), void *data, const struct ckt_criu_progress *progress,
	char *ret_message, size_t message_size)
{
	struct message opts = {0};
	struct response response;
	struct place place;
	char what[96];
	int result = place_make(&place);
	if (result)
		return no_place(&place, result, ret_message, message_size);
	put_common(&opts, criu, images_fd, &place);
	put_number(&opts, OPT_PID, (uint64_t)pid);
	put_number(&opts, OPT_LEAVE_RUNNING, keep_running);
	put_number(&opts, OPT_SHELL_JOB, true);
	put_number(&opts, OPT_FILE_LOCKS, true);
	put_number(&opts, OPT_MANAGE_CGROUPS_MODE, 0); /* it is restored into ours */
	put_number(&opts, OPT_NOTIFY_SCRIPTS, written != NULL);
	snprintf(what, sizeof what, "CRIU could not save process %d", (int)pid);
	const struct task task = {.type = TYPE_DUMP,
		.opts = &opts,
		.written = written,
		.data = data,
		.stall_ms = stall_ms(criu),
		.images_fd = images_fd,
		.progress = progress};
	return request(criu, &place, &task, what, &response, ret_message, message_size);
}

int ckt_ctl_criu_restore(const struct ckt_criu *criu, int images_fd,
	const struct ckt_criu_inherit *inherit, unsigned inherit_count,
	const struct ckt_criu_progress *progress, pid_t *ret_pid, char *ret_message,
	size_t message_size)
{
	struct message opts = {0};
	struct response response;
	struct place place;
	int result = place_make(&place);
	if (result)
		return no_place(&place, result, ret_message, message_size);
	put_common(&opts, criu, images_fd, &place);
	put_number(&opts, OPT_SHELL_JOB, true);
	put_number(&opts, OPT_FILE_LOCKS, true);
	put_number(&opts, OPT_MANAGE_CGROUPS_MODE, 0);
	for (unsigned i = 0; i < inherit_count; i++) {
		struct message one = {0};
		put_text(&one, INHERIT_KEY, inherit[i].key);
		put_number(&one, INHERIT_FD, (uint64_t)inherit[i].fd);
		put_bytes(&opts, OPT_INHERIT_FD, one.data, one.size);
	}
	const struct task task = {.type = TYPE_RESTORE,
		.opts = &opts,
		.stall_ms = stall_ms(criu),
		.images_fd = images_fd,
		.progress = progress};
	result = request(criu, &place, &task, "CRIU could not restore the process", &response,
		ret_message, message_size);
	if (!result)
		*ret_pid = response.pid;
	return result;
}
