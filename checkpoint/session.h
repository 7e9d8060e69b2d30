/*
 * What checkpoint/ needs of the session that it freezes, saves and loads, beyond its tables: the
 * worker implements it (server/worker/session/session_operations.c).
 *
 * What an object is made of is not here: each kind has a table of its own (object_kind.h).  Of the
 * tables themselves (struct ckt_worker: who the session is, devices, replies, modules' contents) the
 * files that save and load still know the worker's struct.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ckt_worker;

struct ckt_session_operations {
	/* ---- The host's memory.  Any thread. */
	/* Charges the session's account; false where it does not fit: then nothing is charged. */
	bool (*charge)(uint64_t bytes, const char *what);
	void (*uncharge)(uint64_t bytes);
	/*
	 * Private memory near an address that nobody else wants, for the rest of the process; NULL
	 * with errno set.
	 */
	void *(*map_place)(uint64_t wish, size_t size_bytes, int flags);

	/* ---- Standing still.  The executor's. */
	/* A call of the program waits for other processes, which may need commands of this one. */
	bool (*waits_for_others)(struct ckt_worker *worker);
	/* Waits until calls on threads of their own are done: 0, -ETIMEDOUT, or -EAGAIN where a host
	 * function runs in the client. */
	int (*finish_calls)(struct ckt_worker *worker, int64_t deadline_ms);
	/* A host function of the program runs: its end is a command. */
	bool (*host_function_runs)(struct ckt_worker *worker);
	uint64_t (*host_functions_ended)(void);
	/* Enters what other threads have noted of objects. */
	void (*settle_notes)(struct ckt_worker *worker);
	/* Collectives that were put on streams so far. */
	uint64_t (*collectives_issued)(struct ckt_worker *worker);

	/* ---- Other sessions; the sentence says which. */
	/* Anything is shared with them. */
	bool (*is_shared)(char *ret_message, size_t message_size);
	/* Something is shared with one that does not stand still with this one. */
	bool (*is_shared_with_running)(
		struct ckt_worker *worker, char *ret_message, size_t message_size);
	/* From close to reopen, others get nothing more of this session. */
	void (*close_sharing)(void);
	void (*reopen_sharing)(void);
	/* Communicators of libraries tie it to others. */
	bool (*has_peers)(char *ret_text, size_t text_size);

	/* 0, or -EOPNOTSUPP and a sentence: the session has something that no image can hold. */
	int (*check_saved)(struct ckt_worker *worker, char *ret_message, size_t message_size);
};

extern const struct ckt_session_operations ckt_session_operations;
