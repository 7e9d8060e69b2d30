/* SPDX-License-Identifier: Apache-2.0 */
/*
 * DIR/job.json: which sessions a job's image holds; see job.h.  One line of JSON, written last, and
 * read as untrusted input.
 */
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "ctl/command.h"
#include "ctl/files.h"
#include "ctl/job/job.h"
#include "ctl/print.h"
#include "rpc/job.h"
#include "rpc/session.h"

#define NAME CKT_CTL_JOB_MANIFEST
enum { FORMAT = 1, BYTES_MAX = 1 << 20 };

/* ---- The salt of an encrypted image, in hexadecimal digits */

enum { SALT_TEXT = 2 * CKT_SEALED_SALT };

static void set_salt(json_t *entry, const uint8_t salt[CKT_SEALED_SALT])
{
	char text[SALT_TEXT + 1];
	for (unsigned i = 0; i < CKT_SEALED_SALT; i++)
		snprintf(text + 2 * i, 3, "%02x", salt[i]);
	json_object_set_new(entry, "salt", json_string(text));
}

/* False for what is none. */
static bool take_salt(const json_t *entry, struct ckt_ctl_job_entry *ret_entry)
{
	const json_t *value = json_object_get(entry, "salt");
	const char *text = json_string_value(value);
	if (!value)
		return true;
	if (!text || strlen(text) != SALT_TEXT || strspn(text, "0123456789abcdef") != SALT_TEXT)
		return false;
	for (unsigned i = 0; i < CKT_SEALED_SALT; i++) {
		const char digits[3] = {text[2 * i], text[2 * i + 1]};
		ret_entry->salt[i] = (uint8_t)strtoul(digits, NULL, 16);
	}
	ret_entry->sealed = true;
	return true;
}

int ckt_ctl_job_manifest_write(int dir_fd, const struct ckt_ctl_job *job)
{
	json_t *list = json_array();
	for (unsigned i = 0; i < job->rank_count; i++) {
		const struct ckt_ctl_rank *rank = &job->ranks[i];
		json_t *entry = json_pack("{s:s, s:i, s:o, s:i, s:o, s:o, s:I, s:I}", "session",
			rank->session, "server", (int)rank->server, "address",
			ckt_ctl_json_text(job->servers[rank->server].server.address), "gpu",
			rank->gpu, "program", ckt_ctl_json_text(rank->program), "client",
			ckt_ctl_json_text(rank->client), "pid", (json_int_t)rank->pid, "issued",
			(json_int_t)rank->cut.issued);
		if (job->plain.fd >= 0)
			set_salt(entry, rank->salt);
		json_array_append_new(list, entry);
	}
	json_t *json = json_pack("{s:i, s:s, s:I, s:o}", "format", FORMAT, "job", job->name,
		"saved", (json_int_t)time(NULL), "sessions", list);
	char *text = json ? json_dumps(json, JSON_COMPACT | JSON_SORT_KEYS) : NULL;
	json_decref(json);
	if (!text)
		return -ENOMEM;
	size_t size = strlen(text);
	int fd = openat(dir_fd, NAME, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	int result = fd < 0 ? -errno
		: write(fd, text, size) != (ssize_t)size || write(fd, "\n", 1) != 1 || fsync(fd)
		? -EIO
		: 0;
	if (fd >= 0)
		close(fd);
	free(text);
	return result;
}

static json_t *read_json(const char *path)
{
	char file[CKT_CTL_PATH_SIZE + 16];
	struct stat st;
	snprintf(file, sizeof file, "%s/%s", path, NAME);
	int fd = open(file, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	json_t *json = NULL;
	if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size <= BYTES_MAX)
		json = json_loadfd(fd, JSON_REJECT_DUPLICATES, NULL);
	if (fd >= 0)
		close(fd);
	return json;
}

/* The session's ID becomes a file name here: only the characters of an ID are allowed. */
static bool take_entry(json_t *json, const struct ckt_ctl_job_entry *before, unsigned count,
	struct ckt_ctl_job_entry *ret_entry)
{
	const char *session;
	int server, gpu;
	if (json_unpack(
		    json, "{s:s, s:i, s:i}", "session", &session, "server", &server, "gpu", &gpu) ||
		strlen(session) != CKT_SESSION_ID_SIZE ||
		strspn(session, "0123456789abcdef") != CKT_SESSION_ID_SIZE || server < 0 ||
		server >= CKT_CTL_SERVERS_MAX || gpu < -1 || gpu >= CKT_DEVICES_MAX)
		return false;
	for (unsigned i = 0; i < count; i++)
		if (strcmp(before[i].session, session) == 0)
			return false;
	*ret_entry = (struct ckt_ctl_job_entry){.server = (unsigned)server, .gpu = gpu};
	strcpy(ret_entry->session, session);
	return take_salt(json, ret_entry);
}

int ckt_ctl_job_manifest_read(const char *path, char ret_job[CKT_JOB_NAME_MAX + 1],
	struct ckt_ctl_job_entry **ret_entries, unsigned *ret_count)
{
	json_t *json = read_json(path), *list = NULL;
	const char *name = NULL;
	int format = 0;
	bool good = json &&
		!json_unpack(json, "{s:i, s:s, s:o}", "format", &format, "job", &name, "sessions",
			&list) &&
		format == FORMAT && ckt_job_name_good(name) && json_array_size(list) &&
		json_array_size(list) <= CKT_CTL_RANKS_MAX;
	struct ckt_ctl_job_entry *entries =
		good ? calloc(json_array_size(list), sizeof *entries) : NULL;
	unsigned count = 0;
	for (size_t i = 0; good && entries && i < json_array_size(list); i++, count++)
		good = take_entry(json_array_get(list, i), entries, count, &entries[count]);
	if (good && entries) {
		strcpy(ret_job, name);
		*ret_entries = entries;
		*ret_count = count;
	} else {
		free(entries);
	}
	json_decref(json);
	return good && entries
		? CKT_EXIT_DONE
		: ckt_ctl_refuse(path,
			  "holds no job that this version of Cricket can restore: name "
			  "the directory that checkpoint --job wrote");
}
