/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The root, a thread of the process that made the unique ID, where the ranks of a communicator meet:
 *
 *	rank -> root   hello: the ID's secret, the rank, the count of ranks, the device
 *	root -> rank   a socket for each peer and plane when all ranks are there, or the error
 *
 * The ID holds a name and a secret.  Inside of a worker the root is found by the name through the worker's
 * group channel (meeting.h); elsewhere the name is that of an abstract socket, and only processes of one
 * user can meet.
 */
#pragma once

#include <nccl.h>

#include "softgpu/libs/nccl/mesh.h"

/* Makes an ID. The first one in a process starts the thread. */
ncclResult_t ckt_soft_nccl_root_make(ncclUniqueId *ret_id);

/* Whether ckt_soft_nccl_root_make made the ID. */
bool ckt_soft_nccl_root_is_id(const ncclUniqueId *id);

/*
 * Waits until all ranks of the mesh have come, or its control plane is stopped.  On success, the
 * mesh has its sockets.  On failure, *ret_why is a constant text.
 */
ncclResult_t ckt_soft_nccl_root_join(
	const ncclUniqueId *id, struct ckt_mesh *mesh, int device, const char **ret_why);
