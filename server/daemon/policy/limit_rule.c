/* SPDX-License-Identifier: Apache-2.0 */
/* Limits of owners; see limit_rule.h. */
#include "server/daemon/policy/limit_rule.h"

#include <errno.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bounds.h"
#include "base/grow.h"
#include "base/size_text.h"
#include "rpc/identity.h"
#include "rpc/job.h"
#include "rpc/session.h"
#include "rpc/token_file.h"

#define GRANULE ((uint64_t)2 << 20)

_Static_assert(CKT_DEVICES_MAX <= 64, "GPUs of a rule are bits");

static const char *const keys[CKT_LIMIT_KEYS] = {"session", "user", "container", "job", "token"};

const char *ckt_limit_key_name(enum ckt_limit_key key)
{
	return keys[key];
}

static int __attribute__((format(printf, 3, 4)))
bad(char *ret_message, size_t message_size, const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(ret_message, message_size, format, arguments);
	va_end(arguments);
	return -EINVAL;
}

/* ---- Keys */

static int parse_number(const char *text, long least, long most, long *ret_number)
{
	char *end;
	errno = 0;
	long number = strtol(text, &end, 10);
	if (!*text || strspn(text, "-0123456789") != strlen(text) || *end || errno ||
		number < least || number > most)
		return -EINVAL;
	*ret_number = number;
	return 0;
}

static int check_session(struct ckt_limit_rule *rule, char *ret_message, size_t message_size)
{
	if (strlen(rule->name) == CKT_SESSION_ID_SIZE &&
		strspn(rule->name, "0123456789abcdef") == CKT_SESSION_ID_SIZE)
		return 0;
	return bad(ret_message, message_size,
		"'session=%.80s': write the %d characters of a session's id, see cricketctl ps",
		rule->name, CKT_SESSION_ID_SIZE);
}

static int check_user(struct ckt_limit_rule *rule, char *ret_message, size_t message_size)
{
	long number;
	const struct passwd *user;
	if (!parse_number(rule->name, 0, INT32_MAX, &number))
		rule->owner = (uint32_t)number;
	else if ((user = getpwnam(rule->name)))
		rule->owner = user->pw_uid;
	else
		return bad(ret_message, message_size,
			"'user=%.80s': this host has no such user: write a name that it has, or a number",
			rule->name);
	return 0;
}

static int check_container(struct ckt_limit_rule *rule, char *ret_message, size_t message_size)
{
	size_t length = strlen(rule->name);
	if (*rule->name == '/' && length > 1 && rule->name[length - 1] != '/')
		return 0;
	return bad(ret_message, message_size,
		"'container=%.80s': write a cgroup's path from /sys/fs/cgroup on, with '/' first and not last",
		rule->name);
}

static int check_job(struct ckt_limit_rule *rule, char *ret_message, size_t message_size)
{
	if (ckt_job_name_good(rule->name))
		return 0;
	return bad(ret_message, message_size,
		"'job=%.80s': write 1 to %d letters, digits or . _ : -, the first a letter or digit",
		rule->name, CKT_JOB_NAME_MAX);
}

static int check_token(struct ckt_limit_rule *rule, char *ret_message, size_t message_size)
{
	if (!ckt_token_name_is_good(rule->name))
		return bad(ret_message, message_size,
			"'token=%.80s': write 1 to %d of a-z, 0-9, '.', '_' and '-'", rule->name,
			CKT_TOKEN_NAME_MAX);
	rule->owner = ckt_owner_of_token(rule->name);
	return 0;
}

int ckt_limit_key_parse(
	const char *word, struct ckt_limit_rule *ret_rule, char *ret_message, size_t message_size)
{
	static int (*const checks[CKT_LIMIT_KEYS])(struct ckt_limit_rule *, char *, size_t) = {
		check_session, check_user, check_container, check_job, check_token};
	const char *equals = strchr(word, '=');
	size_t length = equals ? (size_t)(equals - word) : 0;
	*ret_rule = (struct ckt_limit_rule){.owner = CKT_UID_UNKNOWN};
	for (int key = 0; key < CKT_LIMIT_KEYS && equals; key++) {
		if (strlen(keys[key]) != length || strncmp(word, keys[key], length) != 0)
			continue;
		if (!equals[1] || strlen(equals + 1) > CKT_LIMIT_NAME_MAX)
			return bad(ret_message, message_size,
				"'%.80s': a name is missing or too long", word);
		ret_rule->key = (enum ckt_limit_key)key;
		strcpy(ret_rule->name, equals + 1);
		return checks[key](ret_rule, ret_message, message_size);
	}
	return bad(ret_message, message_size,
		"'%.80s': write first whom the limit is for: session=, user=, container=, job= or token=",
		word);
}

/* ---- Values */

static int take_memory(struct ckt_limit_rule *rule, const char *value)
{
	if (ckt_size_parse(value, &rule->memory_bytes) || rule->memory_bytes < GRANULE)
		return -EINVAL;
	rule->memory_bytes -= rule->memory_bytes % GRANULE;
	return 0;
}

static int take_swap(struct ckt_limit_rule *rule, const char *value)
{
	if (!strcmp(value, "0"))
		return 0;
	return ckt_size_parse(value, &rule->swap_bytes);
}

static int take_share(struct ckt_limit_rule *rule, const char *value)
{
	long number;
	int result = parse_number(value, 1, 100, &number);
	if (!result)
		rule->share = (unsigned)number;
	return result;
}

static int take_cap(struct ckt_limit_rule *rule, const char *value)
{
	long number;
	int result = parse_number(value, 1, 100, &number);
	if (!result)
		rule->cap = (unsigned)number;
	return result;
}

static const char *const class_names[] = {
	[CKT_TURN_LATENCY] = "latency", [CKT_TURN_BEST_EFFORT] = "best-effort"};

/* The word's place among the names, or -EINVAL.  A place may have none. */
static int find_name(const char *const *names, size_t count, const char *word)
{
	for (size_t i = 0; i < count; i++)
		if (names[i] && !strcmp(word, names[i]))
			return (int)i;
	return -EINVAL;
}

static int take_class(struct ckt_limit_rule *rule, const char *value)
{
	int found = find_name(class_names, sizeof class_names / sizeof *class_names, value);
	if (found >= 0)
		rule->class = (enum ckt_turn_class)found;
	return found < 0 ? found : 0;
}

static int take_priority(struct ckt_limit_rule *rule, const char *value)
{
	long number;
	int result = parse_number(value, -CKT_LIMIT_PRIORITY_MAX, CKT_LIMIT_PRIORITY_MAX, &number);
	if (!result)
		rule->priority = (int)number;
	return result;
}

static int take_sessions(struct ckt_limit_rule *rule, const char *value)
{
	long number;
	int result = parse_number(value, 0, CKT_LIMIT_SESSIONS_MAX, &number);
	if (!result)
		rule->sessions = (unsigned)number;
	return result;
}

/* "0,2-3" */
static int take_gpus(struct ckt_limit_rule *rule, const char *value)
{
	uint64_t gpus = 0;
	const char *p = value;
	do {
		char *end;
		if (*p < '0' || *p > '9')
			return -EINVAL;
		unsigned long first = strtoul(p, &end, 10), last = first;
		if (*end == '-') {
			p = end + 1;
			if (*p < '0' || *p > '9')
				return -EINVAL;
			last = strtoul(p, &end, 10);
		}
		if (first > last || last >= CKT_DEVICES_MAX || (*end && *end != ','))
			return -EINVAL;
		for (unsigned long gpu = first; gpu <= last; gpu++)
			gpus |= UINT64_C(1) << gpu;
		p = *end ? end + 1 : end;
		if (*end && !*p)
			return -EINVAL;
	} while (*p);
	rule->gpus = gpus;
	return 0;
}

static const char *const when_full_names[] = {"fail", "wait", "swap"};

int ckt_when_full_parse(const char *text, enum ckt_when_full *ret_when_full)
{
	int found =
		find_name(when_full_names, sizeof when_full_names / sizeof *when_full_names, text);
	if (found >= 0)
		*ret_when_full = (enum ckt_when_full)found;
	return found < 0 ? found : 0;
}

const char *ckt_when_full_name(enum ckt_when_full when_full)
{
	return when_full_names[when_full];
}

static const char *const share_mode_names[] = {"time", "space"};

int ckt_share_mode_parse(const char *text, enum ckt_share_mode *ret_mode)
{
	int found = find_name(
		share_mode_names, sizeof share_mode_names / sizeof *share_mode_names, text);
	if (found >= 0)
		*ret_mode = (enum ckt_share_mode)found;
	return found < 0 ? found : 0;
}

const char *ckt_share_mode_name(enum ckt_share_mode mode)
{
	return share_mode_names[mode];
}

static int take_share_mode(struct ckt_limit_rule *rule, const char *value)
{
	return ckt_share_mode_parse(value, &rule->share_mode);
}

/* "none" replaces what an earlier rule says. */
static int take_share_group(struct ckt_limit_rule *rule, const char *value)
{
	if (!ckt_token_name_is_good(value) || strlen(value) > CKT_SHARE_GROUP_MAX)
		return -EINVAL;
	strcpy(rule->share_group, strcmp(value, "none") ? value : "");
	return 0;
}

static int take_when_full(struct ckt_limit_rule *rule, const char *value)
{
	return ckt_when_full_parse(value, &rule->when_full);
}

static const struct {
	const char *name, *remedy;
	unsigned sets;
	int (*take)(struct ckt_limit_rule *rule, const char *value);
} values[] = {
	{"memory", "write a size of 2M or more, such as 512M or 8G", CKT_LIMIT_SETS_MEMORY,
		take_memory},
	{"swap", "write a size such as 512M or 8G, or 0 for none", CKT_LIMIT_SETS_SWAP, take_swap},
	{"share", "write a whole number from 1 to 100, in percent", CKT_LIMIT_SETS_SHARE,
		take_share},
	{"priority", "write a whole number from -100 to 100", CKT_LIMIT_SETS_PRIORITY,
		take_priority},
	{"cap", "write a whole number from 1 to 100, in percent", CKT_LIMIT_SETS_CAP, take_cap},
	{"class", "write latency or best-effort", CKT_LIMIT_SETS_CLASS, take_class},
	{"sessions", "write a whole number up to 1000000", CKT_LIMIT_SETS_SESSIONS, take_sessions},
	{"gpus", "write the driver's numbers, such as 0,2-3", CKT_LIMIT_SETS_GPUS, take_gpus},
	{"when-full", "write fail, wait or swap", CKT_LIMIT_SETS_WHEN_FULL, take_when_full},
	{"share-mode", "write time or space", CKT_LIMIT_SETS_SHARE_MODE, take_share_mode},
	{"share-group", "write 1 to 14 of a-z, 0-9, '.', '_' and '-', or none",
		CKT_LIMIT_SETS_SHARE_GROUP, take_share_group},
};

static int take_value(
	struct ckt_limit_rule *rule, const char *word, char *ret_message, size_t message_size)
{
	for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
		size_t length = strlen(values[i].name);
		if (strncmp(word, values[i].name, length) != 0 || word[length] != '=')
			continue;
		if (rule->sets & values[i].sets)
			return bad(ret_message, message_size,
				"'%.80s': %s= is there twice: write it once", word, values[i].name);
		if (values[i].take(rule, word + length + 1))
			return bad(
				ret_message, message_size, "'%.80s': %s", word, values[i].remedy);
		rule->sets |= values[i].sets;
		return 0;
	}
	return bad(ret_message, message_size,
		"'%.80s': write memory=, swap=, share=, cap=, priority=, class=, sessions=, gpus=, when-full=, share-mode= or share-group=",
		word);
}

/* ---- Rules */

int ckt_limit_rule_parse(
	const char *line, struct ckt_limit_rule *ret_rule, char *ret_message, size_t message_size)
{
	char copy[CKT_LIMIT_LINE_MAX + 1], *rest = copy;
	unsigned count = 0;
	if (strlen(line) > CKT_LIMIT_LINE_MAX)
		return bad(
			ret_message, message_size, "longer than %d characters", CKT_LIMIT_LINE_MAX);
	strcpy(copy, line);
	for (char *word; (word = strsep(&rest, " \t\r"));) {
		if (*word == '#')
			break;
		if (!*word)
			continue;
		int result = count++
			? take_value(ret_rule, word, ret_message, message_size)
			: ckt_limit_key_parse(word, ret_rule, ret_message, message_size);
		if (result)
			return result;
	}
	if (count == 1)
		return bad(ret_message, message_size,
			"'%s=%.80s': nothing is limited: add memory=, swap=, share=, cap=, priority=, class=, sessions=, gpus=, when-full=, share-mode= or share-group=",
			keys[ret_rule->key], ret_rule->name);
	if (count && ret_rule->sets & CKT_LIMIT_SETS_SHARE_GROUP &&
		ret_rule->key != CKT_LIMIT_USER && ret_rule->key != CKT_LIMIT_TOKEN)
		return bad(ret_message, message_size,
			"'%s=%.80s': share-group= names owners: write it for user= or token=, because anybody can call a job by that name",
			keys[ret_rule->key], ret_rule->name);
	return count ? 0 : -ENODATA;
}

static void put_gpus(uint64_t gpus, char *text, size_t size)
{
	size_t at = 0;
	for (unsigned gpu = 0; gpu < CKT_DEVICES_MAX; gpu++)
		if (gpus >> gpu & 1 && at < size)
			at += (size_t)snprintf(text + at, size - at, "%s%u", at ? "," : "", gpu);
}

static void put_size(uint64_t bytes, char *text, size_t size)
{
	static const char units[] = "TGM";
	for (unsigned i = 0; i < 3; i++) {
		unsigned shift = 40 - 10 * i;
		if (bytes & ((UINT64_C(1) << shift) - 1))
			continue;
		snprintf(text, size, "%llu%c", (unsigned long long)(bytes >> shift), units[i]);
		return;
	}
	snprintf(text, size, "%llu", (unsigned long long)bytes);
}

void ckt_limit_rule_text(const struct ckt_limit_rule *rule, char ret_text[CKT_LIMIT_LINE_MAX + 1])
{
	const size_t size = CKT_LIMIT_LINE_MAX + 1;
	char value[CKT_DEVICES_MAX * 3 + 1] = "";
	size_t at = (size_t)snprintf(ret_text, size, "%s=%s", keys[rule->key], rule->name);
	put_size(rule->memory_bytes, value, sizeof value);
	if (rule->sets & CKT_LIMIT_SETS_MEMORY)
		at += (size_t)snprintf(ret_text + at, size - at, " memory=%s", value);
	put_size(rule->swap_bytes, value, sizeof value);
	if (rule->sets & CKT_LIMIT_SETS_SWAP)
		at += (size_t)snprintf(
			ret_text + at, size - at, " swap=%s", rule->swap_bytes ? value : "0");
	if (rule->sets & CKT_LIMIT_SETS_SHARE)
		at += (size_t)snprintf(ret_text + at, size - at, " share=%u", rule->share);
	if (rule->sets & CKT_LIMIT_SETS_CAP)
		at += (size_t)snprintf(ret_text + at, size - at, " cap=%u", rule->cap);
	if (rule->sets & CKT_LIMIT_SETS_PRIORITY)
		at += (size_t)snprintf(ret_text + at, size - at, " priority=%d", rule->priority);
	if (rule->sets & CKT_LIMIT_SETS_CLASS)
		at += (size_t)snprintf(
			ret_text + at, size - at, " class=%s", class_names[rule->class]);
	if (rule->sets & CKT_LIMIT_SETS_SESSIONS)
		at += (size_t)snprintf(ret_text + at, size - at, " sessions=%u", rule->sessions);
	put_gpus(rule->gpus, value, sizeof value);
	if (rule->sets & CKT_LIMIT_SETS_GPUS)
		at += (size_t)snprintf(ret_text + at, size - at, " gpus=%s", value);
	if (rule->sets & CKT_LIMIT_SETS_WHEN_FULL)
		at += (size_t)snprintf(ret_text + at, size - at, " when-full=%s",
			ckt_when_full_name(rule->when_full));
	if (rule->sets & CKT_LIMIT_SETS_SHARE_MODE)
		at += (size_t)snprintf(ret_text + at, size - at, " share-mode=%s",
			ckt_share_mode_name(rule->share_mode));
	if (rule->sets & CKT_LIMIT_SETS_SHARE_GROUP)
		snprintf(ret_text + at, size - at, " share-group=%s",
			*rule->share_group ? rule->share_group : "none");
}

/* ---- Whom they fit */

static bool is_within(const char *path, const char *cgroup)
{
	size_t length = strlen(cgroup);
	return strncmp(path, cgroup, length) == 0 && (!path[length] || path[length] == '/');
}

bool ckt_limit_fits(const struct ckt_limit_rule *rule, const struct ckt_limit_subject *subject)
{
	switch (rule->key) {
	case CKT_LIMIT_SESSION:
		return strcmp(rule->name, subject->session) == 0;
	case CKT_LIMIT_USER:
	case CKT_LIMIT_TOKEN:
		return subject->owner != CKT_UID_UNKNOWN && rule->owner == subject->owner;
	case CKT_LIMIT_CONTAINER:
		return is_within(subject->container, rule->name);
	case CKT_LIMIT_JOB:
		return strcmp(rule->name, subject->job) == 0;
	default:
		return false;
	}
}

bool ckt_limit_counts(const struct ckt_limit_rule *rule, const struct ckt_limit_subject *subject,
	const struct ckt_limit_subject *other)
{
	return ckt_limit_fits(rule, subject) && ckt_limit_fits(rule, other) &&
		(rule->key != CKT_LIMIT_JOB || subject->owner == other->owner);
}

/* ---- Tables */

/* Names of a user, or its number, are one key. */
static bool is_same(const struct ckt_limit_rule *a, const struct ckt_limit_rule *b)
{
	if (a->key != b->key)
		return false;
	return a->key == CKT_LIMIT_USER ? a->owner == b->owner : strcmp(a->name, b->name) == 0;
}

struct ckt_limit_rule *ckt_limit_table_find(
	const struct ckt_limit_table *table, const struct ckt_limit_rule *key)
{
	for (size_t i = 0; i < table->count; i++)
		if (is_same(&table->rules[i], key))
			return &table->rules[i];
	return NULL;
}

int ckt_limit_table_put(struct ckt_limit_table *table, const struct ckt_limit_rule *rule)
{
	struct ckt_limit_rule *found = ckt_limit_table_find(table, rule);
	if (!found) {
		if (CKT_GROW(table->rules, table->count, table->room, 8))
			return -ENOMEM;
		table->rules[table->count++] = *rule;
		return 0;
	}
	found->sets |= rule->sets;
	found->live |= rule->live;
	if (rule->sets & CKT_LIMIT_SETS_MEMORY)
		found->memory_bytes = rule->memory_bytes;
	if (rule->sets & CKT_LIMIT_SETS_SWAP)
		found->swap_bytes = rule->swap_bytes;
	if (rule->sets & CKT_LIMIT_SETS_SHARE)
		found->share = rule->share;
	if (rule->sets & CKT_LIMIT_SETS_CAP)
		found->cap = rule->cap;
	if (rule->sets & CKT_LIMIT_SETS_CLASS)
		found->class = rule->class;
	if (rule->sets & CKT_LIMIT_SETS_PRIORITY)
		found->priority = rule->priority;
	if (rule->sets & CKT_LIMIT_SETS_SESSIONS)
		found->sessions = rule->sessions;
	if (rule->sets & CKT_LIMIT_SETS_GPUS)
		found->gpus = rule->gpus;
	if (rule->sets & CKT_LIMIT_SETS_WHEN_FULL)
		found->when_full = rule->when_full;
	if (rule->sets & CKT_LIMIT_SETS_SHARE_MODE)
		found->share_mode = rule->share_mode;
	if (rule->sets & CKT_LIMIT_SETS_SHARE_GROUP)
		strcpy(found->share_group, rule->share_group);
	return 0;
}

/* That sets this, and fits: the narrowest one. */
static const struct ckt_limit_rule *first_fit(
	const struct ckt_limit_table *table, const struct ckt_limit_subject *subject, unsigned sets)
{
	static const enum ckt_limit_key order[CKT_LIMIT_KEYS] = {CKT_LIMIT_SESSION, CKT_LIMIT_JOB,
		CKT_LIMIT_CONTAINER, CKT_LIMIT_TOKEN, CKT_LIMIT_USER};
	for (unsigned key = 0; key < CKT_LIMIT_KEYS; key++)
		for (size_t i = 0; i < table->count; i++) {
			const struct ckt_limit_rule *rule = &table->rules[i];
			if (rule->key == order[key] && rule->sets & sets &&
				ckt_limit_fits(rule, subject))
				return rule;
		}
	return NULL;
}

enum ckt_when_full ckt_limit_table_when_full(const struct ckt_limit_table *table,
	const struct ckt_limit_subject *subject, enum ckt_when_full otherwise)
{
	const struct ckt_limit_rule *rule = first_fit(table, subject, CKT_LIMIT_SETS_WHEN_FULL);
	return rule ? rule->when_full : otherwise;
}

enum ckt_share_mode ckt_limit_table_share_mode(const struct ckt_limit_table *table,
	const struct ckt_limit_subject *subject, enum ckt_share_mode otherwise)
{
	const struct ckt_limit_rule *rule = first_fit(table, subject, CKT_LIMIT_SETS_SHARE_MODE);
	return rule ? rule->share_mode : otherwise;
}

const char *ckt_limit_table_share_group(
	const struct ckt_limit_table *table, const struct ckt_limit_subject *subject)
{
	const struct ckt_limit_rule *rule = first_fit(table, subject, CKT_LIMIT_SETS_SHARE_GROUP);
	return rule ? rule->share_group : "";
}

bool ckt_limit_table_remove(struct ckt_limit_table *table, const struct ckt_limit_rule *key)
{
	struct ckt_limit_rule *found = ckt_limit_table_find(table, key);
	if (!found)
		return false;
	size_t after = table->count - (size_t)(found - table->rules) - 1;
	memmove(found, found + 1, after * sizeof *found);
	table->count--;
	return true;
}

void ckt_limit_table_free(struct ckt_limit_table *table)
{
	free(table->rules);
	*table = (struct ckt_limit_table){0};
}
