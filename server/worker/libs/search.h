/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the genuine libraries lie on this machine, and which file of several is taken.
 *
 *	--library-path          the operator's directories; what lies there goes before everything else
 *	beside the soft GPU     with the soft GPU: its own libraries, and nothing below this line
 *	toolkits, wheels        /usr/local/cuda and its like, Python's nvidia packages: as one
 *	the loader's            LD_LIBRARY_PATH of the server, ld.so.conf, the system's directories
 *
 * Of the first of these rows that has the major version, the file of the client's own version is
 * taken, else the highest.  A file counts only where it and all directories above are root's or the
 * operator's (base/trusted_file.h).  Nothing here is the client's: it says a version, no more.
 *
 * Threading: one at a time.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum { CKT_SEARCH_DIRS_MAX = 256, CKT_SEARCH_PATH_MAX = 4096, CKT_SEARCH_VERSION_MAX = 32 };

struct ckt_search {
	/* "" ; a test's own tree, put before all absolute paths below */
	const char *root;
	const char *operator_path; /* DIR:DIR, or "" */
	const char *soft_path;     /* DIR:DIR: the soft GPU's; NULL: the GPU is real */
	/* PREFIX:PREFIX of further toolkits and Python environments, or "" */
	const char *roots;
	const char *loader_path; /* LD_LIBRARY_PATH, or "" */
	uid_t owners[2];         /* whose files count, beside root's */
};

struct ckt_search_found {
	char path[CKT_SEARCH_PATH_MAX]; /* without symbolic links */
	unsigned major;
	/* as the file's name has it: "13.1.0.3", or "13" where that is all it says */
	char version[CKT_SEARCH_VERSION_MAX];
};

/*
 * stem: "libcublas.so"; major 0: the highest there is; version: the client's own, or as much as is
 * known of it, or "".  0, or -ENOENT with one sentence that names the library, where it was looked
 * for, and what was there and did not count.
 */
int ckt_search_find(const struct ckt_search *search, const char *stem, unsigned major,
	const char *version, struct ckt_search_found *ret_found, char *ret_message,
	size_t message_size);
/* <0, 0, >0 as a is older, the same, newer; what is not said is older. */
int ckt_search_compare(const char *a, const char *b);
