/* SPDX-License-Identifier: Apache-2.0 */
/* client/cudart/error_table.c: the table of errors. */
#include "files.h"

static void test_texts(void)
{
	/* Every number up to the last one has a name of its own or none; the look-up needs them in order. */
	const char *last = "";
	unsigned known = 0;
	for (int i = 0; i < 1000; i++) {
		const char *name = cudaGetErrorName((cudaError_t)i),
			   *text = cudaGetErrorString((cudaError_t)i);
		bool has_name = strcmp(name, "unrecognized error code") != 0;
		IS(has_name, strcmp(text, "unrecognized error code") != 0);
		if (!has_name)
			continue;
		HAS(name, "cuda");
		YES(strcmp(name, last) != 0);
		YES(text[0] != '\0');
		last = name;
		known++;
	}
	YES(known > 100);
	TEXT(cudaGetErrorName(cudaErrorApiFailureBase), "cudaErrorApiFailureBase");
}

UNIT_SUITE(error_table, {"texts", test_texts})
