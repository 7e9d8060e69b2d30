/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The connection of this process to its session at a server: one for each address (nodes.c), made
 * by cuInit, used by every thread.
 *
 *	encode --> ring --(send: any waiting thread, or the flusher)--> socket --> worker
 *	           |<---- kept until executed ----|
 *	waiters <--(read: one waiting thread at a time reads for all)-- socket <-- worker
 *
 * The ring holds whole records between three positions that only grow: head (oldest record the
 * worker may not have executed), sent (next byte for the socket), tail (next byte to encode).  A
 * record never wraps: the gap at the end is skipped, marked by a zero word.  When the connection
 * breaks, the thread that noticed connects again and sends from head; see resume.c.
 *
 * Locks, in this order: state_lock (who resumes), send_lock (the socket's writing side, `sent`),
 * lock (ring, seq, waiters). read_lock comes after state_lock and before lock.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <sys/types.h>

#include "client/conn/call.h"
#include "rpc/session_key.h"
#include "rpc/net.h"
#include "rpc/session.h"
#include "rpc/transport/transport.h"

enum {
	CKT_RING_SIZE = 4 << 20, /* at least three records of the largest size fit */
	/*
	 * room that only session procedures may use, and half of it only the ends of host functions
	 */
	CKT_RING_CORNER = 64 << 10,
	/* bytes of commands after which the client asks for the worker's progress */
	CKT_ACK_EVERY = 1 << 20,
	CKT_WAITER_BUCKETS = 256,
	CKT_FAULTS_MAX = 32,
	CKT_RECEIVE_SIZE = 2 * (CKT_RECORD_MAX + CKT_MARK_SIZE),
};

enum ckt_conn_state {
	CKT_CONN_CLOSED = 0, /* before cuInit */
	CKT_CONN_OPEN,
	CKT_CONN_RESUMING, /* broken; one thread reconnects, the others wait */
	CKT_CONN_LOST,     /* for good: every call returns conn.error */
	CKT_CONN_FORKED,   /* a child of the process that connected */
};

/* Bits of conn.mode */
enum {
	CKT_CONN_SYNC = 1, /* CRICKET_SYNC=1 */
	/* one of several: the server's numbers of devices are its own */
	CKT_CONN_SEVERAL = 2,
};

/* A call that waits for its reply, on the caller's stack or (async) on the heap. */
struct ckt_waiter {
	struct ckt_waiter *hash_next;
	struct ckt_waiter *next, *prev; /* in order of encoding */
	uint32_t xid;
	uint64_t seq;
	uint64_t position; /* of the record in the ring */
	uint64_t context;
	bool session_proc; /* the reply has no CUresult */
	_Atomic bool done;
	CUresult result;
	ckt_call_done callback; /* NULL: a thread sleeps on this waiter */
	void *data;
	struct ckt_reply *reply; /* where a sleeping thread wants its results */
	/* a copy of the record, to ask again after a break */
	uint32_t message_size;
	uint8_t *message;
	uint8_t message_small[192];
};

/* Functions work on the connection that they are given; a thread's calls go over ckt_call_conn. */
struct ckt_conn {
	_Atomic int state;              /* enum ckt_conn_state */
	CUresult error;                 /* with CKT_CONN_LOST */
	struct ckt_transport transport; /* rpc/transport/transport.h says who may use it when */
	_Atomic int connecting_fd;      /* a descriptor that is still connecting; -1 for none */
	/* counts connections: an error of an earlier one is ignored */
	_Atomic uint64_t epoch;
	pid_t pid;
	unsigned number;     /* in ckt_conns */
	const char *visible; /* CUDA_VISIBLE_DEVICES for this server, or NULL */
	/* CKT_CONN_SYNC, CKT_CONN_SEVERAL: one word, because every call reads it */
	unsigned mode;

	/* Identity */
	char session[CKT_SESSION_ID_SIZE + 1];
	struct ckt_session_key key;      /* of the session; never leaves the process */
	uint8_t secret[CKT_SECRET_SIZE]; /* its fingerprint, or the secret for an older server */
	uint64_t generation;
	/*
	 * of the copy of the session that last executed a command of ours: CKT_CAPABILITY_COPY; 0:
	 * not known
	 */
	uint64_t copy;
	uint64_t offered_copy; /* the copy that answers */
	char address_text[CKT_ADDRESS_TEXT_MAX];
	char server[CKT_NAME_MAX + 1];
	_Atomic bool parked;  /* stopped on purpose: look for the session without a time limit */
	_Atomic bool quiesce; /* asked to be quiet: see quiesce.c */
	char moved_to[CKT_ADDRESS_MAX + 1]; /* the server told us before it closed the connection */

	pthread_mutex_t lock;
	uint8_t *ring;
	uint64_t head;
	/* the worker's last executed command: commands up to it have left the ring */
	uint64_t executed;
	_Atomic uint64_t sent, tail;
	/* where the latest skipped gap at a lap's end begins */
	_Atomic uint64_t gap_start;
	/* both written under lock; settings: see ckt_call_settings */
	_Atomic uint64_t next_seq, settings;
	uint32_t next_xid;
	uint64_t last_ack_position;
	_Atomic bool ack_pending;
	struct ckt_waiter *buckets[CKT_WAITER_BUCKETS];
	struct ckt_waiter pending; /* list head */
	/* first error of a batched call, not yet reported */
	_Atomic CUresult deferred;
	_Atomic uint32_t async_pending;
	_Atomic unsigned fault_count; /* entries of faults; 0 in a healthy program */
	struct ckt_fault {
		uint64_t context;
		CUresult error;
	} faults[CKT_FAULTS_MAX];

	pthread_mutex_t send_lock;

	/* Reading: one thread at a time */
	pthread_mutex_t read_lock;
	/* a waiter is done, or the reader's place is free */
	pthread_cond_t read_cond;
	bool reading;
	/* the watcher waits on fd, which must not be closed meanwhile */
	bool watching;
	unsigned sleepers;
	uint8_t *receive;
	size_t receive_start, receive_end;

	/* The flusher thread: sends commands for which no thread waits */
	pthread_t flusher;
	bool flusher_running;
	_Atomic uint32_t flusher_asleep; /* futex: 1 while it sleeps */

	pthread_mutex_t state_lock;
	pthread_cond_t state_cond; /* another epoch, or lost */
};

/* The first connection; there are more only if REMOTE_GPU_ADDRESS is a list. */
extern struct ckt_conn ckt_conn;
extern struct ckt_conn *ckt_conns[CKT_SERVERS_MAX];

/* Initializes a connection in zeroed memory. */
void ckt_conn_init(struct ckt_conn *conn);

/* ---- conn.c */
/*
 * Connects once; later calls return the first result.  CUDA_ERROR_NO_DEVICE with one line on stderr
 * if it fails.
 */
CUresult ckt_conn_open(void);
/* The servers' device lists, in the program's order; NULL before a successful open.  Immutable. */
const struct ckt_devices_res *ckt_conn_devices(void);
/*
 * Returns once finished(data) is true; checks it again with every reply that arrives over this
 * connection.
 */
void ckt_conn_wait_until(struct ckt_conn *conn, bool (*finished)(void *data), void *data);
/* The same for a thread of the library's own: it does not poll (spin.h). */
void ckt_conn_listen_until(struct ckt_conn *conn, bool (*finished)(void *data), void *data);
/* A session procedure without arguments, waited for. */
CUresult ckt_conn_session_call(struct ckt_conn *conn, uint32_t proc, struct ckt_reply *ret_reply);
/* The same with encoded arguments. */
CUresult ckt_conn_session_ask(struct ckt_conn *conn, uint32_t proc, xdrproc_t xdr_args, void *args,
	struct ckt_reply *ret_reply);
/* Opens a session at conn->address_text.  part of parts: of the window, see CKT_SESSION_WINDOW. */
CUresult ckt_conn_open_session(
	struct ckt_conn *conn, unsigned part, unsigned parts, struct ckt_devices_res *ret_devices);
/* Says farewell and leaves the connection lost. */
void ckt_conn_end(struct ckt_conn *conn);

/* ---- nodes.c: a list of servers */
/* Opens a session at each; devices in their order.  If one fails, nothing stays open. */
CUresult ckt_nodes_open(struct ckt_devices_res *ret_devices);

/* ---- connect.c */
/* Which copy of the session answered; 0: unknown. */
uint64_t ckt_conn_copy_of(const struct ckt_hello_ok *ok);
/*
 * Connects, exchanges greeting and hello.  kind: NEW or RESUME.  0, or -errno/-EACCES/... with a
 * sentence; -EAGAIN: worth another try.
 */
int ckt_connect(struct ckt_conn *conn, const char *address_text, enum ckt_hello_kind kind,
	int timeout_ms, int *ret_fd, struct ckt_hello_ok *ret_ok, char *ret_moved_to,
	size_t moved_size, char *ret_message, size_t message_size);

/* ---- send.c */
/* Writes the encoded commands; waits for the socket.  0, or -errno if the connection broke. */
int ckt_conn_send(struct ckt_conn *conn);
void ckt_conn_flusher_start(struct ckt_conn *conn);
void ckt_conn_flusher_kick(struct ckt_conn *conn);

/* ---- reply.c */
/*
 * Reads what has arrived, waiting at most timeout_ms, and delivers the replies.  Precondition: the
 * caller holds the reader's place.
 */
int ckt_conn_read(struct ckt_conn *conn, int timeout_ms);
void ckt_conn_trim(struct ckt_conn *conn, uint64_t executed);
/* The sticky error of the context, CUDA_SUCCESS if there is none.  Precondition: conn.lock held. */
CUresult ckt_conn_fault(const struct ckt_conn *conn, uint64_t context);
void ckt_waiter_finish_all(struct ckt_conn *conn, CUresult error);

/* Takes the reader's place from its holder and releases it again. */
void ckt_conn_take_reader(struct ckt_conn *conn);
void ckt_conn_leave_reader(struct ckt_conn *conn);
/* Reads what the worker sent before its end.  Precondition: the caller holds the reader's place. */
void ckt_conn_read_last_words(struct ckt_conn *conn);

/* ---- watch.c: a thread that sleeps until the worker ends the connection */
void ckt_conn_watch_start(struct ckt_conn *conn);
/*
 * Makes the thread leave the descriptor alone.  Precondition: the caller holds the reader's place,
 * and the state is RESUMING.
 */
void ckt_conn_watch_leave(struct ckt_conn *conn);

/* ---- quiesce.c */
/*
 * The server asked us to be quiet.  Precondition: the caller holds the reader's place, the state is
 * RESUMING, and nobody watches the descriptor.
 */
void ckt_conn_quiesce(struct ckt_conn *conn);

/* ---- resume.c */
/*
 * The address in the session's file; false if there is none for us: an address of a session that
 * was restored together with a saved process is only for that process, whose generation is higher.
 */
bool ckt_conn_file_address(const struct ckt_conn *conn, char *ret_address, size_t size);
/*
 * The connection of that epoch broke with this error; returns when the session is open again or
 * lost.
 */
void ckt_conn_broken(struct ckt_conn *conn, uint64_t epoch, int error);
