/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A connection from a client or from cricketctl, from accept until it is passed to a worker or
 * ends.
 *
 *	GREETED --AUTH_TLS----------------> SECURING --facts of the channel--> GREETED again
 *	        --hello NEW, RESUME, DATA--> WAITING for the worker --> socket handed over, peer freed
 *	        --hello CONTROL------------> CONTROL: one call at a time, answered by control.c
 *	        --refused------------------> the answer is written, then closed
 */
#pragma once

#include "server/daemon/image/image_mac.h"
#include "server/daemon/policy/identity.h"
#include "rpc/control.h"
#include "rpc/session.h"
#include "server/daemon/server.h"

struct ckt_broker;
struct ckt_control_facts;
struct ckt_trace_page;

/* A control call that is not answered yet, for the audit log. */
struct ckt_peer_audited {
	bool open;
	bool tried; /* an error is a failure now, and no refusal */
	bool hello_refused;
	char session[CKT_SESSION_ID_SIZE + 1], object[CKT_CONTROL_NAME_MAX + 1];
};

/* The trace that a peer began last, see trace.c. */
struct ckt_peer_trace {
	uint64_t number, session; /* as its worker counts them; the session's serial; 0: none */
	const struct ckt_trace_page *page;
	bool begins, reads; /* what the current call does to it */
	bool stops;
};

struct ckt_peer {
	struct ckt_server *server;
	struct ckt_peer *next, *previous;
	struct ckt_record_stream stream;
	struct ckt_timer timer; /* until the hello is complete */
	enum { CKT_PEER_GREETED, CKT_PEER_SECURING, CKT_PEER_WAITING, CKT_PEER_CONTROL } phase;
	unsigned holds; /* callbacks that will come with this peer as context */
	bool gone;      /* freed when holds reaches 0 */
	uint8_t nonce[CKT_NONCE_SIZE];
	bool secured; /* what comes has been through TLS, see peer_tls.h */
	struct ckt_auth_peer who;
	struct ckt_identity source;             /* its identity before its hello */
	char container[CKT_LIMIT_NAME_MAX + 1]; /* see client_container.h; empty: not known */
	int64_t since_ms;
	char denial[CKT_MESSAGE_MAX]; /* to be sent later */
	bool wants_slot;              /* waits for a session to end, --max-sessions */
	unsigned slot_waits;          /* how often the time for that was over */
	uint32_t token;               /* the owner number of the token that it proved; 0: none */
	struct ckt_certificate_holder
		*holder;     /* of its certificate, peer_certificate.h; NULL: none */
	bool holder_refused; /* its hello is answered with the denial */
	uint64_t shown;      /* serial of the session whose secret it showed; 0: none */
	uint32_t xid;        /* of the current call */
	uint32_t proc;
	struct ckt_broker *broker; /* of ours: opens files of stages for the current call */
	struct ckt_hello_args hello;
	int memory_fd; /* came with the hello: the client's pinned memory; -1 */
	int *images;   /* what IMAGE passed: file brokers */
	unsigned image_count;
	/* what IMAGE_MAC said of the next restore */
	struct ckt_image_bond bond;
	bool holds_job;                    /* see job.h */
	char job_key[CKT_CONTROL_JOB_KEY]; /* of what it holds */
	bool shows_job_key;
	char job_key_shown[CKT_CONTROL_JOB_KEY];
	bool wants_events; /* waits for one beyond events_after */
	bool wants_owners; /* of them, too */
	bool wants_facts;  /* and decisions, with all that a policy is told */
	uint64_t facts_calls;
	bool follows; /* an administrator who has asked for facts: may be a scheduler */
	uint64_t events_after;
	struct ckt_peer_trace trace;
	struct ckt_peer_audited audited; /* the current call, see peer_audit.h */
};

void ckt_peer_accept(struct ckt_server *server, int fd);
/* The same, of somebody who is known. */
void ckt_peer_accept_as(struct ckt_server *server, int fd, const struct ckt_auth_peer *who);
void ckt_peer_close(struct ckt_peer *peer);
void ckt_peer_hold(struct ckt_peer *peer);
/* False if the peer has gone meanwhile and is freed now. */
bool ckt_peer_release(struct ckt_peer *peer);
/* Sends the result of the current call; a control peer is then read again. */
void ckt_peer_reply(struct ckt_peer *peer, xdrproc_t xdr_result, void *result);
/*
 * Who owns what the peer makes: the user of the UNIX socket, else its token, as long as that is
 * valid; CKT_UID_UNKNOWN: nobody, because only the peer's address is known.
 */
uint32_t ckt_peer_owner(const struct ckt_peer *peer);
enum ckt_role ckt_peer_role(const struct ckt_peer *peer);
/*
 * Whether the peer may see and control what this user owns.  Over TCP, a peer without a token owns
 * nothing.
 */
bool ckt_peer_may(const struct ckt_peer *peer, uint32_t owner_uid);
/* The same for a session; a peer may also control a session whose secret it showed. */
bool ckt_peer_may_session(const struct ckt_peer *peer, const struct ckt_session *session);
/* The facts about the peer for a question about what that owner has. */
struct ckt_control_facts ckt_peer_control_facts(const struct ckt_peer *peer, uint32_t owner_uid);
/* Only the address of the peer is known: TCP without a token. */
bool ckt_peer_is_anonymous(const struct ckt_peer *peer);

/* A session has ended: serves peers that wait for that. */
void ckt_peer_session_gone(struct ckt_server *server);

/* control.c: takes data and passed_fd over. */
void ckt_control_call(struct ckt_peer *peer, uint8_t *data, size_t size, int passed_fd);
