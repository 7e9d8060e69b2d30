/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Directories of images on this host.
 *
 * Exit codes, with the reason said.
 */
#pragma once

#include <stdbool.h>

#include "ctl/command.h"

enum { CKT_CTL_PATH_SIZE = 4096 };

int ckt_ctl_refuse(const char *path, const char *why);
/* Either a directory here or a good --server-side NAME. */
int ckt_ctl_check_place(const struct ckt_ctl_args *args, bool here);
/* The name of an image in the server's memory, without "memory:". */
int ckt_ctl_check_kept(const char *name);
/* "memory:NAME" -> NAME, else NULL. */
const char *ckt_ctl_kept_name(const char *place);
/* Without trailing slashes. */
int ckt_ctl_path_copy(const char *text, char ret_path[CKT_CTL_PATH_SIZE]);
/* Returns the start of the last name. */
int ckt_ctl_path_parent(const char *path, char ret_parent[CKT_CTL_PATH_SIZE]);
/*
 * Removes what killed processes of ours left in a directory under this prefix; living ones hold a
 * lock.
 */
void ckt_ctl_stale_remove(const char *parent, const char *prefix);
/*
 * A new directory, open and locked, which is removed if a signal ends us.  path: ends with six
 * characters, which it changes.  0 or -errno: then there is none.
 */
int ckt_ctl_directory_make(char *path, int *ret_fd);
/* Best effort: tells the user what remains. */
void ckt_ctl_tree_remove(int parent, const char *name, unsigned depth);

/*
 * An unfinished image: a directory beside its final path, locked as long as we live, which gets the
 * final name once everything is on the disk.
 */
struct ckt_ctl_partial {
	char path[CKT_CTL_PATH_SIZE], temporary[CKT_CTL_PATH_SIZE + 32];
	int fd;
};
int ckt_ctl_partial_make(const char *path, struct ckt_ctl_partial *ret_partial);
int ckt_ctl_partial_keep(struct ckt_ctl_partial *partial);
void ckt_ctl_partial_drop(struct ckt_ctl_partial *partial);

/* The file `base` of an incremental image names the directory that it builds on.  0 or -errno. */
int ckt_ctl_base_write(int dir_fd, const char *from, const char *base);
bool ckt_ctl_base_read(const char *path, char ret_base[CKT_CTL_PATH_SIZE]);
