/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sockets between the ranks of a communicator; each two ranks have a pair for each plane:
 *
 *	data	the data of collectives; functions on the ranks' streams send it
 *	control	messages of splits and shrinks; the calls send them, also while work runs
 *
 * Any thread may stop a plane; waits in it then return -ECANCELED.  Functions return 0 or -errno:
 * -EPIPE if a peer is gone, -EPROTO if it sent something unexpected.  Only one thread at a time may
 * use a plane.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

enum ckt_plane {
	CKT_PLANE_DATA,
	CKT_PLANE_CONTROL,
	CKT_PLANES,
};

struct ckt_mesh {
	int rank, size;
	struct {
		int *sockets; /* by peer; -1 for none */
		int wake;     /* an eventfd, readable after a stop */
		atomic_bool stopped;
	} planes[CKT_PLANES];
};

/*
 * A piece to or from a peer.  The pieces to one peer stay in order, and so do those from one peer.
 */
struct ckt_transfer {
	int peer;
	bool send;
	void *data;
	size_t bytes;
	const void *expected; /* the bytes that a received piece must have; NULL: any */
	/* Used by ckt_soft_nccl_mesh_exchange. */
	size_t done;
	struct ckt_transfer *next;
};

/* Makes an empty mesh, which can be stopped. */
int ckt_soft_nccl_mesh_init(struct ckt_mesh *mesh);
/* Sets this rank and the size, once, before the mesh has sockets. */
int ckt_soft_nccl_mesh_set_size(struct ckt_mesh *mesh, int rank, int size);
/* Closes everything.  A second call does nothing. */
void ckt_soft_nccl_mesh_fini(struct ckt_mesh *mesh);

void ckt_soft_nccl_mesh_stop(struct ckt_mesh *mesh, enum ckt_plane plane);
bool ckt_soft_nccl_mesh_stopped(struct ckt_mesh *mesh, enum ckt_plane plane);
/* Shuts the plane's sockets, so that all peers see this rank as gone. */
void ckt_soft_nccl_mesh_shut(struct ckt_mesh *mesh, enum ckt_plane plane);

/* Moves all pieces in parallel. */
int ckt_soft_nccl_mesh_exchange(
	struct ckt_mesh *mesh, enum ckt_plane plane, struct ckt_transfer *transfers, size_t count);

/*
 * Makes the sockets of a new mesh through the parent's control plane.  members[i] is the parent's
 * rank of the new rank i; all of them call this with the same list.  `mesh` is initialized, with
 * its rank and size.
 */
int ckt_soft_nccl_mesh_derive(struct ckt_mesh *parent, const int *members, struct ckt_mesh *mesh);

/* Waits until the descriptor is readable or the plane is stopped. */
int ckt_soft_nccl_mesh_wait_readable(struct ckt_mesh *mesh, enum ckt_plane plane, int fd);
/*
 * One message of `bytes` with at most one descriptor.  The caller keeps the descriptor, which may
 * be -1.  The receiver owns its copy.
 */
int ckt_soft_nccl_mesh_send_descriptor(int socket, const void *data, size_t bytes, int fd);
int ckt_soft_nccl_mesh_receive_descriptor(int socket, void *data, size_t bytes, int *ret_fd);
