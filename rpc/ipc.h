/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program passes this handle to another to share memory or an event: 64 bytes, a CUipcMemHandle
 * or CUipcEventHandle, or the contents of the file that represents an exported allocation.  It is
 * valid between sessions of one owner at one server, as long as the owner's session has the object.
 *
 *	offset  0 magic | 8 session (12) | 20 kind | 24 unused (8) | 32 secret (16) | 48 zeros
 *
 * The server finds the session's worker (rpc/group.h).  unused: zeros; ignored, because earlier
 * builds named a socket there.  secret: one for each thing shared; a hash of the session's key,
 * which nobody else knows, and of the call that shared it, so that a replay gives the same.
 */
#pragma once

#include <stdint.h>

enum { CKT_IPC_HANDLE = 64, CKT_IPC_SECRET = 16, CKT_IPC_SESSION = 12 };
#define CKT_IPC_MAGIC "CKTIPC02"

enum ckt_ipc_kind { CKT_IPC_BLOCK = 1, CKT_IPC_PHYSICAL = 2, CKT_IPC_EVENT = 3 };

struct ckt_ipc_handle {
	char magic[8];
	char session[CKT_IPC_SESSION];
	uint32_t kind;
	uint8_t unused[8];
	uint8_t secret[CKT_IPC_SECRET];
	uint8_t zeros[16];
};
_Static_assert(sizeof(struct ckt_ipc_handle) == CKT_IPC_HANDLE, "CUDA's size");
