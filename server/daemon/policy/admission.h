/*
 * Who may take how much of the server, decided in one place.
 *
 *	before the hello	by network address (IPv6: by /64), or by the user of a UNIX socket
 *	afterwards		by identity: the user, the token, or nobody at that address
 *
 * One identity cannot take what others need: when something is full, the identity that has most of
 * it gives way.  Root and the server's own user can end every session anyway; only what there is in
 * all limits them.
 *
 * Functions that refuse return false, with a sentence in buffer that names what is full and the
 * option that says how much there is.
 *
 * Threading: the loop's thread, except for ckt_space_*, which any thread may call.
 */
#pragma once

#include "rpc/identity.h"
#include "rpc/session.h"

struct ckt_peer;
struct ckt_server;
struct ckt_session;

struct ckt_identity {
	enum {
		CKT_IDENTITY_NONE,
		CKT_IDENTITY_ADDRESS,
		CKT_IDENTITY_USER,
		CKT_IDENTITY_TOKEN
	} kind;
	uint32_t uid; /* CKT_IDENTITY_USER */
	/* CKT_IDENTITY_ADDRESS: IPv4 as ::ffff:a.b.c.d, IPv6 with its last 64 bits zero */
	uint8_t network[16];
};

/* Before its hello the peer is whom the kernel names. */
struct ckt_identity ckt_identity_of(const struct ckt_auth_peer *who, bool token);
struct ckt_identity ckt_identity_of_peer(const struct ckt_peer *peer);
bool ckt_identity_same(const struct ckt_identity *a, const struct ckt_identity *b);

/* ---- Connections */

/*
 * A connection was accepted as this descriptor.  True: it may say hello; somebody else's may have
 * been dropped for it.  Every true is followed by one ckt_admit_greeted, once the peer said hello
 * or went.
 */
bool ckt_admit_connection(struct ckt_server *server, const struct ckt_identity *source, int fd);
void ckt_admit_greeted(struct ckt_server *server, const struct ckt_identity *source);
/*
 * There was no descriptor for one: gives some back, from who has most connections that have said
 * nothing.
 */
void ckt_admit_no_descriptor(struct ckt_server *server);
/*
 * How long the answer to a wrong token or secret is to wait: more with each from that address, 0
 * for the first few.
 */
unsigned ckt_admit_failed(struct ckt_server *server, const struct ckt_identity *source);

/* ---- What a hello and a call ask for */

/* Any hello: how many of an identity wait for a worker. */
bool ckt_admit_hello(struct ckt_peer *peer, char buffer[CKT_MESSAGE_MAX]);
bool ckt_admit_control(struct ckt_peer *peer, char buffer[CKT_MESSAGE_MAX]);
bool ckt_admit_session(struct ckt_server *server, const struct ckt_identity *identity,
	char buffer[CKT_MESSAGE_MAX]);
bool ckt_admit_stage(struct ckt_peer *peer, char buffer[CKT_MESSAGE_MAX]);
bool ckt_admit_events(struct ckt_peer *peer, char buffer[CKT_MESSAGE_MAX]);
/* A descriptor that the peer passed and that stays open. */
bool ckt_admit_descriptor(struct ckt_peer *peer, char buffer[CKT_MESSAGE_MAX]);

/* Frees what is remembered. */
void ckt_admission_fini(struct ckt_server *server);

/* ---- Bytes in --image-dir, those of one identity together */
struct ckt_space;
/* A reference; NULL without memory. */
struct ckt_space *ckt_space_get(
	const struct ckt_server *server, const struct ckt_identity *identity);
struct ckt_space *ckt_space_ref(struct ckt_space *space);
void ckt_space_put(struct ckt_space *space);
/*
 * 0; -EDQUOT where it has no right to so many more, -ENOSPC where the file system of dir_fd keeps
 * its last bytes for others.
 */
int ckt_space_take(struct ckt_space *space, int dir_fd, uint64_t bytes);
/* Without asking: what is there already. */
void ckt_space_note(struct ckt_space *space, uint64_t bytes);
void ckt_space_release(struct ckt_space *space, uint64_t bytes);
uint64_t ckt_space_taken(const struct ckt_space *space);
