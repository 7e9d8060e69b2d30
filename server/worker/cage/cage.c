/* SPDX-License-Identifier: Apache-2.0 */
/* The cage of a worker; see cage.h. */
#include "server/worker/cage/cage.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "server/worker/cage/cage_paths.h"
#include "server/worker/cage/landlock.h"
#include "server/worker/cage/syscall_filter.h"

/* Splits PROFILE:PATH. */
static bool read_cage(const char *text, bool *ret_soft, const char **ret_driver)
{
	const char *colon = strchr(text, ':');
	size_t length = colon ? (size_t)(colon - text) : 0;
	*ret_soft = length == 4 && memcmp(text, "soft", 4) == 0;
	if (!*ret_soft && !(length == 6 && memcmp(text, "nvidia", 6) == 0))
		return false;
	*ret_driver = colon + 1;
	return true;
}

/*
 * TCP stays open to NVIDIA's driver: NCCL's ranks meet over TCP, on one host as well.  The soft
 * GPU's NCCL needs none.
 */
static int enter_files(const char *driver, bool soft)
{
	struct ckt_landlock landlock;
	int result = ckt_landlock_begin(&landlock, !soft);
	if (result)
		return result;
	ckt_debug("cage: Landlock version %d", landlock.abi);
	result = ckt_cage_paths_allow(&landlock, driver, soft);
	if (!result)
		return ckt_landlock_enter(&landlock);
	ckt_landlock_drop(&landlock);
	return result;
}

bool ckt_cage_is_off(void)
{
	const char *text = getenv("CRICKET_CAGE");
	return text && strcmp(text, "off") == 0;
}

int ckt_cage_enter(char *ret_message, size_t message_size)
{
	const char *text = getenv("CRICKET_CAGE"), *driver;
	bool soft;
	if (!text || ckt_cage_is_off() || strcmp(text, "none") == 0)
		return 0;
	if (!read_cage(text, &soft, &driver)) {
		snprintf(ret_message, message_size, "CRICKET_CAGE: '%s' is no cage", text);
		return -EINVAL;
	}
	const char *step = "Landlock";
	int result = enter_files(driver, soft);
	/* Last, because it does not allow the others. */
	if (!result) {
		step = "seccomp";
		result = ckt_syscall_filter_enter(soft);
	}
	if (result == -EOPNOTSUPP) {
		ckt_debug("cage: no filter of system calls");
		result = 0;
	}
	if (result)
		snprintf(ret_message, message_size,
			"cannot enter the cage: %s: %s; start the server with --cage off to do without",
			step, strerror(-result));
	return result;
}
