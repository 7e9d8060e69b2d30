/* SPDX-License-Identifier: Apache-2.0 */
/* --uid-range; see uid_range.h. */
#include "server/daemon/session/uid_range.h"

#include <ctype.h>
#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>

#define LEAST 1000u      /* below are the system's users */
#define MOST 4294967293u /* above are the kernel's "no id", and its neighbour in 32 bits */
#define NOBODY 65534u    /* the kernel shows it for every id that it cannot show */
#define NO_ID_16 65535u  /* "no id" of old system calls */

static bool parse_number(const char **text, uid_t *ret_uid)
{
	char *end;
	if (!isdigit((unsigned char)**text))
		return false;
	errno = 0;
	unsigned long long number = strtoull(*text, &end, 10);
	if (errno || number < LEAST || number > MOST)
		return false;
	*ret_uid = (uid_t)number;
	*text = end;
	return true;
}

int ckt_uid_range_parse(const char *text, struct ckt_uid_range *ret_range)
{
	struct ckt_uid_range range;
	if (!parse_number(&text, &range.first) || *text++ != '-' ||
		!parse_number(&text, &range.last) || *text || range.first > range.last)
		return -EINVAL;
	*ret_range = range;
	return 0;
}

bool ckt_uid_range_has(const struct ckt_uid_range *range, uid_t uid)
{
	return range->first && uid >= range->first && uid <= range->last;
}

static int say(const struct ckt_uid_range *range, const char *what, const char *name, uid_t id,
	char *ret_message, size_t message_size)
{
	snprintf(ret_message, message_size,
		"--uid-range: '%u-%u' holds %u, which is %s%s%s: give ids that belong to nobody, "
		"such as subordinate ids of /etc/subuid",
		range->first, range->last, id, what, name ? " " : "", name ? name : "");
	return -EINVAL;
}

static int check_users(
	const struct ckt_uid_range *range, const char *path, char *ret_message, size_t message_size)
{
	FILE *file = fopen(path, "re");
	int result = 0;
	for (const struct passwd *entry; file && !result && (entry = fgetpwent(file));)
		if (ckt_uid_range_has(range, entry->pw_uid))
			result = say(range, "user", entry->pw_name, entry->pw_uid, ret_message,
				message_size);
	if (file)
		fclose(file);
	return result;
}

static int check_groups(
	const struct ckt_uid_range *range, const char *path, char *ret_message, size_t message_size)
{
	FILE *file = fopen(path, "re");
	int result = 0;
	for (const struct group *entry; file && !result && (entry = fgetgrent(file));)
		if (ckt_uid_range_has(range, entry->gr_gid))
			result = say(range, "group", entry->gr_name, entry->gr_gid, ret_message,
				message_size);
	if (file)
		fclose(file);
	return result;
}

int ckt_uid_range_check(const struct ckt_uid_range *range, uid_t server_uid, const char *passwd,
	const char *group, char *ret_message, size_t message_size)
{
	if (ckt_uid_range_has(range, server_uid))
		return say(range, "the server's own user", NULL, server_uid, ret_message,
			message_size);
	if (ckt_uid_range_has(range, NOBODY))
		return say(range, "the user nobody", NULL, NOBODY, ret_message, message_size);
	if (ckt_uid_range_has(range, NO_ID_16))
		return say(range, "no id for some system calls", NULL, NO_ID_16, ret_message,
			message_size);
	int result = check_users(range, passwd ? passwd : "/etc/passwd", ret_message, message_size);
	return result
		? result
		: check_groups(range, group ? group : "/etc/group", ret_message, message_size);
}
