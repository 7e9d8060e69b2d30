/* SPDX-License-Identifier: Apache-2.0 */
/* --uid-range: the user ids that workers get, one for each owner.  Threading: no shared state. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Both ends are in it; first 0: no range. */
struct ckt_uid_range {
	uid_t first, last;
};

/* FIRST-LAST.  0, or -EINVAL: no two numbers, reversed, or not within the bounds of uid_range.c. */
int ckt_uid_range_parse(const char *text, struct ckt_uid_range *ret_range);
bool ckt_uid_range_has(const struct ckt_uid_range *range, uid_t uid);
/*
 * Whether these ids are anybody's: the server's own, `nobody', or those of a user or a group of
 * the files passwd and group (NULL: /etc/passwd, /etc/group).  0, or -EINVAL and a sentence.
 */
int ckt_uid_range_check(const struct ckt_uid_range *range, uid_t server_uid, const char *passwd,
	const char *group, char *ret_message, size_t message_size);
