/* SPDX-License-Identifier: Apache-2.0 */
/* The session's GPUs as the only ones; see session_devices.h. */
#include "server/worker/objects/session_devices.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"

static bool is_all(const unsigned *gpus, unsigned count, unsigned total)
{
	for (unsigned i = 0; i < count; i++)
		if (gpus[i] != i)
			return false;
	return count == total;
}

/* The entry of a list; false where it has no such one. */
static bool find_entry(
	const char *list, unsigned number, const char **ret_entry, size_t *ret_length)
{
	while (number--) {
		list = strchr(list, ',');
		if (!list)
			return false;
		list++;
	}
	*ret_entry = list;
	*ret_length = strcspn(list, ",");
	return true;
}

bool ckt_worker_devices_narrow(const unsigned *gpus, unsigned count, unsigned total)
{
	enum { TEXT_MAX = 4096, NUMBER_MAX = 16 };
	const char *before = getenv("CUDA_VISIBLE_DEVICES");
	char text[TEXT_MAX];
	size_t used = 0;
	if (!count || !total || is_all(gpus, count, total))
		return false;
	for (unsigned i = 0; i < count; i++) {
		char number[NUMBER_MAX];
		const char *entry = number;
		size_t length = (size_t)snprintf(number, sizeof number, "%u", gpus[i]);
		bool found = !before || find_entry(before, gpus[i], &entry, &length);
		if (gpus[i] >= total || !found || used + length + 2 > sizeof text) {
			/* The driver then says which one is missing. */
			ckt_warning("GPU %u is outside the server's %u: the session's "
				    "libraries will see all GPUs of the server",
				gpus[i], total);
			return false;
		}
		used += (size_t)snprintf(text + used, sizeof text - used, "%s%.*s", used ? "," : "",
			(int)length, entry);
	}
	return setenv("CUDA_VISIBLE_DEVICES", text, 1) == 0;
}
