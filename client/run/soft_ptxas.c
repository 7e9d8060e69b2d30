/* SPDX-License-Identifier: Apache-2.0 */
/*
 * soft-ptxas: the ptxas of Triton and XLA under cricket-run --soft.  The soft GPU runs PTX, so the
 * "machine code" is the PTX itself.
 *
 *	soft-ptxas [OPTION...] FILE -o FILE		options are accepted and ignored
 *	soft-ptxas --version
 *
 * The version tells Triton which PTX ISA it may use: that of CUDA 13.0, 9.0.  Errors in a text are
 * reported when the module is loaded.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/option_table.h"

static int fail(const char *path)
{
	fprintf(stderr, "soft-ptxas: %s: %s\n", path, strerror(errno));
	return 1;
}

/* Copies the text and adds the NUL that cuModuleLoadData needs. */
static int copy(const char *from, const char *to)
{
	char buffer[65536];
	size_t size;
	FILE *in = fopen(from, "rb"), *out;

	if (!in)
		return fail(from);
	out = fopen(to, "wb");
	if (!out) {
		fclose(in);
		return fail(to);
	}
	while ((size = fread(buffer, 1, sizeof(buffer), in)) > 0)
		fwrite(buffer, 1, size, out);
	fputc(0, out);
	int unread = ferror(in), unwritten = ferror(out);
	fclose(in);
	return fclose(out) || unwritten ? fail(to) : unread ? fail(from) : 0;
}

int main(int argc, char **argv)
{
	/*
	 * Triton's file ends in .ptx and may come after the value of an option.  XLA's file has no
	 * suffix and comes first.
	 */
	const char *input = NULL, *other = NULL, *output = NULL;

	for (int i = 1; i < argc; i++) {
		size_t length = strlen(argv[i]);

		if (strcmp(argv[i], "--version") == 0) {
			printf("ptxas: Cricket's, which leaves PTX as it is\nCuda compilation tools, release 13.0, V13.0.0\n");
			return 0;
		}
		if (strcmp(argv[i], "-o") == 0 && i + 1 < argc)
			output = argv[++i];
		else if (length > 4 && strcmp(argv[i] + length - 4, ".ptx") == 0)
			input = argv[i];
		else if (argv[i][0] != '-' && !other)
			other = argv[i];
	}
	input = input ? input : other;
	if (!input || !output) {
		fprintf(stderr, "usage: soft-ptxas [OPTION...] FILE -o FILE\n");
		return CKT_EXIT_USAGE;
	}
	return copy(input, output);
}
