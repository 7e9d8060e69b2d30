/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes of device memory of a module; see module_size.h. */
#include "server/worker/module/module_size.h"

#include <ctype.h>
#include <elf.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "server/worker/module/module_binary.h"
#include "server/worker/module/elf_check.h"

static uint64_t sum(uint64_t a, uint64_t b)
{
	return b > UINT64_MAX - a ? UINT64_MAX : a + b;
}

/* ---- Machine code: all allocated sections, except shared and local memory */

static bool begins(const char *text, const char *with)
{
	return !strncmp(text, with, strlen(with));
}

static void add_section(void *opaque, const struct ckt_elf_section *section)
{
	uint64_t *bytes = opaque;
	if (section->flags & SHF_ALLOC && !begins(section->name, ".nv.shared") &&
		!begins(section->name, ".nv.local"))
		*bytes = sum(*bytes, section->size);
}

static uint64_t code_bytes(const uint8_t *data, size_t size)
{
	uint64_t bytes = 0;
	ckt_elf_each_section(data, size, add_section, &bytes);
	return bytes;
}

/* ---- PTX: declared variables, and the text's length as an estimate of the code */

struct text {
	const char *at, *end;
};

static void skip_blank(struct text *t)
{
	while (t->at < t->end && isspace((unsigned char)*t->at))
		t->at++;
}

/* Skips a comment that begins here. */
static bool skip_comment(struct text *t)
{
	size_t left = (size_t)(t->end - t->at);
	if (left < 2 || t->at[0] != '/' || (t->at[1] != '/' && t->at[1] != '*'))
		return false;
	const char *close =
		t->at[1] == '/' ? memchr(t->at, '\n', left) : memmem(t->at + 2, left - 2, "*/", 2);
	t->at = !close ? t->end : t->at[1] == '/' ? close : close + 2;
	return true;
}

static bool is_word(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '$' || c == '%' || c == '.';
}

static uint64_t element_bytes(const char *word, size_t length)
{
	static const struct {
		const char *name;
		unsigned bytes;
	} types[] = {{".b8", 1}, {".u8", 1}, {".s8", 1}, {".b16", 2}, {".u16", 2}, {".s16", 2},
		{".f16", 2}, {".b32", 4}, {".u32", 4}, {".s32", 4}, {".f32", 4}, {".b64", 8},
		{".u64", 8}, {".s64", 8}, {".f64", 8}, {".b128", 16}, {".v2", 2}, {".v4", 4}};
	for (size_t i = 0; i < sizeof types / sizeof *types; i++)
		if (strlen(types[i].name) == length && !memcmp(types[i].name, word, length))
			return types[i].bytes;
	return 1;
}

/*
 * The bytes declared between .global or .const and the semicolon: types, dimensions, further
 * variables after commas.
 */
static uint64_t declared(struct text *t)
{
	uint64_t element = 1, count = 1, bytes = 0;
	while (t->at < t->end && *t->at != ';') {
		const char *word = t->at;
		if (skip_comment(t))
			continue;
		if (*t->at == '[') {
			char *close;
			uint64_t n = strtoull(t->at + 1, &close, 0);
			t->at = close > t->end ? t->end : close;
			if (__builtin_mul_overflow(count, n ? n : 1, &count))
				count = UINT64_MAX;
		} else if (*t->at == ',') {
			bytes = sum(bytes,
				__builtin_mul_overflow(element, count, &count) ? UINT64_MAX
									       : count);
			count = 1;
			t->at++;
		} else if (*t->at == '=' || *t->at == '{') {
			/*
			 * The length of the initial values bounds their size: at most 8 bytes for
			 * each character.  An array without a number has no other size.
			 */
			while (t->at < t->end && *t->at != ';')
				t->at++;
			bytes = sum(bytes, (uint64_t)(t->at - word) * 8);
		} else if (is_word(*t->at)) {
			while (t->at < t->end && is_word(*t->at))
				t->at++;
			uint64_t bytes_of = element_bytes(word, (size_t)(t->at - word));
			if (*word == '.' && bytes_of > 1)
				element *= element < 64 ? bytes_of : 1;
		} else {
			t->at++;
		}
	}
	return sum(bytes, __builtin_mul_overflow(element, count, &count) ? UINT64_MAX : count);
}

/* The text ends with a NUL, as strtoull needs it: the blobs and the copy below have one. */
static uint64_t text_bytes(const char *data, size_t size)
{
	struct text t = {data, data + strnlen(data, size)};
	uint64_t bytes = (uint64_t)(t.end - t.at);
	char before[16] = "";
	while (t.at < t.end) {
		if (isspace((unsigned char)*t.at) || skip_comment(&t)) {
			skip_blank(&t);
			continue;
		}
		const char *word = t.at;
		if (!is_word(*word)) {
			before[0] = 0;
			t.at++;
			continue;
		}
		while (t.at < t.end && is_word(*t.at))
			t.at++;
		size_t length = (size_t)(t.at - word);
		bool space = (length == 7 && !memcmp(word, ".global", 7)) ||
			(length == 6 && !memcmp(word, ".const", 6));
		/*
		 * Skip ".ptr .global", which qualifies a parameter, and variables of other modules.
		 */
		if (space && strcmp(before, ".ptr") && strcmp(before, ".extern"))
			bytes = sum(bytes, declared(&t));
		memcpy(before, word, length < sizeof before ? length : 0);
		before[length < sizeof before ? length : 0] = 0;
	}
	return bytes;
}

/* ---- All parts */

struct largest {
	unsigned capability;
	uint64_t bytes;
};

static int look(void *opaque, const struct ckt_binary_part *part)
{
	struct largest *largest = opaque;
	uint64_t bytes = 0;
	if (part->kind == CKT_BINARY_CODE &&
		(!part->capability || part->capability / 10 == largest->capability / 10)) {
		bytes = code_bytes(part->data, part->size);
	} else if (part->kind == CKT_BINARY_PTX) {
		char *copy = malloc(part->size + 1);
		if (!copy)
			return -1;
		memcpy(copy, part->data, part->size);
		copy[part->size] = 0;
		bytes = text_bytes(copy, part->size);
		free(copy);
	}
	if (bytes > largest->bytes)
		largest->bytes = bytes;
	return 0;
}

uint64_t ckt_module_device_bytes(const uint8_t *image, size_t size, unsigned capability)
{
	struct largest largest = {.capability = capability};
	return ckt_module_binary_walk(image, size, look, &largest) ? UINT64_MAX : largest.bytes;
}
