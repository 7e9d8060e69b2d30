/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the ranks of a communicator meet: a thread of the process that made the unique id.
 *
 *	rank -> root   hello: the id's secret, the rank, of how many, on which device
 *	root -> rank   a socket for each peer and plane, once all are there; or the error
 *
 * The ID names an abstract socket and holds a secret that no list of sockets shows.  Only processes
 * of one user can meet.
 */
#pragma once

#include <nccl.h>

#include "softgpu/libs/nccl/mesh.h"

/* A new ID; starts the thread for the process's first one. */
ncclResult_t ckt_soft_nccl_root_make(ncclUniqueId *ret_id);

/* Whether it is an ID of ours. */
bool ckt_soft_nccl_root_is_id(const ncclUniqueId *id);

/*
 * Waits for all ranks of the mesh, unless its control plane is stopped; then the mesh has its
 * sockets. `ret_why`: a constant text on failure.
 */
ncclResult_t ckt_soft_nccl_root_join(
	const ncclUniqueId *id, struct ckt_mesh *mesh, int device, const char **ret_why);
