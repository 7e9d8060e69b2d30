/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The handle of an interprocess event of the soft GPU: where the descriptor of the event's page is.
 *
 *	offset  0 magic | 8 process | 12 descriptor | 16 two random numbers, which are in the page, too
 *
 * Only who may look at that process's descriptors can open it (/proc/PROCESS/fd).  Workers may not:
 * they pass the descriptor on (server/worker/ipc), and process 0 stands for the opening process.
 */
#pragma once

#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

struct ckt_event_handle {
	char magic[8];
	int32_t process; /* 0: whoever opens it */
	int32_t descriptor;
	uint64_t id[2];
};
_Static_assert(sizeof(struct ckt_event_handle) <= sizeof(CUipcEventHandle), "it fits");

#define CKT_EVENT_HANDLE_MAGIC "SOFTEVT2"

/* False: it is another driver's. */
static inline bool ckt_event_handle_read(
	const CUipcEventHandle *from, struct ckt_event_handle *ret_handle)
{
	struct ckt_event_handle handle;
	memcpy(&handle, from, sizeof handle);
	if (memcmp(handle.magic, CKT_EVENT_HANDLE_MAGIC, sizeof handle.magic) != 0)
		return false;
	*ret_handle = handle;
	return true;
}

/* Fills in the magic. */
static inline void ckt_event_handle_write(
	const struct ckt_event_handle *handle, CUipcEventHandle *ret_handle)
{
	struct ckt_event_handle copy = *handle;
	memcpy(copy.magic, CKT_EVENT_HANDLE_MAGIC, sizeof copy.magic);
	memset(ret_handle, 0, sizeof *ret_handle);
	memcpy(ret_handle, &copy, sizeof copy);
}
