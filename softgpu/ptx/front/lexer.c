/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PTX tokens: names, .words, numbers, strings and single characters, with their line numbers.
 * Comments are skipped.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "softgpu/ptx/front/containers.h"
#include "softgpu/ptx/front/parser.h"

/*
 * Logs one line that names p->raw's instruction or the current token, and jumps back to the loader.
 */
_Noreturn void ckt_ptx_fail(
	struct ptx_parser *p, enum ckt_ptx_result result, const char *format, ...)
{
	char text[160] = "", why[256];
	va_list ap;
	va_start(ap, format);
	vsnprintf(why, sizeof why, format, ap);
	va_end(ap);
	uint32_t line = p->in_instruction ? p->raw.line : p->token.line;
	if (p->in_instruction && p->raw.start) {
		size_t n = 0;
		for (const char *s = p->raw.start; s < p->end && *s != ';' && n + 1 < sizeof text;
			s++) {
			bool blank = *s == ' ' || *s == '\t' || *s == '\n' || *s == '\r';
			if (blank && (!n || text[n - 1] == ' '))
				continue;
			text[n++] = blank ? ' ' : *s;
		}
		text[n] = 0;
	}
	snprintf(p->message, sizeof p->message, "%s:%u: %s%s%s", p->text_name, line, why,
		text[0] ? ": " : "", text);
	if (p->log && p->log_size)
		snprintf(p->log, p->log_size, "%s", p->message);
	p->result = result;
	longjmp(p->fail, 1);
}

_Noreturn void ckt_ptx_out_of_memory(struct ptx_parser *p)
{
	ckt_ptx_fail(p, CKT_PTX_NO_MEMORY, "out of memory");
}

void *ckt_ptx_new(struct ptx_parser *p, size_t size)
{
	void *place = ckt_ptx_arena_alloc(&p->module->arena, size ? size : 1);
	if (!place)
		ckt_ptx_out_of_memory(p);
	return place;
}

char *ckt_ptx_copy_name(struct ptx_parser *p, const char *text, size_t size)
{
	char *copy = ckt_ptx_arena_string(&p->module->arena, text, size);
	if (!copy)
		ckt_ptx_out_of_memory(p);
	return copy;
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}
static bool is_start(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '$' || c == '%';
}
static bool is_inside(char c)
{
	return is_start(c) || is_digit(c);
}

static void skip_blanks(struct ptx_parser *p)
{
	const char *s = p->cursor, *end = p->end;
	for (; s < end; s++) {
		if (*s == '\n') {
			p->line++;
		} else if (*s == '/' && s + 1 < end && s[1] == '/') {
			while (s + 1 < end && s[1] != '\n')
				s++;
		} else if (*s == '/' && s + 1 < end && s[1] == '*') {
			for (s += 2; s + 1 < end && !(s[0] == '*' && s[1] == '/'); s++)
				p->line += *s == '\n';
			s++;
		} else if (*s != ' ' && *s != '\t' && *s != '\r' && *s != '\f' && *s != 0) {
			break;
		}
	}
	p->cursor = s < end ? s : end;
}

static int hex_digit(char c)
{
	return is_digit(c)             ? c - '0'
		: c >= 'a' && c <= 'f' ? c - 'a' + 10
		: c >= 'A' && c <= 'F' ? c - 'A' + 10
				       : 99;
}

static uint64_t digits(struct ptx_parser *p, const char **s, int base)
{
	uint64_t value = 0;
	const char *start = *s;
	for (; *s < p->end && hex_digit(**s) < base; (*s)++)
		value = value * (unsigned)base + (unsigned)hex_digit(**s);
	if (*s == start)
		ckt_ptx_fail_broken(p, "malformed number");
	return value;
}

static void lex_decimal_float(struct ptx_parser *p, const char *s)
{
	char copy[64];
	size_t n = 0;
	while (s + n < p->end && n + 1 < sizeof copy &&
		(is_digit(s[n]) || s[n] == '.' || s[n] == 'e' || s[n] == 'E' ||
			(n && (s[n] == '-' || s[n] == '+') && (s[n - 1] | 32) == 'e'))) {
		copy[n] = s[n];
		n++;
	}
	copy[n] = 0;
	double value = strtod(copy, NULL);
	p->token.kind = TK_F64;
	memcpy(&p->token.value, &value, sizeof value);
	p->cursor = s + n;
}

static void lex_number(struct ptx_parser *p)
{
	const char *s = p->cursor;
	char second = s + 1 < p->end ? s[1] : 0;
	p->token.kind = TK_INT;
	if (*s == '0' && (second == 'f' || second == 'F' || second == 'd' || second == 'D')) {
		p->token.kind = second == 'f' || second == 'F' ? TK_F32 : TK_F64;
		s += 2;
		const char *first = s;
		p->token.value = digits(p, &s, 16);
		if (s - first != (p->token.kind == TK_F32 ? 8 : 16))
			ckt_ptx_fail_broken(p, "malformed number");
	} else if (*s == '0' && (second == 'x' || second == 'X')) {
		s += 2;
		p->token.value = digits(p, &s, 16);
	} else if (*s == '0' && (second == 'b' || second == 'B')) {
		s += 2;
		p->token.value = digits(p, &s, 2);
	} else {
		const char *t = s;
		while (t < p->end && is_digit(*t))
			t++;
		if (t < p->end && (*t == '.' || *t == 'e' || *t == 'E')) {
			lex_decimal_float(p, s);
			return;
		}
		p->token.value = digits(p, &s, *s == '0' && is_digit(second) ? 8 : 10);
	}
	if (s < p->end && *s == 'U')
		s++;
	p->cursor = s;
}

void ckt_ptx_next(struct ptx_parser *p)
{
	skip_blanks(p);
	struct ptx_token *t = &p->token;
	const char *s = p->cursor;
	*t = (struct ptx_token){.kind = TK_END, .text = s, .line = p->line};
	if (s >= p->end)
		return;
	/* a single % is the remainder operator */
	if (is_start(*s) && !(*s == '%' && (s + 1 == p->end || !is_inside(s[1])))) {
		while (s < p->end && is_inside(*s))
			s++;
		t->kind = TK_IDENT;
		t->size = (uint32_t)(s - t->text);
		p->cursor = s;
	} else if (*s == '.' && s + 1 < p->end && is_digit(s[1]) &&
		(s == p->begin || !is_inside(s[-1]))) { /* .5, not tex.1d */
		lex_decimal_float(p, s);
		t->size = (uint32_t)(p->cursor - t->text);
	} else if (*s == '.' && s + 1 < p->end && is_inside(s[1])) {
		t->text = ++s;
		while (s < p->end &&
			(is_inside(*s) ||
				(*s == ':' && s + 2 < p->end && s[1] == ':' && is_inside(s[2])) ||
				(*s == ':' && s[-1] == ':')))
			s++;
		t->kind = TK_DOT;
		t->size = (uint32_t)(s - t->text);
		p->cursor = s;
	} else if (is_digit(*s)) {
		lex_number(p);
		t->size = (uint32_t)(p->cursor - t->text);
	} else if (*s == '"') {
		for (s++; s < p->end && *s != '"' && *s != '\n'; s++)
			;
		if (s >= p->end || *s != '"')
			ckt_ptx_fail_broken(p, "unterminated string");
		t->kind = TK_STRING;
		t->text++;
		t->size = (uint32_t)(s - t->text);
		p->cursor = s + 1;
	} else {
		t->kind = TK_PUNCT;
		t->punct = *s;
		t->size = 1;
		p->cursor = s + 1;
	}
}

void ckt_ptx_skip_line(struct ptx_parser *p)
{
	uint32_t line = p->token.line;
	while (p->token.kind != TK_END && p->token.line == line)
		ckt_ptx_next(p);
}

void ckt_ptx_skip_braces(struct ptx_parser *p)
{
	unsigned depth = 0;
	do {
		if (p->token.kind == TK_END)
			ckt_ptx_fail(p, CKT_PTX_INVALID, "missing }");
		if (ckt_ptx_is(p, '{'))
			depth++;
		else if (ckt_ptx_is(p, '}'))
			depth--;
		ckt_ptx_next(p);
	} while (depth);
}

bool ckt_ptx_is(const struct ptx_parser *p, char punct)
{
	return p->token.kind == TK_PUNCT && p->token.punct == punct;
}

bool ckt_ptx_accept(struct ptx_parser *p, char punct)
{
	if (!ckt_ptx_is(p, punct))
		return false;
	ckt_ptx_next(p);
	return true;
}

void ckt_ptx_expect(struct ptx_parser *p, char punct)
{
	if (!ckt_ptx_accept(p, punct))
		ckt_ptx_fail_broken(p, "'%c' expected before '%.*s'", punct,
			(int)(p->token.size < 40 ? p->token.size : 40), p->token.text);
}

bool ckt_ptx_token_is(const struct ptx_token *t, const char *word)
{
	return t->size == strlen(word) && !memcmp(t->text, word, t->size);
}

bool ckt_ptx_is_dot(const struct ptx_parser *p, const char *word)
{
	return p->token.kind == TK_DOT && ckt_ptx_token_is(&p->token, word);
}

bool ckt_ptx_accept_dot(struct ptx_parser *p, const char *word)
{
	if (!ckt_ptx_is_dot(p, word))
		return false;
	ckt_ptx_next(p);
	return true;
}
