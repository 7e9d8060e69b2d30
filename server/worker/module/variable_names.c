/* SPDX-License-Identifier: Apache-2.0 */
/* Names of variables in images; see variable_names.h. */
#include "server/worker/module/variable_names.h"

#include <ctype.h>
#include <elf.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "server/worker/module/elf_check.h"
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

static int add_identifier(
	struct ckt_variable_names *names, const uint8_t *start, const uint8_t *end)
{
	return end - start < NAME_MAX_BYTES ? add(names, start, (size_t)(end - start)) : 0;
}

/* Every identifier. */
static int search(struct ckt_variable_names *names, const uint8_t *p, size_t size)
{
	const uint8_t *end = p + size;
	int result = 0;
	while (p < end && !result) {
		if (!begins_name(*p)) {
			p++;
			continue;
		}
		const uint8_t *start = p++;
		while (p < end && in_name(*p))
			p++;
		result = add_identifier(names, start, p);
	}
	return result;
}

/* ---- PTX */

/* Behind a comment or a string that begins at p; p if neither does. */
static const uint8_t *skip_text(const uint8_t *p, const uint8_t *end)
{
	const uint8_t *at = p;
	if (*p == '"') {
		for (at++; at < end && *at != '"'; at++)
			;
		return at < end ? at + 1 : end;
	}
	if (*p != '/' || end - p < 2 || (p[1] != '/' && p[1] != '*'))
		return p;
	if (p[1] == '/') {
		at = memchr(p, '\n', (size_t)(end - p));
		return at ? at : end;
	}
	for (at += 2; end - at >= 2 && !(at[0] == '*' && at[1] == '/'); at++)
		;
	return end - at >= 2 ? at + 2 : end;
}

static bool is_word(const uint8_t *start, const uint8_t *end, const char *word)
{
	return (size_t)(end - start) == strlen(word) && !memcmp(start, word, strlen(word));
}

/* A statement ends at ; { or }, so an initializer's values are a statement of their own. */
static int search_ptx(struct ckt_variable_names *names, const uint8_t *p, size_t size)
{
	const uint8_t *end = p + size;
	bool in_variable = false;
	int result = 0;
	while (p < end && !result) {
		const uint8_t *start = p;
		if ((p = skip_text(start, end)) != start)
			continue;
		if (*p == ';' || *p == '{' || *p == '}')
			in_variable = false;
		if (!in_name(*p) && !begins_name(*p)) {
			p++;
			continue;
		}
		while (++p < end && in_name(*p))
			;
		if (is_word(start, p, ".global") || is_word(start, p, ".const"))
			in_variable = true;
		else if (in_variable && begins_name(*start))
			result = add_identifier(names, start, p);
	}
	return result;
}

/* ---- Machine code */

static int add_symbol(void *opaque, const struct ckt_elf_symbol *symbol)
{
	bool variable = symbol->type == STT_OBJECT && symbol->defined && symbol->size;
	size_t size = strlen(symbol->name);
	return variable && size && size < NAME_MAX_BYTES
		? add(opaque, (const uint8_t *)symbol->name, size)
		: 0;
}

static int search_code(struct ckt_variable_names *names, const uint8_t *data, size_t size)
{
	unsigned tables = 0;
	int result = ckt_elf_check(data, size)
		? 0
		: ckt_elf_each_symbol(data, size, add_symbol, names, &tables);
	return result || tables ? result : search(names, data, size);
}

static int search_part(void *opaque, const struct ckt_binary_part *part)
{
	switch (part->kind) {
	case CKT_BINARY_PTX:
		return search_ptx(opaque, part->data, part->size);
	case CKT_BINARY_CODE:
		return search_code(opaque, part->data, part->size);
	case CKT_BINARY_OTHER:
		break;
	}
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
