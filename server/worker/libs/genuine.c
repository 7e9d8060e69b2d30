/* SPDX-License-Identifier: Apache-2.0 */
/* Opening genuine libraries; see genuine.h. */
#include "server/worker/libs/genuine.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "server/worker/libs/inside/inside.h"
#include "server/worker/worker.h"

/* More than the number of forwarded libraries. */
enum { GENUINE_MAX = 32 };

static struct opened {
	char stem[64];
	int error;
	char message[1024];
	struct ckt_genuine genuine;
} opened[GENUINE_MAX];
static unsigned opened_count;

const struct ckt_genuine *ckt_genuine_at(unsigned index)
{
	for (unsigned i = 0; i < opened_count; i++)
		if (!opened[i].error && index-- == 0)
			return &opened[i].genuine;
	return NULL;
}

static const char *setting(const char *name)
{
	const char *value = getenv(name);
	return value ? value : "";
}

static struct ckt_search where(void)
{
	const char *owner = getenv("CRICKET_LIBRARY_OWNER");
	/* The server's user; the worker's own only if no server named another one. */
	uid_t user = owner ? (uid_t)strtoul(owner, NULL, 10) : geteuid();
	return (struct ckt_search){.root = "",
		.operator_path = setting("CRICKET_LIBRARY_PATH"),
		.soft_path = getenv("CRICKET_LIBRARY_SOFT"),
		.roots = setting("CRICKET_LIBRARY_ROOTS"),
		.loader_path = setting("LD_LIBRARY_PATH"),
		.owners = {user, user}};
}

static int open_found(struct ckt_genuine *genuine, char *ret_message, size_t message_size)
{
	/* The library's own dependencies lie beside it ($ORIGIN), and its symbols stay private. */
	genuine->handle = dlopen(genuine->found.path, RTLD_NOW | RTLD_LOCAL);
	if (genuine->handle)
		return 0;
	const char *cause = dlerror();
	snprintf(ret_message, message_size, "the server cannot load %s: %s", genuine->found.path,
		cause ? cause : "the loader gave no reason");
	return -ENOEXEC;
}

static int answer(const struct opened *entry, const struct ckt_genuine **ret_genuine,
	char *ret_message, size_t message_size)
{
	if (entry->error)
		snprintf(ret_message, message_size, "%s", entry->message);
	else
		*ret_genuine = &entry->genuine;
	return entry->error;
}

int ckt_genuine_open(struct ckt_worker *worker, const char *stem, unsigned major,
	const char *version, const struct ckt_genuine **ret_genuine, char *ret_message,
	size_t message_size)
{
	for (unsigned i = 0; i < opened_count; i++)
		if (!strcmp(opened[i].stem, stem))
			return answer(&opened[i], ret_genuine, ret_message, message_size);
	struct opened *entry = &opened[opened_count];
	if (opened_count == GENUINE_MAX || strlen(stem) >= sizeof entry->stem) {
		snprintf(
			ret_message, message_size, "%s: more than %d libraries", stem, GENUINE_MAX);
		return -E2BIG;
	}
	opened_count++;
	strcpy(entry->stem, stem);
	char message[sizeof entry->message] = "";
	struct ckt_search search = where();
	entry->error = ckt_search_find(
		&search, stem, major, version, &entry->genuine.found, message, sizeof message);
	if (!entry->error)
		entry->error = ckt_inside_open(worker, message, sizeof message);
	if (!entry->error)
		entry->error = open_found(&entry->genuine, message, sizeof message);
	strcpy(entry->message, message);
	if (!entry->error) {
		/* Libraries print errors, and load code that nobody looked at. */
		ckt_printed_expect(&worker->printed);
		ckt_info("%s is %s", stem, entry->genuine.found.path);
	}
	return answer(entry, ret_genuine, ret_message, message_size);
}
