/*
 * The sockets between the ranks of a communicator, a pair for each two ranks:
 *
 *	data	what collectives carry, by functions on the ranks' streams
 *	control	what splits and shrinks agree on, by the calls themselves, which work may be under way beside
 *
 * A plane is stopped from any thread; who waits in it then returns -ECANCELED.  Functions return 0
 * or -errno: -EPIPE where a peer is gone and -EPROTO where it sent something else than what was
 * expected.  A plane is used by one thread at a time.
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
		int *sockets; /* by peer; -1 where there is none */
		int wake;     /* an eventfd, readable once it is stopped */
		atomic_bool stopped;
	} planes[CKT_PLANES];
};

/*
 * One piece for or from a peer.  Pieces for one peer go in their order, and so do those from one.
 */
struct ckt_transfer {
	int peer;
	bool send;
	void *data;
	size_t bytes;
	const void *expected; /* what a received piece must be; NULL: anything */
	/* Of ckt_mesh_exchange: */
	size_t done;
	struct ckt_transfer *next;
};

/* A mesh of nobody, which can be stopped. */
int ckt_mesh_init(struct ckt_mesh *mesh);
/* Says who this is; once.  The sockets come afterwards. */
int ckt_mesh_set_size(struct ckt_mesh *mesh, int rank, int size);
/* Closes everything.  Once more does no harm. */
void ckt_mesh_fini(struct ckt_mesh *mesh);

void ckt_mesh_stop(struct ckt_mesh *mesh, enum ckt_plane plane);
bool ckt_mesh_stopped(struct ckt_mesh *mesh, enum ckt_plane plane);
/* Ends the plane for all peers, who see this rank as gone. */
void ckt_mesh_shut(struct ckt_mesh *mesh, enum ckt_plane plane);

/* Moves all pieces, which progress beside each other. */
int ckt_mesh_exchange(
	struct ckt_mesh *mesh, enum ckt_plane plane, struct ckt_transfer *transfers, size_t count);

/*
 * Sockets of a new mesh by way of the parent's control plane.  members[i] is the parent's rank of
 * the new rank i; all of them call this with the same.  `mesh` is initialized, and its rank and
 * size say who is who.
 */
int ckt_mesh_derive(struct ckt_mesh *parent, const int *members, struct ckt_mesh *mesh);

/* Waits until the descriptor is readable, unless the plane is stopped. */
int ckt_mesh_wait_readable(struct ckt_mesh *mesh, enum ckt_plane plane, int fd);
/*
 * One message of `bytes` with at most one descriptor, which stays the caller's and may be -1.  The
 * receiver's is its own.
 */
int ckt_mesh_send_descriptor(int socket, const void *data, size_t bytes, int fd);
int ckt_mesh_receive_descriptor(int socket, void *data, size_t bytes, int *ret_fd);
