/* SPDX-License-Identifier: Apache-2.0 */
/* The client's process, saved and restored with its session; see client.h. */
#include "ctl/client/client.h"

#include "base/fault_point.h"
#include "ctl/client/process_watch.h"
#include "ctl/command.h"
#include "ctl/files.h"
#include "ctl/print.h"
#include "ctl/progress.h"
#include "ctl/server.h"
#include "ctl/vouch.h"
#include "rpc/control.h"
#include "rpc/net.h"
#include "rpc/session.h"
#include "rpc/worker.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
	ANSWER_MS = 15000,
	QUIESCE_MS = 20000,
	QUIET_MS = 20000,
	CLAIM_MS = 30000,
	OVER_MS = 5000,
	SILENT_MS = 10000,
	LOOK_NS = 20000000,
	FORMAT = 1,
	DESCRIPTION_MAX = 1 << 20,
	ID_MAX = 1 << 22,
	MESSAGE_SIZE = 5200,
	COPY_BYTES = 1 << 30,
};

#define DESCRIPTION "client.json"

static int refuse(const char *message)
{
	char clean[MESSAGE_SIZE];
	fprintf(stderr, "cricketctl: %s\n", ckt_ctl_clean(message, clean, sizeof clean));
	return CKT_EXIT_REFUSED;
}

/* ---- Sessions */

/*
 * Calls visit for each of them, until it returns false.  silent: its worker did not answer, and its state
 * is an earlier one.
 */
static int each_session(struct ckt_ctl_server *server,
	bool (*visit)(const ckt_control_session *session, bool silent, void *data), void *data)
{
	struct ckt_ctl_pages pages = {0};
	bool more = true;
	while (more) {
		ckt_control_list2_res page = {0};
		const ckt_control_list_res *res = &page.list;
		int status = ckt_ctl_list(server, pages.after, ANSWER_MS, &page);
		if (status != CKT_EXIT_DONE)
			return status;
		bool wanted = true;
		u_int count = res->sessions.sessions_len;
		for (u_int i = 0; i < count; i++) {
			const bool_t *answered = ckt_ctl_answered(&page, i);
			wanted = visit(&res->sessions.sessions_val[i], answered && !*answered,
					 data) &&
				wanted;
		}
		status = ckt_ctl_pages_turn(&pages, server, res->more && wanted,
			count ? res->sessions.sessions_val[count - 1].session : NULL, &more);
		xdr_free((xdrproc_t)xdr_ckt_control_list2_res, (char *)&page);
		if (status != CKT_EXIT_DONE)
			return status;
	}
	return CKT_EXIT_DONE;
}

struct facts {
	const char *prefix;
	unsigned count; /* number of matching sessions */
	char session[CKT_SESSION_ID_SIZE + 1], program[CKT_NAME_MAX + 1], host[CKT_ADDRESS_MAX + 1];
	pid_t pid;
	unsigned state;
	bool silent; /* that was its state once */
	uint64_t generation;
	/* Second round */
	char other[CKT_SESSION_ID_SIZE + 1]; /* a session of a process below ours */
	pid_t other_pid;
};

static bool take_facts(const ckt_control_session *session, bool silent, void *data)
{
	struct facts *facts = data;
	if (strncmp(session->session, facts->prefix, strlen(facts->prefix)) != 0)
		return true;
	facts->count++;
	snprintf(facts->session, sizeof facts->session, "%s", session->session);
	snprintf(facts->program, sizeof facts->program, "%s", session->program_name);
	snprintf(facts->host, sizeof facts->host, "%s", session->client);
	facts->pid = (pid_t)session->client_pid;
	facts->state = session->state;
	facts->silent = silent;
	facts->generation = session->generation;
	return true;
}

static bool find_child(const ckt_control_session *session, bool silent, void *data)
{
	struct facts *facts = data;
	pid_t pid = (pid_t)session->client_pid;
	(void)silent;
	if (strcmp(session->session, facts->session) != 0 &&
		strcmp(session->client, facts->host) == 0 && pid != facts->pid &&
		ckt_ctl_process_is_below(pid, facts->pid)) {
		snprintf(facts->other, sizeof facts->other, "%s", session->session);
		facts->other_pid = pid;
	}
	return true;
}

/* Again for as long as the worker of the one that is found does not answer, some seconds at most. */
static int find_session(struct ckt_ctl_server *server, const char *prefix, struct facts *ret_facts)
{
	int64_t deadline_ms = ckt_net_now_ms() + SILENT_MS;
	for (;;) {
		*ret_facts = (struct facts){.prefix = prefix};
		int status = each_session(server, take_facts, ret_facts);
		if (status != CKT_EXIT_DONE || ret_facts->count != 1 || !ret_facts->silent ||
			ckt_net_now_ms() >= deadline_ms)
			return status;
		nanosleep(&(struct timespec){.tv_nsec = LOOK_NS}, NULL);
	}
}

static int refuse_silent(const char *session, const char *then)
{
	char message[MESSAGE_SIZE];
	snprintf(message, sizeof message, "session %s: its worker does not answer: %s", session,
		then);
	return refuse(message);
}

int ckt_ctl_client_find(
	struct ckt_ctl_server *server, const char *prefix, struct ckt_ctl_client *ret_client)
{
	char message[MESSAGE_SIZE], here[CKT_NAME_MAX + 1] = "";
	struct facts facts;
	ret_client->fd = -1;
	if (ckt_ctl_criu_find(&ret_client->criu, message, sizeof message))
		return refuse(message);
	int status = find_session(server, prefix, &facts);
	if (status != CKT_EXIT_DONE)
		return status;
	if (facts.count != 1) {
		snprintf(message, sizeof message, "%s session '%s'%s: see cricketctl ps",
			facts.count ? "there is more than one" : "there is no", prefix,
			facts.count ? "..." : "");
		refuse(message);
		return CKT_EXIT_NO_SESSION;
	}
	if (facts.silent)
		return refuse_silent(facts.session,
			"its process is stopped or hangs; let it continue, or end the session with "
			"cricketctl kill");
	gethostname(here, sizeof here - 1);
	if (facts.state != CKT_STATE_RUNNING && facts.state != CKT_STATE_PAUSED) {
		snprintf(message, sizeof message,
			"session %s is %s: its client can be saved only while the two "
			"are connected",
			facts.session, ckt_ctl_state_name(facts.state));
		return refuse(message);
	}
	if (strcmp(facts.host, here) != 0) {
		snprintf(message, sizeof message,
			"the program of session %s runs on %s: run 'cricketctl checkpoint --with-client' there",
			facts.session, facts.host);
		return refuse(message);
	}
	if (ckt_ctl_process_look(
		    facts.pid, facts.program, &ret_client->process, message, sizeof message))
		return refuse(message);
	status = each_session(server, find_child, &facts);
	if (status != CKT_EXIT_DONE)
		return status;
	if (*facts.other) {
		snprintf(message, sizeof message,
			"process %d, a descendant of %s, has session %s of its own: "
			"Cricket saves a process tree with one session only",
			(int)facts.other_pid, facts.program, facts.other);
		return refuse(message);
	}
	snprintf(ret_client->session, sizeof ret_client->session, "%s", facts.session);
	return CKT_EXIT_DONE;
}

/* ---- Save */

static int make_quiet(struct ckt_ctl_client *client, struct ckt_ctl_server *server)
{
	char message[MESSAGE_SIZE];
	ckt_control_session_args call = {.session = client->session};
	ckt_control_result answer = {0};
	int result = ckt_ctl_hold_make(&client->process, client->session);
	if (result) {
		snprintf(message, sizeof message, "%s: %s", client->process.state_dir,
			strerror(-result));
		return refuse(message);
	}
	int status =
		ckt_ctl_call(server, CKT_CONTROL_QUIESCE, (xdrproc_t)xdr_ckt_control_session_args,
			&call, (xdrproc_t)xdr_ckt_control_result, &answer, QUIESCE_MS, -1);
	if (status == CKT_EXIT_DONE)
		status = ckt_ctl_result(&answer);
	xdr_free((xdrproc_t)xdr_ckt_control_result, (char *)&answer);
	if (status == CKT_EXIT_DONE &&
		ckt_ctl_hold_wait_quiet(&client->process, client->session, QUIET_MS)) {
		snprintf(message, sizeof message,
			"%s (process %d) did not become quiet: it may be stopped, or "
			"its Cricket may be older than this one",
			client->process.program, (int)client->process.pid);
		status = refuse(message);
	}
	ckt_fault(CKT_FAULT_CTL_CLIENT_QUIET);
	return status;
}

static json_t *describe(const struct ckt_ctl_client *client)
{
	const struct ckt_process *process = &client->process;
	char version[CKT_CRIU_TEXT];
	static pid_t ids[CKT_PROCESS_TREE_MAX];
	unsigned count = ckt_ctl_process_tree(process->pid, ids);
	json_t *list = json_array(), *stdio = json_array();
	for (unsigned i = 0; i < count; i++)
		json_array_append_new(list, json_integer(ids[i]));
	for (int fd = 0; fd < 3; fd++)
		json_array_append_new(stdio, ckt_ctl_json_text(process->stdio[fd]));
	return json_pack("{s:i, s:s, s:i, s:o, s:o, s:s, s:I, s:I, s:s, s:o}", "format", FORMAT,
		"criu", ckt_ctl_criu_version_text(client->criu.version, version), "pid",
		(int)process->pid, "ids", list, "program", ckt_ctl_json_text(process->program),
		"session", client->session, "uid", (json_int_t)process->uid, "gid",
		(json_int_t)process->gid, "state_dir", process->state_dir, "stdio", stdio);
}

static int sync_directory(int fd)
{
	int list = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), result = 0;
	DIR *dir = list >= 0 ? fdopendir(list) : NULL;
	if (!dir)
		return -errno;
	for (struct dirent *entry; !result && (entry = readdir(dir));) {
		int file = entry->d_name[0] == '.'
			? -1
			: openat(fd, entry->d_name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
		if (file >= 0 && fsync(file))
			result = -errno;
		if (file >= 0)
			close(file);
	}
	closedir(dir);
	return result ? result : fsync(fd) ? -errno : 0;
}

struct saving {
	const struct ckt_ctl_args *args;
	const struct ckt_ctl_client *client;
	struct ckt_ctl_partial *partial;
	json_t *description;
	int fd;
	int status;
};

/* The process is completely written: the image as a whole gets its name. */
static int commit(void *data)
{
	struct saving *saving = data;
	ckt_fault(CKT_FAULT_CTL_CLIENT_SAVED);
	int fd = openat(saving->fd, DESCRIPTION, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	int result = fd < 0 ? -errno : 0;
	if (!result &&
		(json_dumpfd(saving->description, fd, JSON_COMPACT) || write(fd, "\n", 1) != 1))
		result = -EIO;
	if (fd >= 0)
		close(fd);
	if (!result)
		result = sync_directory(saving->fd);
	saving->status = result
		? ckt_ctl_refuse(saving->partial->path, strerror(-result))
		: ckt_ctl_vouch_owner(saving->args, saving->client->session, saving->partial->fd);
	if (saving->status == CKT_EXIT_DONE)
		saving->status = ckt_ctl_partial_keep(saving->partial);
	return saving->status == CKT_EXIT_DONE ? 0 : -EIO;
}

/* Of CRIU's work; moved: so far, in all. */
struct bar {
	struct ckt_ctl_progress *progress;
	uint64_t moved;
};

static void bar_moved(uint64_t bytes, void *data)
{
	struct bar *bar = data;
	/* A process of CRIU's that has ended takes its count with it. */
	if (bytes > bar->moved) {
		ckt_ctl_progress_add(bar->progress, bytes - bar->moved);
		bar->moved = bytes;
	}
}

static struct bar bar_begin(const struct ckt_ctl_args *args, uint64_t total_bytes)
{
	struct bar bar = {.progress = ckt_ctl_progress_begin(args, NULL, "")};
	ckt_ctl_progress_phase(bar.progress, "process", total_bytes);
	return bar;
}

static int dump(const struct ckt_ctl_args *args, struct ckt_ctl_client *client,
	struct ckt_ctl_partial *partial)
{
	bool stop = args->stop;
	char message[MESSAGE_SIZE];
	struct saving saving = {.args = args,
		.client = client,
		.partial = partial,
		.fd = -1,
		.status = CKT_EXIT_DONE};
	/*
	 * Read before the dump: from then on only the program itself can start or end its threads.
	 */
	saving.description = describe(client);
	if (!saving.description || mkdirat(partial->fd, "client", 0700) ||
		(saving.fd = openat(partial->fd, "client", O_RDONLY | O_DIRECTORY | O_CLOEXEC)) <
			0) {
		json_decref(saving.description);
		return ckt_ctl_refuse(partial->path, strerror(errno));
	}
	struct bar bar = bar_begin(args, ckt_ctl_watch_resident(client->process.pid));
	int result = ckt_ctl_criu_dump(&client->criu, client->process.pid, saving.fd, !stop,
		stop ? commit : NULL, &saving, &(struct ckt_criu_progress){bar_moved, &bar},
		message, sizeof message);
	ckt_ctl_progress_end(bar.progress);
	/* With keep_running the process need not stay stopped until its image is on the disk. */
	if (!result && !stop)
		commit(&saving);
	int status = saving.status;
	if (result && status == CKT_EXIT_DONE)
		status = refuse(message);
	json_decref(saving.description);
	close(saving.fd);
	return status;
}

int ckt_ctl_client_save(const struct ckt_ctl_args *args, struct ckt_ctl_client *client,
	struct ckt_ctl_server *server, struct ckt_ctl_partial *partial)
{
	int status = make_quiet(client, server);
	if (status == CKT_EXIT_DONE)
		status = dump(args, client, partial);
	ckt_ctl_hold_remove(&client->process, client->session);
	return status;
}

/* ---- Copies */

static int copy_file(int from_dir, int to_dir, const char *name)
{
	int from = openat(from_dir, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	int to =
		from < 0 ? -1 : openat(to_dir, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	int result = to < 0 ? -errno : 0;
	for (ssize_t n = 1; !result && n > 0;) {
		n = sendfile(to, from, NULL, COPY_BYTES);
		if (n < 0)
			result = -errno;
	}
	if (from >= 0)
		close(from);
	if (to >= 0)
		close(to);
	return result;
}

int ckt_ctl_client_copy(int from_fd, int to_fd)
{
	int from = openat(from_fd, "client", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (from < 0)
		return errno == ENOENT ? 0 : -errno;
	int to = mkdirat(to_fd, "client", 0700)
		? -1
		: openat(to_fd, "client", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int result = to < 0 ? -errno : 0;
	DIR *dir = fdopendir(from);
	for (struct dirent *entry; !result && dir && (entry = readdir(dir));) {
		struct stat st;
		if (fstatat(from, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
			S_ISREG(st.st_mode))
			result = copy_file(from, to, entry->d_name);
	}
	if (!result)
		result = dir ? sync_directory(to) : -ENOMEM;
	if (dir)
		closedir(dir);
	else
		close(from);
	if (to >= 0)
		close(to);
	return result;
}

/* ---- Restore */

static bool take_ids(const json_t *list, struct ckt_ctl_client *client)
{
	size_t i, count = json_array_size(list);
	json_t *one;
	if (!count || count > CKT_PROCESS_TREE_MAX)
		return false;
	json_array_foreach(list, i, one)
	{
		json_int_t id = json_integer_value(one);
		if (id <= 0 || id > ID_MAX)
			return false;
		client->ids[client->id_count++] = (pid_t)id;
	}
	return true;
}

static bool take_stdio(const json_t *list, struct ckt_process *process)
{
	if (json_array_size(list) != 3)
		return false;
	for (size_t fd = 0; fd < 3; fd++) {
		const char *text = json_string_value(json_array_get(list, fd));
		if (!text)
			return false;
		snprintf(process->stdio[fd], sizeof process->stdio[fd], "%s", text);
	}
	return true;
}

static bool take_description(json_t *json, struct ckt_ctl_client *client)
{
	int format, pid;
	json_int_t uid, gid;
	json_t *ids, *stdio;
	const char *program, *session, *state_dir;
	struct ckt_process *process = &client->process;
	if (json_unpack(json, "{s:i, s:i, s:o, s:s, s:s, s:I, s:I, s:s, s:o}", "format", &format,
		    "pid", &pid, "ids", &ids, "program", &program, "session", &session, "uid", &uid,
		    "gid", &gid, "state_dir", &state_dir, "stdio", &stdio))
		return false;
	if (format != FORMAT || pid <= 0 || pid > ID_MAX || uid < 0 || uid >= UINT32_MAX ||
		gid < 0 || gid >= UINT32_MAX || state_dir[0] != '/' ||
		strlen(state_dir) >= sizeof process->state_dir ||
		strlen(session) != CKT_SESSION_ID_SIZE ||
		strspn(session, "0123456789abcdef") != CKT_SESSION_ID_SIZE)
		return false;
	process->pid = pid;
	process->uid = (uid_t)uid;
	process->gid = (gid_t)gid;
	strcpy(process->state_dir, state_dir);
	strcpy(client->session, session);
	snprintf(process->program, sizeof process->program, "%s", program);
	return take_ids(ids, client) && take_stdio(stdio, process);
}

static json_t *read_description(int dir_fd)
{
	struct stat st;
	int fd = openat(dir_fd, DESCRIPTION, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	json_t *json = fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
			st.st_size <= DESCRIPTION_MAX
		? json_loadfd(fd, JSON_REJECT_DUPLICATES, NULL)
		: NULL;
	if (fd >= 0)
		close(fd);
	return json;
}

/*
 * CRIU restores the process with the rights that the image names: if another user could have
 * written the image, that user must restore it.
 */
static bool is_ours(int fd)
{
	struct stat st;
	return fstat(fd, &st) == 0 && (st.st_uid == geteuid() || st.st_uid == 0) &&
		!(st.st_mode & (S_IWGRP | S_IWOTH));
}

static int check_ids(const struct ckt_ctl_client *client)
{
	char who[160], message[MESSAGE_SIZE];
	int64_t deadline_ms = ckt_net_now_ms() + OVER_MS;
	for (unsigned i = 0; i < client->id_count; i++) {
		while (ckt_ctl_process_is_over(client->ids[i]) && ckt_net_now_ms() < deadline_ms)
			nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
		if (!ckt_ctl_process_describe(client->ids[i], who, sizeof who))
			continue;
		snprintf(message, sizeof message,
			"%s needs process number %d, but %s has it here: end that "
			"process, restore on another host, or use a PID namespace: "
			"unshare --pid --fork --mount-proc cricketctl restore ...",
			client->process.program, (int)client->ids[i], who);
		return refuse(message);
	}
	return CKT_EXIT_DONE;
}

int ckt_ctl_client_open(const char *path, struct ckt_ctl_client *ret_client)
{
	char place[CKT_CTL_PATH_SIZE + 8], message[MESSAGE_SIZE];
	ret_client->fd = -1;
	snprintf(place, sizeof place, "%s/client", path);
	if (ckt_ctl_criu_find(&ret_client->criu, message, sizeof message))
		return refuse(message);
	int fd = open(place, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return ckt_ctl_refuse(path,
			errno == ENOENT ? "holds no client: it was written without "
					  "--with-client; restore it without --with-client, and "
					  "the client that waits for it continues"
					: strerror(errno));
	int status = CKT_EXIT_DONE;
	json_t *json = NULL;
	if (!is_ours(fd))
		status = ckt_ctl_refuse(place,
			"belongs to another user, or other users can write it: what is "
			"restored from it could be any program; restore it as that "
			"user, or, if you trust it, make it yours (chown -R)");
	else if (!(json = read_description(fd)) || !take_description(json, ret_client))
		status = ckt_ctl_refuse(place,
			"is not an image of a process that this version of Cricket can "
			"restore");
	json_decref(json);
	if (status == CKT_EXIT_DONE)
		status = check_ids(ret_client);
	if (status == CKT_EXIT_DONE)
		ret_client->fd = fd;
	else
		close(fd);
	return status;
}

void ckt_ctl_client_close(struct ckt_ctl_client *client)
{
	if (client->fd >= 0)
		close(client->fd);
	client->fd = -1;
}

static void drop_session(struct ckt_ctl_server *server, const char *session)
{
	ckt_control_session_args call = {.session = (char *)session};
	ckt_control_result result = {0};
	if (ckt_ctl_call(server, CKT_CONTROL_KILL, (xdrproc_t)xdr_ckt_control_session_args, &call,
		    (xdrproc_t)xdr_ckt_control_result, &result, ANSWER_MS, -1) == CKT_EXIT_DONE)
		ckt_ctl_result(&result);
	xdr_free((xdrproc_t)xdr_ckt_control_result, (char *)&result);
}

static bool is_pipe(const char *key)
{
	size_t length = strlen(key);
	return strncmp(key, "pipe:[", 6) == 0 && strspn(key + 6, "0123456789") == length - 7 &&
		key[length - 1] == ']';
}

/*
 * Pipes of its standard descriptors led to processes that are gone: our own descriptors replace
 * them.
 */
static unsigned collect_pipes(const struct ckt_process *process,
	struct ckt_criu_inherit ret_inherit[CKT_CRIU_INHERIT_MAX])
{
	unsigned count = 0;
	for (int fd = 0; fd < 3; fd++) {
		bool known = !is_pipe(process->stdio[fd]);
		for (unsigned i = 0; i < count && !known; i++)
			known = strcmp(ret_inherit[i].key, process->stdio[fd]) == 0;
		if (!known) {
			snprintf(ret_inherit[count].key, sizeof ret_inherit[count].key, "%s",
				process->stdio[fd]);
			ret_inherit[count++].fd = fd;
		}
	}
	return count;
}

/* The restored process has found its session. */
static int wait_claimed(
	struct ckt_ctl_server *server, const char *session, const struct ckt_ctl_client *client)
{
	int64_t deadline_ms = ckt_net_now_ms() + CLAIM_MS;
	char message[MESSAGE_SIZE];
	for (;;) {
		struct facts facts = {.prefix = session};
		int status = each_session(server, take_facts, &facts);
		if (status != CKT_EXIT_DONE)
			return status;
		/* A process that has ended by now was connected, too. */
		if (!facts.count || (!facts.silent && facts.state != CKT_STATE_RESTORED))
			return CKT_EXIT_DONE;
		if (ckt_net_now_ms() >= deadline_ms && facts.silent)
			return refuse_silent(session,
				"its client may not have reached it yet; see cricketctl ps, or end "
				"the session with cricketctl kill");
		if (ckt_net_now_ms() >= deadline_ms)
			break;
		nanosleep(&(struct timespec){.tv_nsec = LOOK_NS}, NULL);
	}
	snprintf(message, sizeof message,
		"process %d is restored but does not reach session %s: give it the "
		"address: cricketctl redirect %s --to HOST:PORT",
		(int)client->process.pid, session, session);
	return refuse(message);
}

int ckt_ctl_client_restore(const struct ckt_ctl_args *args, struct ckt_ctl_client *client,
	struct ckt_ctl_server *server, const char *session)
{
	char message[MESSAGE_SIZE];
	struct facts facts;
	struct ckt_criu_inherit inherit[CKT_CRIU_INHERIT_MAX];
	const char *address = args->client_address ? args->client_address
		: args->server                     ? args->server
						   : server->address;
	pid_t pid;
	ckt_fault(CKT_FAULT_CTL_CLIENT_RESTORE);
	int status = find_session(server, session, &facts);
	if (status == CKT_EXIT_DONE && facts.silent)
		status = refuse_silent(
			session, "its client was not restored; restore the image again");
	if (status == CKT_EXIT_DONE && strcmp(session, client->session) != 0)
		status = refuse("the client in this image belongs to another session");
	if (status == CKT_EXIT_DONE) {
		ckt_ctl_hold_remove(&client->process, session);
		int result =
			ckt_ctl_hold_redirect(&client->process, session, address, facts.generation);
		if (result) {
			snprintf(message, sizeof message, "%s: %s", client->process.state_dir,
				strerror(-result));
			status = refuse(message);
		}
	}
	if (status == CKT_EXIT_DONE) {
		struct bar bar = bar_begin(args, ckt_ctl_criu_image_bytes(client->fd));
		unsigned count = collect_pipes(&client->process, inherit);
		if (ckt_ctl_criu_restore(&client->criu, client->fd, inherit, count,
			    &(struct ckt_criu_progress){bar_moved, &bar}, &pid, message,
			    sizeof message))
			status = CKT_EXIT_REFUSED;
		ckt_ctl_progress_end(bar.progress);
		if (status != CKT_EXIT_DONE)
			refuse(message);
	}
	if (status != CKT_EXIT_DONE) {
		drop_session(server, session);
		return status;
	}
	return wait_claimed(server, session, client);
}
