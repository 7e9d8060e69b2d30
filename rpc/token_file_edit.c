/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Adding and removing sections of the file of tokens as text, so that the administrator's own lines
 * and comments stay; see token_file.h.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "rpc/token_file.h"

enum { FILE_MAX = 4 << 20 };

/* An edit: the file as it was, and what it becomes. */
struct edit {
	const char *path;
	char *message;
	size_t message_size;
	int lock_fd;
	struct stat st; /* of the old file; mode 0: there was none */
	char *text;     /* the old text */
	size_t size;
	struct ckt_token_file tokens; /* in it */
};

static int say(struct edit *edit, const char *what, int error)
{
	snprintf(edit->message, edit->message_size, "tokens file %s: %s: %s", edit->path, what,
		strerror(error));
	return -error;
}

/* The lock is a file of its own, because the file itself is replaced. */
static int take_lock(struct edit *edit)
{
	char path[4200];
	snprintf(path, sizeof path, "%s.lock", edit->path);
	edit->lock_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (edit->lock_fd < 0 || flock(edit->lock_fd, LOCK_EX))
		return say(edit, "cannot lock it", errno);
	return 0;
}

static int read_text(struct edit *edit)
{
	int fd = open(edit->path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0 && errno == ENOENT) {
		/* Nothing is there yet. */
		edit->text = calloc(1, 1);
		return edit->text ? 0 : say(edit, "no memory", ENOMEM);
	}
	if (fd < 0)
		return say(edit, "cannot read it", errno);
	int error = fstat(fd, &edit->st) ? errno : edit->st.st_size > FILE_MAX ? EFBIG : 0;
	edit->text = error ? NULL : malloc((size_t)edit->st.st_size + 1);
	if (!error && !edit->text)
		error = ENOMEM;
	FILE *file = error ? NULL : fdopen(fd, "r");
	if (!error && !file)
		error = errno;
	edit->size = file ? fread(edit->text, 1, (size_t)edit->st.st_size, file) : 0;
	if (!error && (ferror(file) || edit->size != (size_t)edit->st.st_size))
		error = EIO;
	if (file)
		fclose(file);
	else
		close(fd);
	if (error)
		return say(edit, "cannot read it", error);
	edit->text[edit->size] = 0;
	return ckt_token_file_read(edit->path, &edit->tokens, edit->message, edit->message_size);
}

static int edit_begin(struct edit *edit)
{
	int result = take_lock(edit);
	return result ? result : read_text(edit);
}

static void edit_end(struct edit *edit)
{
	free(edit->text);
	ckt_token_file_free(&edit->tokens);
	if (edit->lock_fd >= 0)
		close(edit->lock_fd);
}

/* Replaces the file by before, text and after: completely or not at all. */
static int edit_write(struct edit *edit, size_t before, const char *text, size_t after)
{
	char path[4200];
	snprintf(path, sizeof path, "%s.new", edit->path);
	unlink(path);
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return say(edit, "cannot write its directory", errno);
	FILE *file = fdopen(fd, "w");
	bool good = file && fwrite(edit->text, 1, before, file) == before &&
		fputs(text, file) >= 0 &&
		fwrite(edit->text + after, 1, edit->size - after, file) == edit->size - after &&
		fflush(file) == 0;
	if (good && edit->st.st_mode)
		good = fchown(fd, edit->st.st_uid, edit->st.st_gid) == 0 &&
			fchmod(fd, edit->st.st_mode & 0750) == 0;
	good = good && fsync(fd) == 0;
	int error = good ? 0 : errno ? errno : EIO;
	if (file ? fclose(file) : close(fd))
		error = error ? error : errno;
	if (!error && rename(path, edit->path))
		error = errno;
	if (error)
		unlink(path);
	return error ? say(edit, "cannot write it", error) : 0;
}

static char *section_text(const struct ckt_token_entry *entry)
{
	char *text = NULL;
	size_t size;
	FILE *file = open_memstream(&text, &size);
	if (!file)
		return NULL;
	fprintf(file, "\n[%s]\nhash = ", entry->name);
	for (size_t i = 0; i < sizeof entry->verifier.stored_key; i++)
		fprintf(file, "%02x", entry->verifier.stored_key[i]);
	fprintf(file, "\nroles = %s\n", ckt_role_name(entry->role));
	for (unsigned i = 0; i < entry->project_count; i++)
		fprintf(file, "%s%s%s", i ? ", " : "projects = ", entry->projects[i],
			i + 1 == entry->project_count ? "\n" : "");
	if (entry->max_sessions)
		fprintf(file, "max-sessions = %u\n", entry->max_sessions);
	if (entry->session_memory)
		fprintf(file, "session-memory = %llu\n", (unsigned long long)entry->session_memory);
	if (entry->session_host_memory)
		fprintf(file, "session-host-memory = %llu\n",
			(unsigned long long)entry->session_host_memory);
	if (entry->expires) {
		char expires[32];
		struct tm tm;
		strftime(expires, sizeof expires, "%Y-%m-%dT%H:%M:%SZ",
			gmtime_r(&entry->expires, &tm));
		fprintf(file, "expires = %s\n", expires);
	}
	if (fclose(file) == 0)
		return text;
	free(text);
	return NULL;
}

int ckt_token_file_add(const char *path, const struct ckt_token_entry *entry, char *ret_message,
	size_t message_size)
{
	struct edit edit = {
		.path = path, .message = ret_message, .message_size = message_size, .lock_fd = -1};
	int result = edit_begin(&edit);
	uint32_t owner = ckt_owner_of_token(entry->name);
	if (!result && ckt_token_file_find(&edit.tokens, entry->name)) {
		snprintf(ret_message, message_size,
			"tokens file %s has a token '%s' already: revoke it first, or choose "
			"another name",
			path, entry->name);
		result = -EEXIST;
	} else if (!result && ckt_token_file_find_owner(&edit.tokens, owner)) {
		snprintf(ret_message, message_size,
			"tokens file %s: '%s' has the owner number of another token: choose "
			"another name",
			path, entry->name);
		result = -EEXIST;
	}
	char *text = result ? NULL : section_text(entry);
	if (!result)
		result = text ? edit_write(&edit, edit.size, text, edit.size)
			      : say(&edit, "no memory", ENOMEM);
	free(text);
	edit_end(&edit);
	return result;
}

/* Where the section begins and ends: at the next one, or at the end. */
static bool find_section(
	const struct edit *edit, const char *name, size_t *ret_begin, size_t *ret_end)
{
	char head[CKT_TOKEN_NAME_MAX + 3];
	bool found = false;
	size_t length = (size_t)snprintf(head, sizeof head, "[%s]", name);
	*ret_end = edit->size;
	for (const char *p = edit->text; p && *p;) {
		/* inih takes an indented line for more of the value before it. */
		if (found && *p == '[') {
			*ret_end = (size_t)(p - edit->text);
			return true;
		}
		if (!found && strncmp(p, head, length) == 0) {
			found = true;
			*ret_begin = (size_t)(p - edit->text);
		}
		p = strchr(p, '\n');
		p = p ? p + 1 : NULL;
	}
	return found;
}

int ckt_token_file_remove(
	const char *path, const char *name, char *ret_message, size_t message_size)
{
	struct edit edit = {
		.path = path, .message = ret_message, .message_size = message_size, .lock_fd = -1};
	size_t begin, end;
	int result = edit_begin(&edit);
	if (!result &&
		(!ckt_token_file_find(&edit.tokens, name) ||
			!find_section(&edit, name, &begin, &end))) {
		snprintf(ret_message, message_size, "tokens file %s has no token '%s'", path, name);
		result = -ENOENT;
	}
	if (!result)
		result = edit_write(&edit, begin, "", end);
	edit_end(&edit);
	return result;
}
