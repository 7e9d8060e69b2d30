/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When glibc is 2.38 or newer, code is compiled to call strtol() and its relatives by names that
 * older systems lack; the bundle must run there. So this file defines those names, and static
 * libraries of the distribution (tirpc, jansson) and our own code find these first.  The only
 * difference is "0b" before binary digits, which nobody uses.
 */
#include <stdarg.h>
#include <stdio.h>

/* By their old names, whatever the headers make of the usual ones. */
long plain_strtol(const char *text, char **end, int base) __asm__("strtol");
long long plain_strtoll(const char *text, char **end, int base) __asm__("strtoll");
unsigned long plain_strtoul(const char *text, char **end, int base) __asm__("strtoul");
unsigned long long plain_strtoull(const char *text, char **end, int base) __asm__("strtoull");
int plain_vsscanf(const char *text, const char *format, va_list arguments) __asm__(
	"__isoc99_vsscanf");
int plain_vfscanf(FILE *file, const char *format, va_list arguments) __asm__("__isoc99_vfscanf");

long __isoc23_strtol(const char *text, char **end, int base);
long long __isoc23_strtoll(const char *text, char **end, int base);
unsigned long __isoc23_strtoul(const char *text, char **end, int base);
unsigned long long __isoc23_strtoull(const char *text, char **end, int base);
int __isoc23_sscanf(const char *text, const char *format, ...) __attribute__((format(scanf, 2, 3)));
int __isoc23_fscanf(FILE *file, const char *format, ...) __attribute__((format(scanf, 2, 3)));

long __isoc23_strtol(const char *text, char **end, int base)
{
	return plain_strtol(text, end, base);
}

long long __isoc23_strtoll(const char *text, char **end, int base)
{
	return plain_strtoll(text, end, base);
}

unsigned long __isoc23_strtoul(const char *text, char **end, int base)
{
	return plain_strtoul(text, end, base);
}

unsigned long long __isoc23_strtoull(const char *text, char **end, int base)
{
	return plain_strtoull(text, end, base);
}

int __isoc23_sscanf(const char *text, const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	int count = plain_vsscanf(text, format, arguments);
	va_end(arguments);
	return count;
}

int __isoc23_fscanf(FILE *file, const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	int count = plain_vfscanf(file, format, arguments);
	va_end(arguments);
	return count;
}
