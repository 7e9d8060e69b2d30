/* SPDX-License-Identifier: Apache-2.0 */
/* Reading the file of tokens; see token_file.h.  token_file_edit.c writes it. */
#include "rpc/token_file.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <ini.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/size_text.h"

/* Above the uids of users, of containers and of subordinate ranges. */
#define OWNER_TOKEN (UINT32_C(1) << 31)

static const char *const role_names[CKT_ROLES] = {"user", "operator", "administrator"};

const char *ckt_role_name(enum ckt_role role)
{
	return role_names[role];
}

bool ckt_role_parse(const char *name, enum ckt_role *ret_role)
{
	for (int role = 0; role < CKT_ROLES; role++) {
		if (strcmp(name, role_names[role]) == 0) {
			*ret_role = (enum ckt_role)role;
			return true;
		}
	}
	return false;
}

bool ckt_token_name_is_good(const char *name)
{
	size_t length = strlen(name);
	return length && length <= CKT_TOKEN_NAME_MAX && *name != '-' &&
		strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789._-") == length;
}

int ckt_token_expiry_parse(const char *text, time_t *ret_time)
{
	static const char *const forms[] = {"%Y-%m-%d", "%Y-%m-%dT%H:%M:%SZ"};
	for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
		struct tm tm = {0};
		const char *end = strptime(text, forms[i], &tm);
		if (!end || *end)
			continue;
		struct tm wanted = tm;
		time_t time = timegm(&tm);
		/* 31 February would become a day in March. */
		if (tm.tm_mday != wanted.tm_mday || time <= 0)
			return -EINVAL;
		*ret_time = time;
		return 0;
	}
	return -EINVAL;
}

/* ---- Look-up */

void ckt_token_file_free(struct ckt_token_file *file)
{
	if (file->entries)
		explicit_bzero(file->entries, file->count * sizeof *file->entries);
	free(file->entries);
	*file = (struct ckt_token_file){0};
}

const struct ckt_token_entry *ckt_token_file_find(
	const struct ckt_token_file *file, const char *name)
{
	for (unsigned i = 0; i < file->count; i++)
		if (strcmp(file->entries[i].name, name) == 0)
			return &file->entries[i];
	return NULL;
}

const struct ckt_token_entry *ckt_token_file_find_id(
	const struct ckt_token_file *file, const uint8_t id[CKT_TOKEN_ID_SIZE])
{
	for (unsigned i = 0; i < file->count; i++)
		if (memcmp(file->entries[i].verifier.id, id, CKT_TOKEN_ID_SIZE) == 0)
			return &file->entries[i];
	return NULL;
}

const struct ckt_token_entry *ckt_token_file_find_owner(
	const struct ckt_token_file *file, uint32_t owner)
{
	for (unsigned i = 0; i < file->count; i++)
		if (ckt_owner_of_token(file->entries[i].name) == owner)
			return &file->entries[i];
	return NULL;
}

uint32_t ckt_owner_of_token(const char *name)
{
	uint8_t hash[CKT_AUTH_HASH_SIZE];
	uint32_t number;
	ckt_auth_hash(name, strlen(name), hash);
	memcpy(&number, hash, sizeof number);
	number = be32toh(number) | OWNER_TOKEN;
	/* The number of nobody is taken. */
	return number == CKT_UID_UNKNOWN ? OWNER_TOKEN : number;
}

uint32_t ckt_owner_of_certificate(const char *user)
{
	char name[CKT_OWNER_NAME_SIZE];
	snprintf(name, sizeof name, "certificate:%s", user);
	return ckt_owner_of_token(name);
}

bool ckt_owner_is_token(uint32_t owner)
{
	return owner & OWNER_TOKEN && owner != CKT_UID_UNKNOWN;
}

/* ---- Reading */

struct reading {
	struct ckt_token_file file;
	unsigned hashed; /* entries whose hash was read: all but perhaps the last one */
	char problem[256];
};

static void __attribute__((format(printf, 2, 3)))
fail(struct reading *reading, const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(reading->problem, sizeof reading->problem, format, arguments);
	va_end(arguments);
}

static int read_hash(struct reading *reading, struct ckt_token_entry *entry, const char *value)
{
	uint8_t key[CKT_PROOF_SIZE];
	if (strlen(value) != 2 * sizeof key || strspn(value, "0123456789abcdef") != 2 * sizeof key)
		return -EINVAL;
	for (size_t i = 0; i < sizeof key; i++)
		sscanf(value + 2 * i, "%2hhx", &key[i]);
	ckt_token_verifier_of_key(key, &entry->verifier);
	if (reading->hashed == reading->file.count)
		return -EEXIST;
	reading->hashed++;
	return 0;
}

/* The items of a list with commas, without the blanks around them. */
static int read_list(const char *value, int (*take)(struct ckt_token_entry *, const char *),
	struct ckt_token_entry *entry)
{
	char item[256];
	for (const char *p = value; *p;) {
		p += strspn(p, " \t");
		size_t length = strcspn(p, ",");
		if (length >= sizeof item)
			return -EINVAL;
		snprintf(item, sizeof item, "%.*s", (int)length, p);
		for (size_t end = strlen(item); end && isblank((unsigned char)item[end - 1]);)
			item[--end] = 0;
		int result = take(entry, item);
		if (result)
			return result;
		p += length + (p[length] == ',');
	}
	return 0;
}

static int take_role(struct ckt_token_entry *entry, const char *name)
{
	enum ckt_role role;
	if (!ckt_role_parse(name, &role))
		return -EINVAL;
	if (role > entry->role)
		entry->role = role;
	return 0;
}

static int take_project(struct ckt_token_entry *entry, const char *name)
{
	if (!ckt_token_name_is_good(name) || entry->project_count == CKT_TOKEN_PROJECTS_MAX)
		return -EINVAL;
	snprintf(entry->projects[entry->project_count++], sizeof entry->projects[0], "%s", name);
	return 0;
}

static int read_count(const char *value, unsigned *ret_count)
{
	char *end;
	unsigned long count = strtoul(value, &end, 10);
	if (!isdigit((unsigned char)*value) || *end || !count || count > 1000000)
		return -EINVAL;
	*ret_count = (unsigned)count;
	return 0;
}

static int read_value(struct reading *reading, const char *key, const char *value)
{
	struct ckt_token_entry *entry = &reading->file.entries[reading->file.count - 1];
	int result = -ENOENT;
	const char *form = "";
	if (strcmp(key, "hash") == 0) {
		result = read_hash(reading, entry, value);
		form = "64 hex digits, as 'cricketctl token add' writes them";
	} else if (strcmp(key, "roles") == 0) {
		result = read_list(value, take_role, entry);
		form = "of user, operator, administrator";
	} else if (strcmp(key, "projects") == 0) {
		result = read_list(value, take_project, entry);
		form = "up to 8 names of a-z, 0-9, '.', '_' and '-'";
	} else if (strcmp(key, "max-sessions") == 0) {
		result = read_count(value, &entry->max_sessions);
		form = "a whole number above 0";
	} else if (strcmp(key, "session-memory") == 0) {
		result = ckt_size_parse(value, &entry->session_memory);
		form = "a size such as 512M or 8G";
	} else if (strcmp(key, "session-host-memory") == 0) {
		result = ckt_size_parse(value, &entry->session_host_memory);
		form = "a size such as 512M or 8G";
	} else if (strcmp(key, "expires") == 0) {
		result = ckt_token_expiry_parse(value, &entry->expires);
		form = "a day such as 2027-01-31, or 2027-01-31T12:00:00Z";
	}
	if (result == -ENOENT)
		fail(reading, "unknown key '%s' of token '%s'", key, entry->name);
	else if (result == -EEXIST)
		fail(reading, "token '%s' is there twice, or has two hashes", entry->name);
	else if (result)
		fail(reading, "%s of token '%s': '%.80s': write %s", key, entry->name, value, form);
	return result;
}

static bool begin_entry(struct reading *reading, const char *name)
{
	struct ckt_token_file *file = &reading->file;
	if (!ckt_token_name_is_good(name)) {
		fail(reading, "'%.80s' is no name of a token: 1 to %d of a-z, 0-9, '.', '_', '-'",
			name, CKT_TOKEN_NAME_MAX);
		return false;
	}
	if (ckt_token_file_find(file, name)) {
		fail(reading, "token '%s' is there twice", name);
		return false;
	}
	const struct ckt_token_entry *other =
		ckt_token_file_find_owner(file, ckt_owner_of_token(name));
	if (other) {
		fail(reading, "tokens '%s' and '%s' have the same owner number: rename one",
			other->name, name);
		return false;
	}
	struct ckt_token_entry *more = file->count == CKT_TOKENS_MAX
		? NULL
		: reallocarray(file->entries, file->count + 1, sizeof *more);
	if (!more) {
		fail(reading, "no memory, or more than %d tokens", CKT_TOKENS_MAX);
		return false;
	}
	file->entries = more;
	more[file->count] = (struct ckt_token_entry){0};
	snprintf(more[file->count].name, sizeof more[0].name, "%s", name);
	file->count++;
	return true;
}

/* For inih: 0 is a failure. */
static int read_line(void *context, const char *section, const char *key, const char *value)
{
	struct reading *reading = context;
	const struct ckt_token_file *file = &reading->file;
	if (*reading->problem)
		return 0;
	if (!file->count || strcmp(file->entries[file->count - 1].name, section) != 0) {
		if (reading->hashed < file->count) {
			fail(reading, "token '%s' has no hash",
				file->entries[file->count - 1].name);
			return 0;
		}
		if (!begin_entry(reading, section))
			return 0;
	}
	return read_value(reading, key, value) == 0;
}

/* Whether only those may read and write the file who should. */
static int open_safely(const char *path, FILE **ret_file, char *ret_message, size_t message_size)
{
	struct stat st;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY), error = 0;
	if (fd < 0 || fstat(fd, &st))
		error = errno;
	if (error)
		snprintf(ret_message, message_size, "tokens file %s: %s", path, strerror(error));
	else if (!S_ISREG(st.st_mode) || st.st_mode & 0027)
		snprintf(ret_message, message_size,
			S_ISREG(st.st_mode)
				? "tokens file %s: others can read it or change it (mode "
				  "%04o): run chmod 640 on it"
				: "tokens file %s is not a regular file (mode %04o)",
			path, (unsigned)st.st_mode & 07777);
	else if ((*ret_file = fdopen(fd, "r")))
		return 0;
	if (fd >= 0)
		close(fd);
	return error ? -error : -EPERM;
}

int ckt_token_file_read(
	const char *path, struct ckt_token_file *ret_file, char *ret_message, size_t message_size)
{
	struct reading reading = {0};
	FILE *file;
	int result = open_safely(path, &file, ret_message, message_size);
	if (result)
		return result;
	int line = ini_parse_file(file, read_line, &reading);
	if (line && !*reading.problem)
		fail(&reading, "no 'key = value', [name] or comment");
	fclose(file);
	if (!line && reading.hashed < reading.file.count)
		fail(&reading, "token '%s' has no hash",
			reading.file.entries[reading.file.count - 1].name);
	if (*reading.problem) {
		snprintf(ret_message, message_size, "tokens file %s:%d: %s", path, line,
			reading.problem);
		ckt_token_file_free(&reading.file);
		return -EINVAL;
	}
	*ret_file = reading.file;
	return 0;
}
