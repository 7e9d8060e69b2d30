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
#include "ctl/client/criu_message.h"
#include "ctl/client/process_watch.h"

enum {
	CAP_BIT_SYS_ADMIN = 21,
	CAP_BIT_CHECKPOINT_RESTORE = 40,
	ASK_TIMEOUT_S = 60, /* limit for requests that are immediate */
	LOOK_MS = 200,      /* how often a working CRIU is checked */
	MESSAGE_SIZE = 65536,
	REQUEST_SIZE = 4096,
	LOG_LEVEL = 4,
	CGROUPS_IGNORE = 0,
};

/* CRIU's numbers of requests. */
enum { TYPE_DUMP = 1, TYPE_RESTORE = 2, TYPE_CHECK = 3, TYPE_NOTIFY = 6, TYPE_VERSION = 10 };

/* ---- One process of CRIU's */

struct worker {
	pid_t pid;
	int fd;
	struct ckt_watch watch;
};

/* A request: its message, its callback for CRIU's notices, its time limit. */
struct task {
	unsigned type;
	CktCtlCriu__Options *opts;
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

static int say(const struct worker *worker, const CktCtlCriu__Request *request)
{
	uint8_t data[REQUEST_SIZE];
	size_t size = ckt_ctl_criu_request_encode(request, data, sizeof data);
	if (!size)
		return -EMSGSIZE;
	return send(worker->fd, data, size, MSG_NOSIGNAL) == (ssize_t)size ? 0 : -EPIPE;
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

static int hear(struct worker *worker, const struct task *task, struct ckt_criu_response *response)
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
	return ckt_ctl_criu_response_decode(buffer, (size_t)n, response);
}

/* Sends a request and waits for the reply; passes CRIU's notices to `written`. */
static int ask(struct worker *worker, const struct task *task, struct ckt_criu_response *response)
{
	CktCtlCriu__Request request = CKT_CTL_CRIU__REQUEST__INIT;
	request.has_type = true;
	request.type = task->type;
	request.opts = task->opts;
	int result = say(worker, &request), refused = 0;
	for (;;) {
		if (!result)
			result = hear(worker, task, response);
		if (result || response->type != TYPE_NOTIFY)
			return result ? result : refused;
		if (task->written && strcmp(response->script, "post-dump") == 0)
			refused = task->written(task->data);
		CktCtlCriu__Request answer = CKT_CTL_CRIU__REQUEST__INIT;
		answer.has_type = answer.has_notify_success = true;
		answer.type = TYPE_NOTIFY;
		answer.notify_success = !refused;
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
static void explain(struct place *place, const struct ckt_criu_response *response, int result,
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

/* What every request with a directory sets. */
static void set_common(CktCtlCriu__Options *opts, const struct ckt_criu *criu, int images_fd,
	const struct place *place)
{
	opts->has_images_dir_fd = opts->has_work_dir_fd = opts->has_log_level = true;
	opts->images_dir_fd = images_fd;
	opts->work_dir_fd = place->fd;
	opts->log_level = LOG_LEVEL;
	opts->log_file = "criu.log";
	opts->has_unprivileged = opts->unprivileged = criu->unprivileged;
}

/* What a dump and its restore have in common: a restored process gets our own control group. */
static void set_process(CktCtlCriu__Options *opts)
{
	opts->has_shell_job = opts->shell_job = true;
	opts->has_file_locks = opts->file_locks = true;
	opts->has_manage_cgroups_mode = true;
	opts->manage_cgroups_mode = CGROUPS_IGNORE;
}

static int request(const struct ckt_criu *criu, struct place *place, const struct task *task,
	const char *what, struct ckt_criu_response *response, char *ret_message,
	size_t message_size)
{
	struct worker worker;
	char stalled[192];
	int result = start(criu->path, task->type == TYPE_CHECK, &worker);
	*response = (struct ckt_criu_response){0};
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
	struct ckt_criu_response response = {0};
	const struct task task = {.type = TYPE_VERSION, .timeout_ms = ASK_TIMEOUT_S * 1000};
	if (start(path, true, &worker))
		return 0;
	int result = ask(&worker, &task, &response);
	finish(&worker);
	return result || !response.success ? 0 : response.version;
}

static int check_kernel(const struct ckt_criu *criu, char *ret_message, size_t message_size)
{
	CktCtlCriu__Options opts = CKT_CTL_CRIU__OPTIONS__INIT;
	struct ckt_criu_response response;
	struct place place;
	int result = place_make(&place);
	if (result)
		return no_place(&place, result, ret_message, message_size);
	set_common(&opts, criu, place.fd, &place);
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
	CktCtlCriu__Options opts = CKT_CTL_CRIU__OPTIONS__INIT;
	struct ckt_criu_response response;
	struct place place;
	char what[96];
	int result = place_make(&place);
	if (result)
		return no_place(&place, result, ret_message, message_size);
	set_common(&opts, criu, images_fd, &place);
	set_process(&opts);
	opts.has_pid = opts.has_leave_running = opts.has_notify_scripts = true;
	opts.pid = pid;
	opts.leave_running = keep_running;
	opts.notify_scripts = written != NULL;
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
	CktCtlCriu__Options opts = CKT_CTL_CRIU__OPTIONS__INIT;
	struct ckt_criu_response response;
	struct place place;
	CktCtlCriu__InheritFd replaced[CKT_CRIU_INHERIT_MAX], *list[CKT_CRIU_INHERIT_MAX];
	if (inherit_count > CKT_CRIU_INHERIT_MAX) {
		snprintf(ret_message, message_size, "%u descriptors to replace; CRIU is told %d",
			inherit_count, CKT_CRIU_INHERIT_MAX);
		return -E2BIG;
	}
	int result = place_make(&place);
	if (result)
		return no_place(&place, result, ret_message, message_size);
	set_common(&opts, criu, images_fd, &place);
	set_process(&opts);
	for (unsigned i = 0; i < inherit_count; i++) {
		ckt_ctl_criu__inherit_fd__init(&replaced[i]);
		replaced[i].key = (char *)inherit[i].key;
		replaced[i].has_fd = true;
		replaced[i].fd = inherit[i].fd;
		list[i] = &replaced[i];
	}
	opts.n_inherit_fd = inherit_count;
	opts.inherit_fd = list;
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
