/* SPDX-License-Identifier: Apache-2.0 */
/* Daemons of an earlier server; see mps_parts.h. */
#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "server/daemon/session/mps_parts.h"
#include "server/daemon/session/owner_file.h"
#include "server/daemon/session/session.h"
#include "server/daemon/session/uid_group.h"

/* ---- What a session's file says of its daemon: its name, its GPU, its owner, and what the worker was told */

struct note {
	char name[CKT_MPS_NAME];
	char owner[CKT_IDENTITY_FILE_NAME];
	unsigned gpu, percent, below;
};

void ckt_mps_note(const struct ckt_session *session, char ret_text[CKT_MPS_NOTE])
{
	const struct ckt_mps_member *member = &session->mps;
	const struct ckt_mps_daemon *daemon = member->daemon;
	*ret_text = 0;
	if (daemon)
		snprintf(ret_text, CKT_MPS_NOTE, "%s %s %u %u %u", ckt_mps_daemon_name(daemon),
			daemon->owner, daemon->gpu, member->asked.percent, member->asked.below);
}

static bool read_note(const char *text, struct note *ret)
{
	int end = 0;
	_Static_assert(CKT_MPS_NAME == 13 && CKT_IDENTITY_FILE_NAME == 16, "widths below");
	return sscanf(text, "%12s %15s %2u %3u %1u%n", ret->name, ret->owner, &ret->gpu,
		       &ret->percent, &ret->below, &end) == 5 &&
		!text[end] && strlen(ret->name) == CKT_MPS_NAME - 1 &&
		strncmp(ret->name, CKT_MPS_PREFIX, strlen(CKT_MPS_PREFIX)) == 0 &&
		strspn(ret->name + strlen(CKT_MPS_PREFIX), "0123456789abcdef") == 8 &&
		ret->gpu < CKT_DEVICES_MAX && ret->percent <= 100 && ret->below <= 1;
}

/* ---- Its daemon */

static struct ckt_mps_daemon *find_name(const struct ckt_mps *mps, const char *name)
{
	struct ckt_mps_daemon *daemon = mps->list;
	while (daemon && strcmp(ckt_mps_daemon_name(daemon), name) != 0)
		daemon = daemon->next;
	return daemon;
}

/* The user to whom the directory belongs, as whom its daemon runs. */
static bool place_of(struct ckt_server *server, const char *directory, struct ckt_worker_user *user,
	struct ckt_mps_process_place *ret_place)
{
	struct stat status;
	*user = server->user;
	*ret_place = (struct ckt_mps_process_place){.program = server->mps->program};
	if (lstat(directory, &status) || !S_ISDIR(status.st_mode) ||
		ckt_mps_process_place(ret_place, server, user, directory))
		return false;
	if (user->change) {
		user->uid = status.st_uid;
		user->gid = status.st_gid;
	}
	return true;
}

static struct ckt_mps_daemon *adopt_daemon(struct ckt_server *server, const struct note *note)
{
	char path[CKT_PATH_MAX];
	struct ckt_worker_user user;
	struct ckt_mps_process_place place;
	snprintf(path, sizeof path, "%.3800s/%s", server->socket_dir, note->name);
	struct ckt_mps_daemon *daemon = place_of(server, path, &user, &place)
		? ckt_mps_daemon_new(server, note->owner, &user, note->gpu)
		: NULL;
	if (!daemon)
		return NULL;
	daemon->place = place;
	daemon->place.user = &daemon->user;
	daemon->adopted = true;
	daemon->state = CKT_MPS_RUNS;
	daemon->uid_group = ckt_uid_group_adopt(server, user.uid);
	ckt_info("MPS of GPU %u: found again in %s", daemon->gpu, path);
	return daemon;
}

void ckt_mps_adopt(struct ckt_session *session)
{
	struct ckt_server *server = session->server;
	char text[CKT_MPS_NOTE];
	struct note note;
	ckt_owner_file_read_space(session, text);
	if (!*text || !server->mps)
		return;
	struct ckt_mps_daemon *daemon =
		read_note(text, &note) ? find_name(server->mps, note.name) : NULL;
	if (!daemon && read_note(text, &note))
		daemon = adopt_daemon(server, &note);
	if (!daemon) {
		ckt_warning("session %s: the MPS by which it shares its GPU is not known: '%.80s'",
			session->id, text);
		return;
	}
	daemon->members++;
	session->mps = (struct ckt_mps_member){.daemon = daemon,
		.asked = {.space = true, .percent = note.percent, .below = note.below}};
	if (*note.owner == '@')
		snprintf(session->mps.asked.group, sizeof session->mps.asked.group, "%.14s",
			note.owner + 1);
}

/* ---- Daemons of nobody's */

/* Its own daemon may answer still. */
static void end_leftover(struct ckt_server *server, const char *directory)
{
	struct ckt_worker_user user;
	struct ckt_mps_process_place place;
	if (!place_of(server, directory, &user, &place))
		return;
	if (*server->mps->program)
		ckt_mps_process_wait(&place, CKT_MPS_QUIT, CKT_MPS_FINI_MS);
	ckt_mps_process_wait(&place, CKT_MPS_REMOVE, CKT_MPS_FINI_MS);
	rmdir(directory);
}

/* Those of an earlier server, once its workers are gone. */
void ckt_mps_settle(struct ckt_server *server)
{
	char path[CKT_PATH_MAX];
	struct dirent *entry;
	if (!server->mps)
		return;
	for (const struct ckt_session *s = server->sessions; s; s = s->next)
		if (!s->child) {
			server->mps->leftovers = true;
			return;
		}
	server->mps->leftovers = false;
	DIR *dir = opendir(server->socket_dir);
	while (dir && (entry = readdir(dir)))
		if (strncmp(entry->d_name, CKT_MPS_PREFIX, strlen(CKT_MPS_PREFIX)) == 0 &&
			!find_name(server->mps, entry->d_name) &&
			snprintf(path, sizeof path, "%.3800s/%.250s", server->socket_dir,
				entry->d_name) < (int)sizeof path)
			end_leftover(server, path);
	if (dir)
		closedir(dir);
}
