/* SPDX-License-Identifier: Apache-2.0 */
/* Who restores an image; see claim.h. */
#include "ctl/claim.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/boot_id.h"
#include "base/fault_point.h"
#include "ctl/files.h"
#include "ctl/print.h"
#include "rpc/control.h"
#include "rpc/net.h"

#define FILE_NAME "claim.json"

enum { FORMAT = 1, ANSWER_MS = 10000, PLACE_SIZE = 48 };

/* ---- What a claim says */

struct facts {
	char host[256], address[CKT_ADDRESS_TEXT_MAX], session[CKT_SESSION_ID_SIZE + 1];
	/* Which kernel, and which directory of it has the server's sockets; empty: not known. */
	char boot[CKT_BOOT_ID_SIZE], place[PLACE_SIZE];
	bool restored;
	uint32_t uid;
	int64_t when;
};

/*
 * The directory of the sockets of a server's workers.  A container may have another one under that
 * path, and another host the same name.
 */
static void place_of(const char *address, char ret_text[PLACE_SIZE])
{
	char path[CKT_ADDRESS_TEXT_MAX + 8];
	struct stat st;
	ret_text[0] = 0;
	if (strncmp(address, "unix:", 5) != 0)
		return;
	snprintf(path, sizeof path, "%s.d", address + 5);
	if (stat(path, &st) == 0 && S_ISDIR(st.st_mode))
		snprintf(ret_text, PLACE_SIZE, "%llx:%llx", (unsigned long long)st.st_dev,
			(unsigned long long)st.st_ino);
}

/* A server is its host and its socket, over whatever address it was reached. */
static void facts_of(struct ckt_ctl_server *server, const char *session, struct facts *ret_facts)
{
	ckt_control_info_res info = {0};
	char here[256] = "";
	*ret_facts = (struct facts){.uid = getuid(), .when = (int64_t)time(NULL)};
	gethostname(here, sizeof here - 1);
	snprintf(ret_facts->host, sizeof ret_facts->host, "%s", here);
	snprintf(ret_facts->address, sizeof ret_facts->address, "%s", server->address);
	snprintf(ret_facts->session, sizeof ret_facts->session, "%s", session);
	if (!server->is_unix &&
		ckt_net_call(server->fd, CRICKET_CONTROL_PROG, CKT_CONTROL_INFO, NULL, NULL,
			(xdrproc_t)xdr_ckt_control_info_res, &info, ckt_net_now_ms() + ANSWER_MS,
			-1) == 0) {
		snprintf(ret_facts->host, sizeof ret_facts->host, "%s", info.host);
		snprintf(ret_facts->address, sizeof ret_facts->address, "unix:%.250s", info.socket);
		xdr_free((xdrproc_t)xdr_ckt_control_info_res, (char *)&info);
	}
	/* Of another host they say nothing. */
	if (strcmp(ret_facts->host, here) == 0) {
		ckt_boot_id(ret_facts->boot);
		place_of(ret_facts->address, ret_facts->place);
	}
}

static bool take_text(const json_t *json, const char *key, char *ret_text, size_t size)
{
	const char *text = json_string_value(json_object_get(json, key));
	return text && (size_t)snprintf(ret_text, size, "%s", text) < size;
}

static bool parse(const char *data, size_t size, struct facts *ret_facts)
{
	struct facts facts = {0};
	json_t *json = json_loadb(data, size, JSON_REJECT_DUPLICATES, NULL);
	const json_t *restored = json_object_get(json, "restored"),
		     *uid = json_object_get(json, "uid"), *when = json_object_get(json, "when");
	bool good = json_integer_value(json_object_get(json, "format")) == FORMAT &&
		take_text(json, "host", facts.host, sizeof facts.host) &&
		take_text(json, "boot", facts.boot, sizeof facts.boot) &&
		take_text(json, "place", facts.place, sizeof facts.place) &&
		take_text(json, "server", facts.address, sizeof facts.address) &&
		take_text(json, "session", facts.session, sizeof facts.session) &&
		json_is_boolean(restored) && json_is_integer(uid) && json_is_integer(when) &&
		strspn(facts.session, "0123456789abcdef") == strlen(facts.session);
	facts.restored = json_is_true(restored);
	facts.uid = (uint32_t)json_integer_value(uid);
	facts.when = json_integer_value(when);
	json_decref(json);
	if (good)
		*ret_facts = facts;
	return good;
}

/* All of it or, if the host fails, a part that is no claim; 0 or -errno. */
static int write_text(int fd, const char *data, size_t size)
{
	ssize_t n;
	do
		n = pwrite(fd, data, size, 0);
	while (n < 0 && errno == EINTR);
	if (n < 0 || (size_t)n != size)
		return n < 0 ? -errno : -ENOSPC;
	return ftruncate(fd, (off_t)size) || fsync(fd) ? -errno : 0;
}

static int write_claim(int fd, const struct facts *facts)
{
	json_t *json = json_pack("{s:i, s:o, s:s, s:s, s:o, s:s, s:b, s:I, s:I}", "format", FORMAT,
		"host", ckt_ctl_json_text(facts->host), "boot", facts->boot, "place", facts->place,
		"server", ckt_ctl_json_text(facts->address), "session", facts->session, "restored",
		facts->restored, "uid", (json_int_t)facts->uid, "when", (json_int_t)facts->when);
	char *text = json ? json_dumps(json, JSON_COMPACT) : NULL;
	int result = text ? write_text(fd, text, strlen(text)) : -ENOMEM;
	free(text);
	json_decref(json);
	return result;
}

/* ---- Whether who had it is gone */

enum verdict { GONE, THERE, UNKNOWN };

/* The worker of a server that is gone listens until its session has ended. */
static enum verdict ask_worker(const struct facts *facts)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	if (!*facts->session ||
		snprintf(address.sun_path, sizeof address.sun_path, "%s.d/%s.sock",
			facts->address + strlen("unix:"),
			facts->session) >= (int)sizeof address.sun_path)
		return UNKNOWN;
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return UNKNOWN;
	int error = connect(fd, (struct sockaddr *)&address, sizeof address) ? errno : 0;
	close(fd);
	return error == ECONNREFUSED || error == ENOENT ? GONE
		: error == 0 || error == EAGAIN         ? THERE
							: UNKNOWN;
}

/* A restore whose cricketctl was killed has no name yet while it starts. */
static bool may_be(const ckt_control_session *one, const struct facts *facts)
{
	return strcmp(one->session, facts->session) == 0 ||
		(!facts->restored && one->state == 0 /* CKT_STATE_STARTING */);
}

static enum verdict ask_list(struct ckt_ctl_server *server, const struct facts *facts)
{
	struct ckt_ctl_pages pages = {0};
	enum verdict verdict = UNKNOWN;
	for (bool more = true; more && verdict != THERE;) {
		ckt_control_list_args call = {.after = pages.after};
		ckt_control_list_res res = {0};
		if (ckt_net_call(server->fd, CRICKET_CONTROL_PROG, CKT_CONTROL_LIST,
			    (xdrproc_t)xdr_ckt_control_list_args, &call,
			    (xdrproc_t)xdr_ckt_control_list_res, &res, ckt_net_now_ms() + ANSWER_MS,
			    -1))
			return UNKNOWN;
		verdict = GONE;
		const char *last = NULL;
		for (u_int i = 0; i < res.sessions.sessions_len; i++) {
			last = res.sessions.sessions_val[i].session;
			if (may_be(&res.sessions.sessions_val[i], facts))
				verdict = THERE;
		}
		int next = ckt_ctl_pages_next(&pages, res.more, last);
		more = next > 0;
		xdr_free((xdrproc_t)xdr_ckt_control_list_res, (char *)&res);
		if (next < 0 && verdict != THERE)
			return UNKNOWN;
	}
	return verdict;
}

/*
 * Only a user who sees that session in the list can say that it is not there: over a UNIX socket
 * of this host, who claimed it, and root.
 */
static enum verdict ask(const struct ckt_ctl_args *args, const struct facts *facts)
{
	struct facts here = {0};
	struct ckt_ctl_server server = {.fd = -1};
	struct ckt_ctl_args there = *args;
	char message[1200];
	gethostname(here.host, sizeof here.host - 1);
	ckt_boot_id(here.boot);
	place_of(facts->address, here.place);
	/* After a restart of the host nobody can tell it from another one. */
	if (strcmp(facts->host, here.host) != 0 || strcmp(facts->boot, here.boot) != 0 ||
		!*facts->boot || strcmp(facts->place, here.place) != 0 || !*facts->place)
		return UNKNOWN;
	if (getuid() != 0 && getuid() != facts->uid)
		return UNKNOWN;
	there.server = facts->address;
	int status = ckt_ctl_try_connect(&there, &server, message, sizeof message);
	if (status == CKT_EXIT_NO_SERVER)
		return ask_worker(facts);
	if (status != CKT_EXIT_DONE)
		return UNKNOWN;
	enum verdict verdict = ask_list(&server, facts);
	ckt_ctl_disconnect(&server);
	return verdict;
}

static int refuse_taken(
	const char *path, const struct facts *facts, enum verdict verdict, bool known)
{
	char message[1600], when[64], address[CKT_ADDRESS_TEXT_MAX], host[256];
	if (!known)
		return ckt_ctl_refuse(path,
			"its " FILE_NAME " cannot be read: if no server goes on with the image, "
			"add --again; for a further copy, --fork");
	snprintf(message, sizeof message, "session %s was restored from it at %s on %s, %s, %s: %s",
		*facts->session ? facts->session : "?",
		ckt_ctl_clean(facts->address, address, sizeof address),
		ckt_ctl_clean(facts->host, host, sizeof host),
		ckt_ctl_time_text(facts->when, when, sizeof when),
		verdict == THERE ? "and goes on there" : "and may go on there",
		verdict == THERE
			? "end it there first, or make a further copy with --fork"
			: "if that server has lost it, add --again; for a further copy, --fork");
	return ckt_ctl_refuse(path, message);
}

/* ---- The file */

static int refuse_locked(const char *path)
{
	return ckt_ctl_refuse(path,
		"another cricketctl is restoring it: wait until that one has ended, or make a "
		"further copy with --fork");
}

/* Of the open file and no other process; it goes with the descriptor. */
static int lock_file(int fd)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	return fcntl(fd, F_OFD_SETLK, &lock) ? -errno : 0;
}

/* Whether the directory's name still leads to the open file. */
static bool is_current(int directory, int fd)
{
	struct stat there, ours;
	return fstatat(directory, FILE_NAME, &there, AT_SYMLINK_NOFOLLOW) == 0 &&
		fstat(fd, &ours) == 0 && there.st_ino == ours.st_ino && there.st_dev == ours.st_dev;
}

/* Open and locked.  -EAGAIN: another process has the lock. */
static int open_locked(int directory, int *ret_fd, bool *ret_made)
{
	enum { TRIES = 100 };
	for (int i = 0; i < TRIES; i++) {
		bool made = true;
		int fd = openat(directory, FILE_NAME,
			O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
		if (fd < 0 && errno == EEXIST) {
			made = false;
			fd = openat(directory, FILE_NAME,
				O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
		}
		if (fd < 0 && errno == ENOENT)
			continue;
		int result = fd < 0 ? -errno : lock_file(fd);
		if (!result && is_current(directory, fd)) {
			*ret_fd = fd;
			*ret_made = made;
			return 0;
		}
		if (fd >= 0)
			close(fd);
		if (result)
			return result == -EACCES && fd >= 0 ? -EAGAIN : result;
	}
	return -EAGAIN;
}

static int refuse_open(const char *path, int result)
{
	char message[400];
	if (result == -EAGAIN)
		return refuse_locked(path);
	snprintf(message, sizeof message,
		"cannot write its " FILE_NAME ", which keeps a second server from going on with "
		"the image: %s: copy the image, or add --fork if nobody else restores it",
		strerror(-result));
	return ckt_ctl_refuse(path, message);
}

/* Who has it by now; the file is locked, so that restore is over, or its cricketctl died. */
static int judge(const struct ckt_ctl_args *args, const char *path,
	const struct ckt_ctl_claim *claim, const struct facts *mine)
{
	struct facts facts = {0};
	/* Nothing was written: that restore had not begun. */
	if (args->again || !claim->before_size)
		return CKT_EXIT_DONE;
	if (!parse(claim->before, claim->before_size, &facts))
		return refuse_taken(path, &facts, UNKNOWN, false);
	/* The server itself refuses a session that it has. */
	if (strcmp(facts.address, mine->address) == 0 && strcmp(facts.host, mine->host) == 0)
		return CKT_EXIT_DONE;
	enum verdict verdict = ask(args, &facts);
	return verdict == GONE ? CKT_EXIT_DONE : refuse_taken(path, &facts, verdict, true);
}

int ckt_ctl_claim_take(const struct ckt_ctl_args *args, struct ckt_ctl_server *server,
	const char *path, int directory, const char *session, struct ckt_ctl_claim *ret_claim)
{
	struct ckt_ctl_claim claim = {.directory = -1, .fd = -1};
	struct facts mine;
	*ret_claim = claim;
	if (args->fork)
		return CKT_EXIT_DONE;
	facts_of(server, session, &mine);
	int result = open_locked(directory, &claim.fd, &claim.made);
	if (result)
		return refuse_open(path, result);
	ssize_t n = pread(claim.fd, claim.before, sizeof claim.before, 0);
	claim.before_size = n > 0 ? (size_t)n : 0;
	int status = judge(args, path, &claim, &mine);
	if (status == CKT_EXIT_DONE) {
		result = write_claim(claim.fd, &mine);
		if (!result && claim.made && fsync(directory))
			result = -errno;
		claim.directory = fcntl(directory, F_DUPFD_CLOEXEC, 3);
		if (result || claim.directory < 0)
			status = refuse_open(path, result ? result : -errno);
	}
	if (status != CKT_EXIT_DONE) {
		if (claim.made)
			unlinkat(directory, FILE_NAME, 0);
		close(claim.fd);
		return status;
	}
	ckt_fault(CKT_FAULT_CTL_CLAIMED);
	*ret_claim = claim;
	return CKT_EXIT_DONE;
}

void ckt_ctl_claim_settle(struct ckt_ctl_claim *claim, bool restored)
{
	struct facts facts;
	char now[CKT_CLAIM_TEXT_MAX];
	if (claim->fd < 0)
		return;
	int result = 0;
	if (restored) {
		ssize_t n = pread(claim->fd, now, sizeof now, 0);
		if (n > 0 && parse(now, (size_t)n, &facts)) {
			facts.restored = true;
			result = write_claim(claim->fd, &facts);
		}
	} else if (claim->before_size) {
		result = write_text(claim->fd, claim->before, claim->before_size);
	} else if (unlinkat(claim->directory, FILE_NAME, 0)) {
		result = -errno;
	}
	if (result)
		fprintf(stderr, "cricketctl: note: " FILE_NAME " of the image is out of date: %s\n",
			strerror(-result));
	close(claim->fd);
	close(claim->directory);
	claim->fd = claim->directory = -1;
}
