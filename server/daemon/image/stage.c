/* SPDX-License-Identifier: Apache-2.0 */
/* Stages; see stage.h. */
#include "server/daemon/image/stage.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fault_point.h"
#include "base/log.h"
#include "server/daemon/image/image_space.h"
#include "server/daemon/log_limited.h"
#include "server/daemon/paths.h"
#include "server/daemon/peer/control.h"
#include "server/daemon/peer/peer_audit.h"
#include "server/daemon/policy/ask.h"

struct ckt_stage {
	struct ckt_stage *next;
	struct ckt_peer *peer; /* removed with it */
	char name[CKT_CONTROL_NAME_MAX + 1];
	uint32_t uid;
	bool temporary, anonymous;
	int fd;
	struct ckt_stage_data *data;  /* NULL until a data connection comes */
	struct ckt_identity identity; /* the identity for which it counts; a kept one: its owner */
	struct ckt_image_space *space;
	/* of the space; data connections' bytes are added when they end */
	uint64_t counted_bytes;
};

bool ckt_stage_name_good(const char *name)
{
	size_t length = strlen(name);
	return length && length <= CKT_CONTROL_NAME_MAX &&
		strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-") == length;
}

int ckt_stage_fd(const struct ckt_stage *stage)
{
	return stage->fd;
}

/* Plain files only are in it. */
static void remove_directory(int parent, const char *name)
{
	int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
	if (!dir && fd >= 0)
		close(fd);
	for (struct dirent *entry; dir && (entry = readdir(dir));)
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
			unlinkat(dirfd(dir), entry->d_name, 0);
	if (dir)
		closedir(dir);
	if (unlinkat(parent, name, AT_REMOVEDIR) && errno != ENOENT)
		ckt_warning("cannot remove stage %s: %s", name, strerror(errno));
}

static uint64_t directory_bytes(int fd)
{
	uint64_t bytes = 0;
	int own = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = own >= 0 ? fdopendir(own) : NULL;
	if (!dir && own >= 0)
		close(own);
	for (struct dirent *entry; dir && (entry = readdir(dir));) {
		struct stat st;
		if (fstatat(own, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
			S_ISREG(st.st_mode))
			bytes += (uint64_t)st.st_blocks * 512;
	}
	if (dir)
		closedir(dir);
	return bytes;
}

static uint32_t kept_owner(const struct ckt_server *server, const char *name);

/* Images that an earlier server kept count for their owners. */
static void count_kept(struct ckt_server *server, const char *name)
{
	int fd =
		openat(server->image_dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct ckt_identity identity = ckt_identity_of_owner(kept_owner(server, name));
	struct ckt_image_space *space =
		fd >= 0 ? ckt_daemon_image_space_get(server, &identity) : NULL;
	if (space)
		ckt_daemon_image_space_note(space, directory_bytes(fd));
	ckt_daemon_image_space_put(space);
	if (fd >= 0)
		close(fd);
}

int ckt_stages_init(struct ckt_server *server, char *ret_message, size_t message_size)
{
	char *path = server->image_dir;
	struct stat st;
	if (server->options.image_dir)
		snprintf(path, CKT_PATH_MAX, "%s", server->options.image_dir);
	else
		snprintf(path, CKT_PATH_MAX, "%.4000s.images", server->socket_path);
	int result = ckt_paths_make_parent(path);
	if (!result && mkdir(path, 0700) && errno != EEXIST)
		result = -errno;
	server->image_dir_fd = result ? -1 : open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (!result && server->image_dir_fd < 0)
		result = -errno;
	/* Images hold what programs computed, which is private. */
	if (!result &&
		(fstat(server->image_dir_fd, &st) || st.st_uid != geteuid() || st.st_mode & 0077))
		result = -EPERM;
	if (result) {
		snprintf(ret_message, message_size, "--image-dir: '%s': %s", path,
			result == -EPERM ? "must be a directory of the server's user with mode 0700"
					 : strerror(-result));
		return result;
	}
	int fd = openat(server->image_dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
	for (struct dirent *entry; dir && (entry = readdir(dir));)
		if (strncmp(entry->d_name, "tmp-", 4) == 0)
			remove_directory(server->image_dir_fd, entry->d_name);
		else if (ckt_stage_name_good(entry->d_name))
			count_kept(server, entry->d_name);
	if (dir)
		closedir(dir);
	return 0;
}

static void stage_free(struct ckt_server *server, struct ckt_stage *stage)
{
	struct ckt_stage **place = &server->stages;
	while (*place && *place != stage)
		place = &(*place)->next;
	if (*place)
		*place = stage->next;
	ckt_stage_data_destroy(stage->data);
	if (stage->temporary)
		remove_directory(server->image_dir_fd, stage->name);
	if (stage->space) {
		ckt_daemon_image_space_release(stage->space, stage->counted_bytes);
		if (!stage->temporary)
			ckt_daemon_image_space_note(stage->space, directory_bytes(stage->fd));
	}
	ckt_daemon_image_space_put(stage->space);
	if (stage->fd >= 0)
		close(stage->fd);
	free(stage);
}

unsigned ckt_stages_of(const struct ckt_server *server, const struct ckt_identity *identity)
{
	unsigned count = 0;
	for (const struct ckt_stage *stage = server->stages; stage; stage = stage->next)
		count += ckt_identity_same(&stage->identity, identity);
	return count;
}

unsigned ckt_stages_of_peer(const struct ckt_peer *peer)
{
	unsigned count = 0;
	for (const struct ckt_stage *stage = peer->server->stages; stage; stage = stage->next)
		count += stage->peer == peer;
	return count;
}

bool ckt_stage_has_room(struct ckt_peer *peer, struct ckt_stage *stage, uint64_t bytes,
	char buffer[CKT_MESSAGE_MAX])
{
	struct ckt_decision decision;
	if (!stage->space)
		return true;
	ckt_daemon_image_space_check(stage->space, stage->fd, bytes, &decision);
	if (decision.answer)
		snprintf(buffer, CKT_MESSAGE_MAX,
			"an image of %llu bytes does not fit on %.100s: %.300s",
			(unsigned long long)bytes, peer->server->host, decision.reason);
	return !decision.answer;
}

void ckt_stage_recount(struct ckt_peer *peer, const char *name)
{
	struct ckt_stage *stage = ckt_stage_find(peer, name);
	if (!stage || !stage->space)
		return;
	ckt_daemon_image_space_release(stage->space, stage->counted_bytes);
	stage->counted_bytes = directory_bytes(stage->fd);
	ckt_daemon_image_space_note(stage->space, stage->counted_bytes);
}

void ckt_stages_fini(struct ckt_server *server)
{
	while (server->stages)
		stage_free(server, server->stages);
	if (server->image_dir_fd > 0)
		close(server->image_dir_fd);
	if (!server->options.image_dir && *server->image_dir)
		rmdir(server->image_dir);
}

int ckt_stage_give(struct ckt_peer *peer, const char *stage, int dir_fd, const char *name)
{
	struct ckt_server *server = peer->server;
	struct ckt_stage *given = ckt_stage_find(peer, stage);
	if (!given || !given->temporary || given->peer != peer)
		return -ENOENT;
	/* From here on no thread writes in it. */
	ckt_stage_data_destroy(given->data);
	given->data = NULL;
	/* An earlier try's: a plain rename replaces an empty directory only. */
	if (renameat2(server->image_dir_fd, given->name, dir_fd, name, RENAME_NOREPLACE))
		return -errno;
	if (given->space)
		ckt_daemon_image_space_release(given->space, given->counted_bytes);
	ckt_daemon_image_space_put(given->space);
	given->space = NULL;
	given->temporary = false;
	stage_free(server, given);
	return 0;
}

void ckt_stage_peer_gone(struct ckt_peer *peer)
{
	for (struct ckt_stage *stage = peer->server->stages, *next; stage; stage = next) {
		next = stage->next;
		if (stage->peer == peer)
			stage_free(peer->server, stage);
	}
}

static struct ckt_stage *stage_new(
	struct ckt_peer *peer, const char *name, uint32_t uid, bool temporary)
{
	struct ckt_server *server = peer->server;
	struct ckt_stage *stage = calloc(1, sizeof *stage);
	if (!stage)
		return NULL;
	*stage = (struct ckt_stage){.peer = peer,
		.uid = uid,
		.temporary = temporary,
		.anonymous = temporary && ckt_peer_is_anonymous(peer)};
	snprintf(stage->name, sizeof stage->name, "%s", name);
	stage->fd =
		openat(server->image_dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (stage->fd < 0) {
		free(stage);
		return NULL;
	}
	/* A kept stage is already in its owner's count. */
	stage->identity = temporary ? ckt_identity_of_peer(peer) : ckt_identity_of_owner(uid);
	stage->counted_bytes = temporary ? 0 : directory_bytes(stage->fd);
	stage->space = ckt_daemon_image_space_get(server, &stage->identity);
	stage->next = server->stages;
	server->stages = stage;
	return stage;
}

/* The owner of a kept stage; if the file cannot be read, root owns it. */
static uint32_t kept_owner(const struct ckt_server *server, const char *name)
{
	char file[CKT_CONTROL_NAME_MAX + 16], text[32] = "";
	snprintf(file, sizeof file, "%s.owner", name);
	int fd = openat(server->image_dir_fd, file, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	ssize_t n = fd >= 0 ? read(fd, text, sizeof text - 1) : -1;
	if (fd >= 0)
		close(fd);
	uint32_t owner = n > 0 ? (uint32_t)strtoul(text, NULL, 10) : 0;
	/* Servers of earlier versions had one token, whose owner had no number. */
	return owner == CKT_UID_UNKNOWN ? ckt_owner_of_token(CKT_SINGLE_TOKEN_NAME) : owner;
}

/*
 * A peer without an identity alone knows the random name of its stage, so its further connections
 * show that name.
 */
static bool may_use(const struct ckt_peer *peer, const struct ckt_stage *stage)
{
	return stage->anonymous
		? ckt_peer_is_anonymous(peer) || ckt_peer_role(peer) == CKT_ROLE_ADMINISTRATOR
		: ckt_peer_may(peer, stage->uid);
}

struct ckt_stage *ckt_stage_find(struct ckt_peer *peer, const char *name)
{
	if (!ckt_stage_name_good(name))
		return NULL;
	for (struct ckt_stage *stage = peer->server->stages; stage; stage = stage->next)
		if (strcmp(stage->name, name) == 0 && (stage->temporary || stage->peer == peer))
			return may_use(peer, stage) ? stage : NULL;
	if (strncmp(name, "tmp-", 4) == 0)
		return NULL;
	uint32_t owner = kept_owner(peer->server, name);
	struct ckt_decision decision;
	if (!ckt_peer_may(peer, owner))
		return NULL;
	ckt_ask_descriptor(peer, &decision);
	return decision.answer ? NULL : stage_new(peer, name, owner, false);
}

/* ---- Calls */

void ckt_control_stage_make(struct ckt_peer *peer, void *args, int *passed_fd)
{
	char name[CKT_CONTROL_NAME_MAX + 1];
	uint64_t number[2];
	ckt_control_stage_res res = {.stage = (char *)""};
	struct ckt_stage *stage = NULL;
	char buffer[CKT_MESSAGE_MAX] = "";
	struct ckt_decision decision;
	(void)args, (void)passed_fd;
	ckt_ask_stage(peer, &decision);
	/* Two numbers: the name is all that a peer without a uid can show. */
	bool random = !decision.answer && getrandom(number, sizeof number, 0) == sizeof number;
	snprintf(name, sizeof name, "tmp-%016llx%016llx", (unsigned long long)number[0],
		(unsigned long long)number[1]);
	if (random && mkdirat(peer->server->image_dir_fd, name, 0700) == 0)
		stage = stage_new(peer, name, ckt_peer_owner(peer), true);
	ckt_fault(CKT_FAULT_SERVER_STAGE_MADE);
	if (stage)
		res.stage = name;
	else if (decision.answer)
		res.result = (ckt_control_result){CKT_CONTROL_REFUSED, decision.reason};
	else
		ckt_control_result_set(&res.result, buffer, CKT_CONTROL_REFUSED,
			"cannot make a directory in --image-dir of the server on %s: %s",
			peer->server->host, strerror(errno));
	if (!res.result.message)
		res.result.message = buffer;
	ckt_peer_reply(peer, (xdrproc_t)xdr_ckt_control_stage_res, &res);
}

static struct ckt_stage *find_or_say(struct ckt_peer *peer, const char *name,
	ckt_control_result *ret_result, char buffer[CKT_MESSAGE_MAX])
{
	struct ckt_stage *stage = ckt_stage_find(peer, name);
	*ret_result = (ckt_control_result){CKT_CONTROL_OK, (char *)""};
	if (!stage)
		ckt_control_result_set(ret_result, buffer, CKT_CONTROL_REFUSED,
			"there is no image '%s' on %s, or it belongs to another user",
			ckt_stage_name_good(name) ? name : "?", peer->server->host);
	return stage;
}

void ckt_control_stage_list(struct ckt_peer *peer, void *decoded, int *passed_fd)
{
	ckt_control_stage_args *args = decoded;
	static ckt_control_file files[CKT_CONTROL_FILES_MAX];
	static char names[CKT_CONTROL_FILES_MAX][CKT_CONTROL_NAME_MAX + 1];
	char buffer[CKT_MESSAGE_MAX];
	ckt_control_files_res res = {.files = {.files_val = files}};
	struct ckt_stage *stage = find_or_say(peer, args->stage, &res.result, buffer);
	int fd = stage ? openat(stage->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
	DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
	(void)passed_fd;
	for (struct dirent *entry; dir && (entry = readdir(dir));) {
		struct stat st;
		u_int i = res.files.files_len;
		if (!ckt_stage_name_good(entry->d_name) || i >= CKT_CONTROL_FILES_MAX ||
			fstatat(fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) ||
			!S_ISREG(st.st_mode))
			continue;
		snprintf(names[i], sizeof names[i], "%.64s", entry->d_name);
		files[i] = (ckt_control_file){names[i], (u_quad_t)st.st_size};
		res.files.files_len++;
	}
	if (dir)
		closedir(dir);
	ckt_peer_reply(peer, (xdrproc_t)xdr_ckt_control_files_res, &res);
}

void ckt_control_stage_remove(struct ckt_peer *peer, void *decoded, int *passed_fd)
{
	ckt_control_stage_args *args = decoded;
	char buffer[CKT_MESSAGE_MAX], file[CKT_CONTROL_NAME_MAX + 16];
	ckt_control_result result;
	struct ckt_stage *stage = find_or_say(peer, args->stage, &result, buffer);
	(void)passed_fd;
	if (stage) {
		snprintf(file, sizeof file, "%s.owner", stage->name);
		if (!stage->temporary)
			unlinkat(peer->server->image_dir_fd, file, 0);
		stage->temporary = true;
		stage_free(peer->server, stage);
	}
	ckt_peer_reply(peer, (xdrproc_t)xdr_ckt_control_result, &result);
}

/* The owner's file comes first: only root may use a directory without it. */
static int keep(struct ckt_server *server, struct ckt_stage *stage, const char *name)
{
	char file[CKT_CONTROL_NAME_MAX + 16];
	if (!ckt_stage_name_good(name) || strncmp(name, "tmp-", 4) == 0)
		return -EINVAL;
	if (faccessat(server->image_dir_fd, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
		return -EEXIST;
	snprintf(file, sizeof file, "%s.owner", name);
	int fd = openat(server->image_dir_fd, file,
		O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	/* The worker wrote only the files; the server syncs the directory. */
	int result =
		dprintf(fd, "%u\n", stage->uid) < 0 || fsync(fd) || fsync(stage->fd) ? -errno : 0;
	close(fd);
	if (!result &&
		(renameat(server->image_dir_fd, stage->name, server->image_dir_fd, name) ||
			fsync(server->image_dir_fd)))
		result = -errno;
	if (result)
		unlinkat(server->image_dir_fd, file, 0);
	return result;
}

void ckt_control_stage_keep(struct ckt_peer *peer, void *decoded, int *passed_fd)
{
	ckt_control_keep_args *args = decoded;
	char buffer[CKT_MESSAGE_MAX];
	ckt_control_result result;
	struct ckt_stage *stage = find_or_say(peer, args->stage, &result, buffer);
	(void)passed_fd;
	int error = !stage          ? 0
		: !stage->temporary ? -EINVAL
		: stage->anonymous  ? -EACCES
				    : keep(peer->server, stage, args->name);
	if (error) {
		ckt_control_result_set(&result, buffer, CKT_CONTROL_REFUSED,
			"cannot keep the image as '%.64s': %s",
			ckt_stage_name_good(args->name) ? args->name : "?",
			error == -EINVAL
				? "a name consists of at most 64 characters of a-z, 0-9 and -"
				: error == -EACCES
				? "over TCP without a token the image would have no "
				  "owner; use the server's UNIX socket or a token"
				: strerror(-error));
	} else if (stage) {
		snprintf(stage->name, sizeof stage->name, "%s", args->name);
		stage->temporary = false;
	}
	ckt_peer_reply(peer, (xdrproc_t)xdr_ckt_control_result, &result);
}

void ckt_control_stage_data(struct ckt_peer *peer, void *decoded, int *passed_fd)
{
	ckt_control_stage_args *args = decoded;
	char buffer[CKT_MESSAGE_MAX];
	ckt_control_result result;
	struct ckt_stage *stage = find_or_say(peer, args->stage, &result, buffer);
	(void)passed_fd;
	if (stage && !stage->data)
		stage->data = ckt_stage_data_create(stage->fd, stage->space);
	ckt_peer_reply(peer, (xdrproc_t)xdr_ckt_control_result, &result);
	if (!stage)
		return;
	struct ckt_identity identity = ckt_identity_of_peer(peer);
	/* Later bytes in the socket are the thread's to read. */
	struct ckt_stage_data *data = stage->data;
	int fd = !data || ckt_record_stream_queued(&peer->stream)
		? -1
		: ckt_record_stream_detach(&peer->stream);
	/* Its thread has a time limit of its own, which allows for slow disks. */
	if (fd >= 0)
		ckt_net_must_read(fd, 0);
	int error = fd < 0 ? -EPROTO
			   : ckt_stage_data_serve(data, fd, &identity, ckt_peer_audit_pieces(peer));
	if (error)
		ckt_daemon_log_limited(peer->server, CKT_LIMIT_IMAGES,
			"%s: cannot serve an image: %s", peer->who.text, strerror(-error));
	/* The end of this connection removes a kept stage that it opened, but not the thread. */
	if (data && !stage->temporary && stage->peer == peer) {
		stage->data = NULL;
		ckt_stage_data_release(data);
	}
	ckt_peer_close(peer);
}
