/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bounds of every room's tables.  rpc/session.x defines them too, for the bounds of its lists: the
 * compiler warns about a file that includes both unless they are equal.
 */
#pragma once

/* Devices of one process.  Masks of peers are 64 bits wide; CUDA allows fewer devices. */
#define CKT_DEVICES_MAX 64
/* Servers of one process: each has a part of the window, room for the memory of four large GPUs. */
#define CKT_SERVERS_MAX 8
