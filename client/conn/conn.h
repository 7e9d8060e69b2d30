/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A connection of this process to its session at a server. cuInit makes one for each address
 * (nodes.c); every thread uses them.
 *
 *	encode --> ring --(send: any waiting thread, or the flusher)--> socket --> worker
 *	           |<---- kept until executed ----|
 *	waiters <--(read: one waiting thread at a time reads for all)-- socket <-- worker
 *
 * The ring holds whole records between three positions that only grow: head (oldest record that the
 * worker may not have executed), sent (next byte for the socket), tail (next byte to encode).  A
 * record never wraps: readers skip the gap at the end, which a zero word marks.  When the
 * connection breaks, the thread that noticed connects again and sends from head; see resume.c.
 *
 * Locks, in this order: state_lock (one thread resumes), send_lock (the socket's writing side,
 * `sent`), lock (ring, seq, waiters). read_lock comes after state_lock and before lock.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <sys/types.h>

#include "client/conn/call.h"
#include "client/conn/lane.h"
#include "base/crowd.h"
#include "client/conn/module_hints.h"
#include "rpc/session_key.h"
#include "rpc/net.h"
#include "rpc/session.h"
#include "rpc/transport/transport.h"

enum {
	CKT_RING_SIZE = 4 << 20, /* at least three records of the largest size fit */
	/* reserved for session procedures; the ends of host functions may use half of this room */
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
	CKT_CONN_LOST,     /* final: every call returns conn.error */
	CKT_CONN_FORKED,   /* in a child of the process that connected */
};

/* Bits of conn.mode */
enum {
	CKT_CONN_SYNC = 1, /* CRICKET_SYNC=1 */
	/* one of several servers: device numbers of the server differ from the program's */
	CKT_CONN_SEVERAL = 2,
};

struct ckt_replay;

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
	struct ckt_reply *reply; /* where a sleeping thread wants its results; may be NULL */
	/* a copy of the record, to send again after the connection broke */
	uint32_t message_size;
	uint8_t *message;
	uint8_t message_small[192];
};

/* Functions work on the connection argument; a thread's calls use ckt_call_conn. */
struct ckt_conn {
	_Atomic int state; /* enum ckt_conn_state */
	CUresult error;    /* with CKT_CONN_LOST */
	/* rpc/transport/transport.h says which thread may use it when */
	struct ckt_transport transport;
	_Atomic int connecting_fd; /* a descriptor that is still connecting; -1 for none */
	_Atomic bool direct;       /* the transport is CKT_TRANSPORT_NO_CALL */
	bool no_rings;             /* the shared memory of a server was of no use */
	/* counts connections: errors of an earlier connection are ignored */
	_Atomic uint64_t epoch;
	pid_t pid;
	unsigned number;     /* index in ckt_conns */
	const char *visible; /* CUDA_VISIBLE_DEVICES for this server, or NULL */
	/* CKT_CONN_SYNC, CKT_CONN_SEVERAL; one word, because every call reads it */
	unsigned mode;

	/* Identity */
	char session[CKT_SESSION_ID_SIZE + 1];
	/* the session's key, in memory of its own that no core dump has; NULL: not yet made */
	struct ckt_session_key *key;
	/* the key's fingerprint, or the secret for an older server */
	uint8_t secret[CKT_SECRET_SIZE];
	uint64_t generation;
	/*
	 * the copy of the session that last executed a command of this client
	 * (CKT_CAPABILITY_COPY); 0: unknown
	 */
	uint64_t copy;
	uint64_t offered_copy; /* the copy that answers now */
	char address_text[CKT_ADDRESS_TEXT_MAX];
	char server[CKT_NAME_MAX + 1];
	/* stopped on purpose: the client looks for the session without a time limit */
	_Atomic bool parked;
	/*
	 * the session has no worker, and the connection is only kept: nothing is sent or read, and
	 * the next command resumes (sleep.c)
	 */
	_Atomic bool asleep;
	bool refused;         /* the last hello of kind RESUME, in the server's words; state_lock */
	bool keeping;         /* a hello offers its new connection; state_lock */
	_Atomic bool quiesce; /* the server asked this process to be quiet: see quiesce.c */
	/* the new address that the server sent before it closed the connection */
	char moved_to[CKT_ADDRESS_MAX + 1];

	pthread_mutex_t lock;
	uint8_t *ring;
	uint64_t head;
	/* the last command that the worker executed: commands up to it have left the ring */
	uint64_t executed;
	_Atomic uint64_t sent, tail;
	/* the start of the latest skipped gap at the ring's end */
	_Atomic uint64_t gap_start;
	/* both written under lock; settings: see ckt_call_settings */
	_Atomic uint64_t next_seq, settings;
	uint32_t next_xid;
	uint64_t last_ack_position;
	_Atomic bool ack_pending;
	struct ckt_waiter *buckets[CKT_WAITER_BUCKETS];
	struct ckt_waiter pending; /* list head */
	/* first error of a batched call that was not yet reported */
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
	/* signalled when a waiter is done or no thread reads */
	pthread_cond_t read_cond;
	bool reading;
	/* the watcher waits on the descriptor, which must stay open meanwhile */
	bool watching;
	unsigned sleepers;
	uint8_t *receive;
	size_t receive_start, receive_end;

	/* The flusher thread: sends commands that no thread waits for */
	pthread_t flusher;
	bool flusher_running;
	_Atomic uint32_t flusher_asleep; /* futex: 1 while it sleeps */
	struct ckt_crowd flusher_crowd;  /* the flusher's */
	_Atomic bool flusher_look;       /* it must read what arrived */

	struct ckt_lanes lanes;
	struct ckt_module_hints module_hints;
	/*
	 * CRICKET_DURABLE=1: what is sent again after a restore, see replay.h; NULL: nothing is kept.
	 * The reader's; other threads only look whether there is one.
	 */
	struct ckt_replay *_Atomic replay;
	_Atomic bool stamped; /* commands ask for stamps: replay_stamps.h */

	pthread_mutex_t state_lock;
	pthread_cond_t state_cond; /* signalled when epoch changes or the session is lost */
};

/* The first connection; others exist only if REMOTE_GPU_ADDRESS is a list. */
extern struct ckt_conn ckt_conn;
extern struct ckt_conn *ckt_conns[CKT_SERVERS_MAX];

/* Initializes a connection in zeroed memory. */
void ckt_conn_init(struct ckt_conn *conn);

/* ---- conn.c */
/*
 * Connects once; later calls return the first result.  A failure logs one line on stderr, unless
 * CUDA_VISIBLE_DEVICES hides every GPU.
 */
CUresult ckt_conn_open(void);
/* The servers' device lists, in the program's order.  NULL before a successful open.  Immutable. */
const struct ckt_devices_res *ckt_conn_devices(void);
/*
 * Returns once finished(data) is true; calls finished again after every reply that arrives over
 * this connection.
 */
void ckt_conn_wait_until(struct ckt_conn *conn, bool (*finished)(void *data), void *data);
/* The same for a thread of the library's own: it polls for a short time only (spin.h). */
void ckt_conn_listen_until(struct ckt_conn *conn, bool (*finished)(void *data), void *data);
/* Calls a session procedure without arguments and waits for the reply. */
CUresult ckt_conn_session_call(struct ckt_conn *conn, uint32_t proc, struct ckt_reply *ret_reply);
/* The same with encoded arguments. */
CUresult ckt_conn_session_ask(struct ckt_conn *conn, uint32_t proc, xdrproc_t xdr_args, void *args,
	struct ckt_reply *ret_reply);
/*
 * The same without waiting, and without taking the program's deferred error: done(data) is called by
 * the thread that reads the reply.
 */
CUresult ckt_conn_session_tell(struct ckt_conn *conn, uint32_t proc, xdrproc_t xdr_args, void *args,
	ckt_call_done done, void *data);
/* Opens a session at conn->address_text. part, parts: of the window; see CKT_SESSION_WINDOW. */
CUresult ckt_conn_open_session(
	struct ckt_conn *conn, unsigned part, unsigned parts, struct ckt_devices_res *ret_devices);
/* Says farewell and sets the connection's state to lost. */
void ckt_conn_end(struct ckt_conn *conn);

/* ---- nodes.c: a list of servers */
/* Opens a session at each server. ret_devices is in their order.  If one fails, none stays open. */
CUresult ckt_nodes_open(struct ckt_devices_res *ret_devices);

/* ---- connect.c */
/* The value of the capability in the reply to a hello; 0: there is none of that name. */
uint64_t ckt_conn_told(const struct ckt_hello_ok *ok, const char *name);
/* The copy of the session that answered; 0: unknown. */
uint64_t ckt_conn_copy_of(const struct ckt_hello_ok *ok);
/*
 * Connects, reads the greeting and sends the hello. kind: NEW, RESUME or DATA. timeout_ms covers the
 * answer, too, unless the session is new (answer_timeout_ms in settings.h). 0, or -errno with a message; -EAGAIN: worth another attempt; -EREMCHG: the session is at ret_moved_to;
 * -EPROTONOSUPPORT: CRICKET_TRANSPORT forbids it.  The caller closes *ret_transport.
 */
int ckt_connect(struct ckt_conn *conn, const char *address_text, enum ckt_hello_kind kind,
	int timeout_ms, struct ckt_transport *ret_transport, struct ckt_hello_ok *ret_ok,
	char *ret_moved_to, size_t moved_size, char *ret_message, size_t message_size);

/* ---- send.c */
/* Writes the encoded commands and waits for the socket. 0, or -errno if the connection broke. */
int ckt_conn_send(struct ckt_conn *conn);
void ckt_conn_flusher_start(struct ckt_conn *conn);
void ckt_conn_flusher_kick(struct ckt_conn *conn);
/* Makes the flusher read what arrived, and notice a broken connection. */
void ckt_conn_flusher_look(struct ckt_conn *conn);

/* ---- reply.c */
/*
 * Reads what has arrived, waiting at most timeout_ms, and delivers the replies.  Precondition: this
 * thread is the reader.
 */
int ckt_conn_read(struct ckt_conn *conn, int timeout_ms);
void ckt_conn_trim(struct ckt_conn *conn, uint64_t executed);
/* The context's sticky error, or CUDA_SUCCESS.  Precondition: conn.lock held. */
CUresult ckt_conn_fault(const struct ckt_conn *conn, uint64_t context);
void ckt_waiter_finish_all(struct ckt_conn *conn, CUresult error);

/* take: makes this thread the reader when the present one stops.  leave: frees the place. */
void ckt_conn_take_reader(struct ckt_conn *conn);
void ckt_conn_leave_reader(struct ckt_conn *conn);
/* Handles a callback of the worker: 0 or -EPROTO.  Precondition: this thread is the reader. */
int ckt_conn_take_callback(struct ckt_conn *conn, struct ckt_cursor *c);
/* Reads what the worker sent before it ended.  Precondition: this thread is the reader. */
void ckt_conn_read_last_words(struct ckt_conn *conn);

/* ---- watch.c: a thread that sleeps until the worker ends the connection */
void ckt_conn_watch_start(struct ckt_conn *conn);
/*
 * Makes the watcher stop using the descriptor.  Precondition: this thread is the reader, and the
 * state is RESUMING.
 */
void ckt_conn_watch_leave(struct ckt_conn *conn);

/* ---- quiesce.c */
/*
 * Handles the server's request to be quiet.  Precondition: this thread is the reader, the state is
 * RESUMING, and the watcher does not use the descriptor.
 */
void ckt_conn_quiesce(struct ckt_conn *conn);

/* ---- resume.c */
/*
 * The address in the session's file; false if there is none for this process.  The address of a
 * session that was restored with a saved process is only for that process, whose generation is
 * higher.
 */
bool ckt_conn_file_address(const struct ckt_conn *conn, char *ret_address, size_t size);
/*
 * Called when the connection of that epoch broke with this error.  Returns when the session is open
 * again or lost.
 */
void ckt_conn_broken(struct ckt_conn *conn, uint64_t epoch, int error);
/* The same for a session that sleeps, where its caller wants it; nothing if it does not. */
void ckt_conn_wake(struct ckt_conn *conn);

/* ---- sleep.c */
/* Handles the callback SLEEP: 0 or -EPROTO.  Precondition: this thread is the reader. */
int ckt_conn_take_sleep(struct ckt_conn *conn, struct ckt_cursor *c);
/*
 * The connection of a session that sleeps broke: makes another one, so that the server knows that the
 * program lives.  Returns once it has one, or the session sleeps no more.
 */
void ckt_conn_keep(struct ckt_conn *conn);
/* Whether there is nothing for the worker of a session that sleeps. */
bool ckt_conn_rests(struct ckt_conn *conn);
