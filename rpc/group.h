/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How the workers of one group find each other: through the server, which alone knows who belongs
 * to a group.  A group is the sessions of one owner at one server.
 *
 * Each worker has a group channel, a socket pair of sequenced packets with the server
 * (CKT_WORKER_GROUP).  Every packet is one struct ckt_group_message:
 *
 *	worker -> server	CKT_GROUP_CLAIM	others of the group find this worker under that name, too
 *				CKT_GROUP_DROP	that claim ends
 *				CKT_GROUP_ASK	with one end of a socket pair that the worker made: for
 *						member number `nth` of its group that has the name
 *	server -> worker	CKT_GROUP_OFFER	with that end, for the member: a question comes over it
 *				CKT_GROUP_GONE	the worker of that name has ended, and one of the two had asked
 *						the other by its session's name: to workers that do not know
 *						CKT_WORKER_OWNER_GONE, which has an answer
 *
 * A session's id is a name of its worker without a claim, and comes before claimed ones.  If no
 * member has the name, or only sessions outside of the group have it, the server writes the byte
 * CKT_GROUP_NOBODY to the end and closes it: whoever asks cannot tell these two from each other.
 *
 * A worker whose GPU is short of memory asks with ckt_group_memory() for the warm workers of that GPU (nth: the server's
 * number of it) to end.  The server writes CKT_GROUP_FREED once they are dead, and CKT_GROUP_NOBODY if there
 * are none, as a server does that knows no warm workers.
 *
 * The kernel's descriptors are the only right that passes here; what is asked over them has secrets
 * of its own (rpc/ipc.h).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum ckt_group_kind {
	CKT_GROUP_CLAIM = 1,
	CKT_GROUP_DROP = 2,
	CKT_GROUP_ASK = 3,
	CKT_GROUP_OFFER = 4,
	CKT_GROUP_GONE = 5, /* earlier workers ignore it */
};

enum { CKT_GROUP_NAME = 32, CKT_GROUP_NOBODY = 'n', CKT_GROUP_FREED = 'f' };
/* Claims of one worker at a time: a session restored once has one, each of its communicators two. */
enum { CKT_GROUP_CLAIMS_MAX = 512 };

struct ckt_group_name {
	uint8_t bytes[CKT_GROUP_NAME];
};

struct ckt_group_message {
	uint32_t kind;
	uint32_t nth; /* of ASK, from 0 */
	struct ckt_group_name name;
};
_Static_assert(sizeof(struct ckt_group_message) == 40, "no padding");

#define CKT_GROUP_SESSION "session "
enum { CKT_GROUP_SESSION_PREFIX = sizeof CKT_GROUP_SESSION - 1 };

/* The name of a session's worker; the id need not end with a zero. */
static inline struct ckt_group_name ckt_group_session(const char *id, size_t length)
{
	struct ckt_group_name name = {{0}};
	snprintf((char *)name.bytes, sizeof name.bytes, CKT_GROUP_SESSION "%.*s", (int)length, id);
	return name;
}

static inline bool ckt_group_is_session(const struct ckt_group_name *name)
{
	return memcmp(name->bytes, CKT_GROUP_SESSION, CKT_GROUP_SESSION_PREFIX) == 0;
}

/*
 * The name of a rank of a communicator (server/worker/libs/nccl/nccl_together.c).  Its first bytes are the
 * communicator's, of which nobody knows the identity that is not told it, and the rest is the rank's number.
 */
#define CKT_GROUP_RANK "nccl rank "
enum { CKT_GROUP_RANK_PREFIX = sizeof CKT_GROUP_RANK - 1, CKT_GROUP_COMMUNICATOR = 28 };

static inline bool ckt_group_is_rank(const struct ckt_group_name *name)
{
	return memcmp(name->bytes, CKT_GROUP_RANK, CKT_GROUP_RANK_PREFIX) == 0;
}

/* Of two such names. */
static inline bool ckt_group_same_communicator(
	const struct ckt_group_name *a, const struct ckt_group_name *b)
{
	return memcmp(a->bytes, b->bytes, CKT_GROUP_COMMUNICATOR) == 0;
}

/* No member is found under it, whatever members claim. */
static inline struct ckt_group_name ckt_group_memory(void)
{
	return (struct ckt_group_name){"memory of a GPU"};
}

static inline bool ckt_group_same_name(
	const struct ckt_group_name *a, const struct ckt_group_name *b)
{
	return memcmp(a->bytes, b->bytes, sizeof a->bytes) == 0;
}
