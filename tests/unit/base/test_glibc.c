/* SPDX-License-Identifier: Apache-2.0 */
/* base/glibc.c: the names of a newer glibc do what the old ones did. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/suite.h"

long __isoc23_strtol(const char *text, char **end, int base);
long long __isoc23_strtoll(const char *text, char **end, int base);
unsigned long __isoc23_strtoul(const char *text, char **end, int base);
unsigned long long __isoc23_strtoull(const char *text, char **end, int base);
int __isoc23_sscanf(const char *text, const char *format, ...) __attribute__((format(scanf, 2, 3)));
int __isoc23_fscanf(FILE *file, const char *format, ...) __attribute__((format(scanf, 2, 3)));

static void test_numbers(void)
{
	static const struct {
		const char *text;
		int base;
		long long value;
		unsigned long long unsigned_value;
		size_t used;
		int error, unsigned_error;
	} rows[] = {
		{"42", 10, 42, 42, 2, 0, 0},
		{"  +7x", 10, 7, 7, 4, 0, 0},
		{"-1", 10, -1, ULLONG_MAX, 2, 0, 0},
		{"0x1f", 0, 31, 31, 4, 0, 0},
		{"017", 0, 15, 15, 3, 0, 0},
		{"zz", 36, 35 * 36 + 35, 35 * 36 + 35, 2, 0, 0},
		{"x", 10, 0, 0, 0, 0, 0},
		{"", 10, 0, 0, 0, 0, 0},
		/* Binary digits are what the new names would take and these do not. */
		{"0b11", 0, 0, 0, 1, 0, 0},
		{"0b11", 2, 0, 0, 1, 0, 0},
		{"9223372036854775807", 10, LLONG_MAX, LLONG_MAX, 19, 0, 0},
		{"9223372036854775808", 10, LLONG_MAX, 9223372036854775808ull, 19, ERANGE, 0},
		{"-9223372036854775809", 10, LLONG_MIN, 9223372036854775807ull, 20, ERANGE, 0},
		{"99999999999999999999", 10, LLONG_MAX, ULLONG_MAX, 20, ERANGE, ERANGE},
	};
	for (size_t i = 0; i < COUNT(rows); i++) {
		char *text = (char *)rows[i].text, *end[4] = {0};
		int error[4];
		errno = 0;
		IS(__isoc23_strtol(text, &end[0], rows[i].base), rows[i].value);
		error[0] = errno;
		errno = 0;
		IS(__isoc23_strtoll(text, &end[1], rows[i].base), rows[i].value);
		error[1] = errno;
		errno = 0;
		IS(__isoc23_strtoul(text, &end[2], rows[i].base), rows[i].unsigned_value);
		error[2] = errno;
		errno = 0;
		IS(__isoc23_strtoull(text, &end[3], rows[i].base), rows[i].unsigned_value);
		error[3] = errno;
		for (int n = 0; n < 4; n++) {
			IS(end[n] - text, rows[i].used);
			IS(error[n], n < 2 ? rows[i].error : rows[i].unsigned_error);
		}
	}
}

static void test_scan(void)
{
	int number = 0, hexadecimal = 0;
	char word[8] = "", digits[4] = "";
	IS(__isoc23_sscanf("12 abcdefghij 0x10", "%d %7s", &number, word), 2);
	IS(number, 12);
	TEXT(word, "abcdefg");
	IS(__isoc23_sscanf("0b1", "%i%3s", &number, word), 2);
	IS(number, 0);
	TEXT(word, "b1");
	IS(__isoc23_sscanf("x", "%d", &number), 0);
	IS(__isoc23_sscanf("", "%d", &number), EOF);
	FILE *file = fmemopen((char *)"ff:123 rest", 11, "r");
	MUST(file != NULL, 1);
	IS(__isoc23_fscanf(file, "%x:%3[0-9]", (unsigned *)&hexadecimal, digits), 2);
	IS(hexadecimal, 255);
	TEXT(digits, "123");
	IS(__isoc23_fscanf(file, "%7s", word), 1);
	TEXT(word, "rest");
	IS(__isoc23_fscanf(file, "%7s", word), EOF);
	fclose(file);
}

UNIT_SUITE(glibc, {"numbers", test_numbers}, {"scanf", test_scan})
