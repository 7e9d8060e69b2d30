/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The directories that hold genuine libraries on this machine, and the choice among several files.
 *
 *	--library-path          the operator's directories; a file here precedes all others
 *	beside the soft GPU     with the soft GPU: its own libraries, and no row below this one
 *	toolkits, wheels        /usr/local/cuda and the like, Python's nvidia packages: one row
 *	the loader's            the server's LD_LIBRARY_PATH, ld.so.conf, the system's directories
 *
 * The search takes the first row that has the major version, and in that row the file of the
 * client's own version, or else the highest version.  A file counts only if the file and all
 * directories above it belong to root or to the operator (base/trusted_file.h).  The client
 * contributes only a version.
 *
 * Threading: one thread at a time.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum { CKT_SEARCH_DIRS_MAX = 256, CKT_SEARCH_PATH_MAX = 4096, CKT_SEARCH_VERSION_MAX = 32 };

struct ckt_search {
	/* "", or a test's own tree, put before all absolute paths below */
	const char *root;
	const char *operator_path; /* DIR:DIR, or "" */
	const char *soft_path;     /* DIR:DIR: the soft GPU's directories; NULL: the GPU is real */
	/* PREFIX:PREFIX: further toolkits and Python environments, or "" */
	const char *roots;
	const char *loader_path; /* LD_LIBRARY_PATH, or "" */
	uid_t owners[2];         /* users whose files count, besides root */
};

struct ckt_search_found {
	char path[CKT_SEARCH_PATH_MAX]; /* without symbolic links */
	unsigned major;
	/* as in the file's name: "13.1.0.3", or "13" if the name has no more */
	char version[CKT_SEARCH_VERSION_MAX];
};

/*
 * stem: "libcublas.so"; major 0: the highest installed; version: the client's own, or its known
 * beginning, or "".  0, or -ENOENT with one sentence that names the library, the searched
 * directories, and the first file that did not count.
 */
int ckt_search_find(const struct ckt_search *search, const char *stem, unsigned major,
	const char *version, struct ckt_search_found *ret_found, char *ret_message,
	size_t message_size);
/* <0, 0, >0 as a is older, the same, newer; a version that ends first is older. */
int ckt_search_compare(const char *a, const char *b);
