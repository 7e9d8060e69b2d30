/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where ranks of the soft GPU's NCCL meet: through this worker's group channel (session/group.h), and
 * with --worker-network on at abstract sockets as well (rpc/nccl_meeting.h).
 *
 * A visitor gets the byte CKT_NCCL_LET_IN once the library has the connection's other end.  It knows the
 * unique id, or it could not name the root; what it says is the library's to check.
 *
 * Threading: any.
 */
#pragma once

enum { CKT_NCCL_LET_IN = 'y' };

/*
 * Tells the opened library, whose function this is, how to meet; NVIDIA's has its own ways and is left
 * alone.  Without a group channel nothing happens.
 */
void ckt_worker_nccl_meet_in_group(void *function_of_library);
