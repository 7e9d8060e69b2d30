/* SPDX-License-Identifier: Apache-2.0 */
/* Names of variables in images; see variable_names.h. */
#include "server/worker/module/variable_names.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "server/worker/module/module_binary.h"

enum { NAME_MAX_BYTES = 4096 };

static bool begins_name(unsigned char c)
{
	return isalpha(c) || c == '_' || c == '$' || c == '%';
}

static bool in_name(unsigned char c)
{
	return isalnum(c) || c == '_' || c == '$' || c == '.';
}

static int add(struct ckt_variable_names *names, const uint8_t *start, size_t size)
{
	if (names->count == names->room) {
		size_t room = names->room ? names->room * 2 : 256;
		char **list = realloc(names->list, room * sizeof *list);
		if (!list)
			return -ENOMEM;
		names->list = list;
		names->room = room;
	}
	char *name = strndup((const char *)start, size);
	if (!name)
		return -ENOMEM;
	names->list[names->count++] = name;
	return 0;
}

static int search(struct ckt_variable_names *names, const uint8_t *p, size_t size)
{
	const uint8_t *end = p + size;
	while (p < end) {
		if (!begins_name(*p)) {
			p++;
			continue;
		}
		const uint8_t *start = p++;
		while (p < end && in_name(*p))
			p++;
		int result =
			p - start < NAME_MAX_BYTES ? add(names, start, (size_t)(p - start)) : 0;
		if (result)
			return result;
	}
	return 0;
}

static int search_part(void *opaque, const struct ckt_binary_part *part)
{
	return search(opaque, part->data, part->size);
}

static int by_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

int ckt_variable_names_collect(
	const uint8_t *image, size_t size, struct ckt_variable_names *ret_names)
{
	struct ckt_variable_names names = {0};
	int result = ckt_module_binary_walk(image, size, search_part, &names);
	if (result) {
		ckt_variable_names_fini(&names);
		return result;
	}
	size_t kept = 0;
	if (names.count)
		qsort(names.list, names.count, sizeof *names.list, by_text);
	for (size_t i = 0; i < names.count; i++) {
		if (kept && !strcmp(names.list[kept - 1], names.list[i]))
			free(names.list[i]);
		else
			names.list[kept++] = names.list[i];
	}
	names.count = kept;
	*ret_names = names;
	return 0;
}

void ckt_variable_names_fini(struct ckt_variable_names *names)
{
	for (size_t i = 0; i < names->count; i++)
		free(names->list[i]);
	free(names->list);
	*names = (struct ckt_variable_names){0};
}
