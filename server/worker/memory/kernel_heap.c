/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that kernels take themselves; see kernel_heap.h. */
#include "server/worker/memory/kernel_heap.h"

#include <ctype.h>
#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "server/worker/module/module_binary.h"
#include "server/worker/worker.h"

struct search {
	const char *kernel;
	bool reached;
};

/* ---- Machine code: the graph of calls that the compiler leaves in it, pairs of symbols */

enum { CALL_GRAPH = SHT_LOPROC + 1, IS_KERNEL = 0x10, DEPTH_MAX = 64 };

struct code {
	const uint8_t *data;
	size_t size;
	const Elf64_Sym *symbols;
	size_t symbol_count;
	const char *names;
	size_t names_size;
	const uint32_t (*calls)[2];
	size_t call_count;
};

static const void *contents(const uint8_t *data, size_t size, const Elf64_Shdr *section)
{
	bool inside = section->sh_type != SHT_NOBITS && section->sh_offset <= size &&
		section->sh_size <= size - section->sh_offset;
	return inside && section->sh_offset % 4 == 0 ? data + section->sh_offset : NULL;
}

static bool open_code(const uint8_t *data, size_t size, struct code *ret)
{
	const Elf64_Ehdr *header = (const Elf64_Ehdr *)data;
	*ret = (struct code){.data = data, .size = size};
	if (size < sizeof *header || (uintptr_t)data % 8 || memcmp(data, ELFMAG, SELFMAG) != 0 ||
		header->e_shentsize != sizeof(Elf64_Shdr) || header->e_shoff % 8 ||
		header->e_shoff > size ||
		header->e_shnum > (size - header->e_shoff) / sizeof(Elf64_Shdr))
		return false;
	const Elf64_Shdr *sections = (const Elf64_Shdr *)(data + header->e_shoff);
	for (unsigned i = 0; i < header->e_shnum; i++) {
		const Elf64_Shdr *s = &sections[i];
		const void *at = contents(data, size, s);
		if (s->sh_type == SHT_SYMTAB && at && (uintptr_t)at % 8 == 0 &&
			s->sh_link < header->e_shnum) {
			ret->symbols = at;
			ret->symbol_count = s->sh_size / sizeof(Elf64_Sym);
			ret->names = contents(data, size, &sections[s->sh_link]);
			/*
			 * Names are read up to the end of the whole, whatever the section's
			 * alignment.
			 */
			if (!ret->names && sections[s->sh_link].sh_offset < size)
				ret->names = (const char *)data + sections[s->sh_link].sh_offset;
			ret->names_size = ret->names
				? size - (size_t)((const uint8_t *)ret->names - data)
				: 0;
		} else if (s->sh_type == CALL_GRAPH && at) {
			ret->calls = at;
			ret->call_count = s->sh_size / sizeof *ret->calls;
		}
	}
	return ret->symbols && ret->names;
}

static bool is_named(const struct code *code, size_t symbol, const char *name)
{
	size_t at = symbol < code->symbol_count ? code->symbols[symbol].st_name : SIZE_MAX,
	       length = strlen(name) + 1;
	return at < code->names_size && length <= code->names_size - at &&
		memcmp(code->names + at, name, length) == 0;
}

static bool is_malloc(const struct code *code, size_t symbol)
{
	return is_named(code, symbol, "malloc") && code->symbols[symbol].st_shndx == SHN_UNDEF;
}

static bool reaches(const struct code *code, uint32_t caller, unsigned depth)
{
	if (is_malloc(code, caller) || depth == DEPTH_MAX)
		return true;
	for (size_t i = 0; i < code->call_count; i++)
		if (code->calls[i][0] == caller && code->calls[i][1] != caller &&
			code->calls[i][1] < code->symbol_count &&
			reaches(code, code->calls[i][1], depth + 1))
			return true;
	return false;
}

static bool code_reaches(const uint8_t *data, size_t size, const char *kernel)
{
	struct code code;
	bool used = false, by_pointer = false;
	/* Code that cannot be parsed but holds the name may call it. */
	if (!open_code(data, size, &code))
		return memmem(data, size, "malloc", sizeof "malloc") != NULL;
	for (size_t i = 0; i < code.symbol_count; i++)
		used |= is_malloc(&code, i);
	if (!used || !code.calls || !kernel)
		return used;
	for (size_t i = 0; i < code.call_count; i++)
		if (is_malloc(&code, code.calls[i][1]) && code.calls[i][0] < code.symbol_count)
			by_pointer |= !(code.symbols[code.calls[i][0]].st_other & IS_KERNEL);
	for (size_t i = 0; i < code.symbol_count && !by_pointer; i++)
		if (is_named(&code, i, kernel) && code.symbols[i].st_shndx != SHN_UNDEF &&
			reaches(&code, (uint32_t)i, 0))
			return true;
	return by_pointer;
}

/* ---- PTX: bodies that name it */

/* Braces are words. */
struct reader {
	const char *at, *end;
	unsigned parentheses; /* that are open */
};

static bool next_word(struct reader *r, const char **ret_word, size_t *ret_length)
{
	const char *p = r->at;
	for (; p < r->end && !isalpha((unsigned char)*p) && !strchr("_$%.{}", *p); p++) {
		if (*p == '(')
			r->parentheses++;
		else if (*p == ')' && r->parentheses)
			r->parentheses--;
	}
	if (p == r->end)
		return false;
	*ret_word = p++;
	if (**ret_word != '{' && **ret_word != '}')
		while (p < r->end && (isalnum((unsigned char)*p) || *p == '_' || *p == '$'))
			p++;
	*ret_length = (size_t)(p - *ret_word);
	r->at = p;
	return true;
}

static bool is_word(const char *word, size_t length, const char *text)
{
	return length == strlen(text) && memcmp(word, text, length) == 0;
}

/* Names that lead to malloc: itself, and functions whose bodies name one that does. */
struct leads {
	struct {
		const char *word;
		size_t length;
	} list[256];
	size_t count;
};

static bool leads(const struct leads *l, const char *word, size_t length)
{
	for (size_t i = 0; i < l->count; i++)
		if (l->list[i].length == length && memcmp(l->list[i].word, word, length) == 0)
			return true;
	return false;
}

enum place { NOWHERE, IN_KERNEL, IN_FUNCTION };

/*
 * One pass: adds functions that lead there.  True if the kernel leads there, or if an initialiser
 * names such a function, because then any kernel may call it by its address.
 */
static bool pass(const char *text, size_t size, const char *kernel, struct leads *l)
{
	struct reader r = {.at = text, .end = text + size};
	const char *word, *name = "";
	size_t length, name_length = 0;
	unsigned depth = 0;
	enum place place = NOWHERE;
	while (next_word(&r, &word, &length)) {
		if (*word == '{') {
			depth++;
		} else if (*word == '}') {
			depth -= depth > 0;
		} else if (!depth && *word == '.') {
			bool function = is_word(word, length, ".func"),
			     entry = is_word(word, length, ".entry");
			if (function || entry)
				place = entry ? IN_KERNEL : IN_FUNCTION;
			else if (is_word(word, length, ".global") ||
				is_word(word, length, ".const"))
				place = NOWHERE;
		} else if (!depth && !r.parentheses && place != NOWHERE) {
			/* Results and parameters stand in parentheses. */
			name = word;
			name_length = length;
		} else if (depth && leads(l, word, length)) {
			if (place == NOWHERE ||
				(place == IN_KERNEL &&
					(!kernel || is_word(name, name_length, kernel))))
				return true;
			if (place == IN_FUNCTION && l->count < sizeof l->list / sizeof *l->list &&
				!leads(l, name, name_length)) {
				l->list[l->count].word = name;
				l->list[l->count++].length = name_length;
			}
		}
	}
	return false;
}

static bool text_reaches(const char *text, size_t size, const char *kernel)
{
	struct leads l = {.list = {{"malloc", 6}}, .count = 1};
	for (size_t before = 0; before != l.count;) {
		before = l.count;
		if (pass(text, size, kernel, &l))
			return true;
	}
	return l.count == sizeof l.list / sizeof *l.list;
}

static int search_part(void *opaque, const struct ckt_binary_part *part)
{
	struct search *search = opaque;
	search->reached |= part->kind == CKT_BINARY_CODE
		? code_reaches(part->data, part->size, search->kernel)
		: text_reaches((const char *)part->data, part->size, search->kernel);
	return 0;
}

bool ckt_heap_reached(const uint8_t *image, size_t size, const char *kernel)
{
	struct search search = {.kernel = kernel};
	/* Code that cannot be examined may hold anything. */
	return ckt_module_binary_walk(image, size, search_part, &search) != 0 || search.reached;
}

static bool may_take(struct ckt_worker *worker, const struct ckt_object *function)
{
	struct ckt_object *module =
		ckt_objects_find_kind(&worker->objects, function->parent, CKT_KIND_MODULE);
	struct ckt_blob *blob = module
		? (struct ckt_blob *)ckt_blobs_find(&worker->blobs, module->module.hash)
		: NULL;
	if (blob && blob->heap == CKT_BLOB_HEAP_UNKNOWN)
		blob->heap = ckt_heap_reached(blob->data, blob->size, NULL) ? CKT_BLOB_HEAP_YES
									    : CKT_BLOB_HEAP_NO;
	return blob && blob->heap == CKT_BLOB_HEAP_YES &&
		ckt_heap_reached(blob->data, blob->size, function->function.name);
}

void ckt_heap_look(struct ckt_worker *worker, const struct ckt_object *module)
{
	struct ckt_object *object;
	for (uint32_t cursor = 0; (object = ckt_objects_next(&worker->objects, &cursor));) {
		if (ckt_handle_kind(object->id) != CKT_KIND_FUNCTION ||
			!object->function.launched || (module && object->parent != module->id))
			continue;
		struct ckt_object *context = ckt_objects_find(&worker->objects, object->context);
		if (context && !context->ctx.heap_kernel[0] && may_take(worker, object))
			snprintf(context->ctx.heap_kernel, sizeof context->ctx.heap_kernel, "%s",
				object->function.name);
		/* Once is enough. */
		object->function.launched = false;
	}
}

int ckt_heap_check(struct ckt_worker *worker, char *ret_message, size_t message_size)
{
	const struct ckt_object *object;
	ckt_heap_look(worker, NULL);
	for (uint32_t cursor = 0; (object = ckt_objects_next(&worker->objects, &cursor));) {
		if (ckt_handle_kind(object->id) != CKT_KIND_CONTEXT || !object->ctx.heap_kernel[0])
			continue;
		snprintf(ret_message, message_size,
			"kernel %s was launched and takes memory with malloc or new, "
			"and the driver offers no way to save that memory: allocate it "
			"with cudaMalloc before the launch",
			object->ctx.heap_kernel);
		return -EOPNOTSUPP;
	}
	return 0;
}
