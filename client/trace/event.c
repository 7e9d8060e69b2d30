/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Formats by hand: the writer must keep up with threads that issue millions of calls in a second,
 * and printf needs several times as long.
 */
#include "client/trace/event.h"

#include <string.h>

/* Names of kernels are of any length; the event's buffer is not. */
enum { NAME_MAX_BYTES = 256 };

static char *put_text(char *p, const char *text)
{
	size_t length = strlen(text);
	memcpy(p, text, length);
	return p + length;
}

static char *put_number(char *p, uint64_t value)
{
	char digits[20];
	unsigned n = 0;
	do
		digits[n++] = (char)('0' + value % 10);
	while (value /= 10);
	while (n)
		*p++ = digits[--n];
	return p;
}

/* Nanoseconds as microseconds. */
static char *put_us(char *p, uint64_t ns)
{
	p = put_number(p, ns / 1000);
	unsigned rest = (unsigned)(ns % 1000);
	*p++ = '.';
	*p++ = (char)('0' + rest / 100);
	*p++ = (char)('0' + rest / 10 % 10);
	*p++ = (char)('0' + rest % 10);
	return p;
}

static char *put_hex(char *p, uint64_t value)
{
	p = put_text(p, "\"0x");
	int shift = 60;
	while (shift && !(value >> shift))
		shift -= 4;
	for (; shift >= 0; shift -= 4)
		*p++ = "0123456789abcdef"[value >> shift & 15];
	*p++ = '"';
	return p;
}

char *ckt_trace_string_put(char *p, const char *text, size_t most)
{
	*p++ = '"';
	for (size_t i = 0; i < most && text[i]; i++) {
		char c = text[i];
		if (c == '"' || c == '\\')
			*p++ = '\\';
		/* A name that is no text must not make the file unreadable. */
		*p++ = c < 32 || c > 126 ? '?' : c;
	}
	*p++ = '"';
	return p;
}

static char *put_three(char *p, const char *name, const uint32_t value[3])
{
	p = put_text(p, name);
	for (int i = 0; i < 3; i++) {
		p = put_number(p, value[i]);
		*p++ = i < 2 ? ',' : ']';
	}
	return p;
}

static char *put_kernel(char *p, const struct ckt_trace_record *record, const char *kernel)
{
	p = put_text(p, "\"kernel\":");
	p = kernel ? ckt_trace_string_put(p, kernel, NAME_MAX_BYTES) : put_hex(p, record->kernel);
	p = put_three(p, ",\"grid\":[", record->grid);
	p = put_three(p, ",\"block\":[", record->block);
	p = put_text(p, ",\"shared_bytes\":");
	p = put_number(p, record->shared_bytes);
	return put_text(p, ",");
}

size_t ckt_trace_event_put(char buffer[CKT_TRACE_EVENT_MAX], const struct ckt_trace_record *record,
	const struct ckt_trace_text *text)
{
	static const char *const categories[] = {"runtime", "driver", "library", "gpu"};
	char *p = put_text(buffer, "{\"name\":");
	p = ckt_trace_string_put(p, text->name, NAME_MAX_BYTES);
	p = put_text(p, ",\"cat\":\"");
	p = put_text(p, categories[text->category % 4]);
	p = put_text(p, "\",\"ph\":\"X\",\"ts\":");
	p = put_us(p, text->start_ns);
	p = put_text(p, ",\"dur\":");
	p = put_us(p, text->duration_ns);
	p = put_text(p, ",\"pid\":");
	p = put_number(p, (uint64_t)text->pid);
	p = put_text(p, ",\"tid\":");
	p = put_number(p, (uint64_t)text->tid);
	p = put_text(p, ",\"args\":{");
	if (record->flags & CKT_TRACE_F_STREAM) {
		p = put_text(p, "\"stream\":");
		p = put_hex(p, record->stream);
		p = put_text(p, ",");
	}
	if (record->flags & CKT_TRACE_F_BYTES) {
		p = put_text(p, "\"bytes\":");
		p = put_number(p, record->bytes);
		p = put_text(p, ",");
	}
	if (record->flags & CKT_TRACE_F_KERNEL)
		p = put_kernel(p, record, text->kernel);
	if (text->category == CKT_TRACE_GPU) {
		/* In place of the comma. */
		p = put_text(p - 1, "}}");
		return (size_t)(p - buffer);
	}
	p = put_text(p, "\"commands\":");
	p = put_number(p, record->commands);
	p = put_text(p,
		record->flags & CKT_TRACE_F_WAITED ? ",\"waited\":true}}" : ",\"waited\":false}}");
	return (size_t)(p - buffer);
}
