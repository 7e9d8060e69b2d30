/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sockets between the ranks of a communicator, a pair for each two ranks:
 *
 *	data	the data of collectives, moved by functions on the ranks' streams
 *	control	messages of splits and shrinks, sent by the calls themselves, while work may be running
 *
 * Any thread may stop a plane; waits in it then return -ECANCELED.  Functions return 0 or -errno:
 * -EPIPE if a peer is gone, -EPROTO if it sent something unexpected.  A plane is used by one thread
 * at a time.
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
		int wake;     /* an eventfd, readable once it is stopped */
		atomic_bool stopped;
	} planes[CKT_PLANES];
};

/* One piece for or from a peer.  Pieces for one peer keep their order, and so do those from one. */
struct ckt_transfer {
	int peer;
	bool send;
	void *data;
	size_t bytes;
	const void *expected; /* what a received piece must be; NULL: anything */
	/* Of ckt_soft_nccl_mesh_exchange: */
	size_t done;
	struct ckt_transfer *next;
};

/* An empty mesh, which can be stopped. */
int ckt_soft_nccl_mesh_init(struct ckt_mesh *mesh);
/* Sets this rank and the size, once.  The sockets come later. */
int ckt_soft_nccl_mesh_set_size(struct ckt_mesh *mesh, int rank, int size);
/* Closes everything.  A second call does nothing. */
void ckt_soft_nccl_mesh_fini(struct ckt_mesh *mesh);

void ckt_soft_nccl_mesh_stop(struct ckt_mesh *mesh, enum ckt_plane plane);
bool ckt_soft_nccl_mesh_stopped(struct ckt_mesh *mesh, enum ckt_plane plane);
/* Ends the plane for all peers, who see this rank as gone. */
void ckt_soft_nccl_mesh_shut(struct ckt_mesh *mesh, enum ckt_plane plane);

/* Moves all pieces, which progress in parallel. */
int ckt_soft_nccl_mesh_exchange(
	struct ckt_mesh *mesh, enum ckt_plane plane, struct ckt_transfer *transfers, size_t count);

/*
 * Makes the sockets of a new mesh through the parent's control plane.  members[i] is the parent's
 * rank of the new rank i; all of them call this with the same list.  `mesh` is initialized, with
 * its rank and size.
 */
int ckt_soft_nccl_mesh_derive(struct ckt_mesh *parent, const int *members, struct ckt_mesh *mesh);

/* Waits until the descriptor is readable, or the plane is stopped. */
int ckt_soft_nccl_mesh_wait_readable(struct ckt_mesh *mesh, enum ckt_plane plane, int fd);
/*
 * One message of `bytes` with at most one descriptor, which stays the caller's and may be -1.  The
 * receiver owns its copy.
 */
int ckt_soft_nccl_mesh_send_descriptor(int socket, const void *data, size_t bytes, int fd);
int ckt_soft_nccl_mesh_receive_descriptor(int socket, void *data, size_t bytes, int *ret_fd);
