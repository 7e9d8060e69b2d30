/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What checkpoint/ needs of the session that it freezes, saves and loads: the worker implements it
 * (server/worker/session/session_operations.c).  Device memory is in memory_operations.h.
 *
 * What an image holds of a session is not here: each kind of object, and each table, has
 * operations of its own (object_kind.h).
 */
#pragma once

#include <cuda.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "checkpoint/format/image.h"

struct ckt_object;
struct ckt_worker;

struct ckt_session_operations {
	/* ---- What freezing and holding share with the executor's mailbox.  Any thread. */
	pthread_mutex_t *(*lock)(struct ckt_worker *worker);
	/* Broadcast when one of them changes. */
	pthread_cond_t *(*changed)(struct ckt_worker *worker);
	/* Makes the executor look at them. */
	void (*wake)(struct ckt_worker *worker);
	/* Adds a sentence to what listings and cricketctl restore show with the session. */
	void (*note)(struct ckt_worker *worker, const char *format, ...)
		__attribute__((format(printf, 2, 3)));

	/* ---- The host's memory.  Any thread. */
	/*
	 * Charges the session's account; false if the amount does not fit: then nothing is charged.
	 */
	bool (*charge)(uint64_t bytes, const char *what);
	void (*uncharge)(uint64_t bytes);
	/*
	 * Private memory near an address that nothing else uses, for the rest of the process; NULL
	 * with errno set.
	 */
	void *(*map_place)(uint64_t wish, size_t size_bytes, int flags);

	/* ---- Contexts and objects.  The executor's, or whoever has frozen it. */
	/* Makes the context current. */
	CUresult (*use_context)(struct ckt_worker *worker, uint64_t id);
	/* Makes the device's primary context current, which comes into being where it is not there. */
	CUresult (*use_primary)(struct ckt_worker *worker, unsigned device);
	/* The id of the one that is current on the executor; 0: none is. */
	uint64_t (*current_context)(struct ckt_worker *worker);
	/* The driver's context; NULL: there is none of that id. */
	CUcontext (*real_context)(struct ckt_worker *worker, uint64_t id);
	/* The first device's primary context.  Any thread. */
	CUcontext (*first_context)(struct ckt_worker *worker);
	/* The device of a context; 0 where there is none of that id. */
	unsigned (*device_of)(struct ckt_worker *worker, uint64_t context);
	/* The driver's module; NULL: there is none of that id. */
	CUmodule (*real_module)(struct ckt_worker *worker, uint64_t id);
	/* All of the module is on the GPU, though the driver loads lazily. */
	CUresult (*load_whole)(CUmodule module);
	/* All objects in the order of their making, to be freed; NULL where there is no memory. */
	struct ckt_object **(*objects_in_order)(struct ckt_worker *worker, size_t *ret_count);
	uint64_t (*object_id)(const struct ckt_object *object);
	/* Ends streams and events that a restore made ahead and that no object took. */
	void (*end_ahead)(struct ckt_worker *worker);

	/* ---- Standing still.  The executor's. */
	/* A restored or running session: how many commands were executed.  Any thread. */
	uint64_t (*executed)(struct ckt_worker *worker);
	/* A call of the program waits for other processes, which may need commands of this one. */
	bool (*waits_for_others)(struct ckt_worker *worker);
	/*
	 * Waits until calls on threads of their own are done: 0, -ETIMEDOUT, or -EAGAIN if a host
	 * function runs in the client.
	 */
	int (*finish_calls)(struct ckt_worker *worker, int64_t deadline_ms);
	/* Waits until every call that waits for the GPU is answered: the same errors. */
	int (*finish_waits)(struct ckt_worker *worker, int64_t deadline_ms);
	/*
	 * Waits until no stream has work: 0, -EAGAIN as above, or -EBUSY and a sentence that names
	 * the stream.
	 */
	int (*finish_streams)(struct ckt_worker *worker, int64_t deadline_ms, char *ret_message,
		size_t message_size);
	/* Whether one has, and the sentence. */
	bool (*streams_work)(struct ckt_worker *worker, char *ret_message, size_t message_size);
	/* Calls have begun that are answered later. */
	bool (*calls_open)(void);
	/* Puts what the GPU has for the client on its way: copies, and what kernels printed. */
	void (*deliver)(struct ckt_worker *worker);
	/* Sends what lies in the output, as far as it goes until then. */
	void (*flush)(struct ckt_worker *worker, int64_t deadline_ms);
	/* Sends a reply over the connection of that epoch, if it is still there. */
	void (*send_record)(
		struct ckt_worker *worker, uint64_t epoch, const uint8_t *record, size_t size);
	/*
	 * Ends the client's connection so that what was sent still arrives.  quiesce: the client is
	 * told to be quiet, and may come back; else the session ends, and it hears where to.
	 */
	void (*part)(struct ckt_worker *worker, bool quiesce);
	/* The executor sleeps from now on, and does so no longer.  Precondition: locked. */
	void (*begin_sleep)(struct ckt_worker *worker);
	void (*end_sleep)(struct ckt_worker *worker, bool session_ends);
	/*
	 * Of a swapped session: waits until its client has sent something, has hung up, or another
	 * has come (true), or until that time.  listen false: only waits.
	 */
	bool (*wait_client)(struct ckt_worker *worker, bool listen, int timeout_ms);
	/* Brings a swapped session in, and ends the freeze.  False: not now. */
	bool (*come_in)(struct ckt_worker *worker);
	/* Whether a host function of the program runs: its end is a command. */
	bool (*host_function_runs)(struct ckt_worker *worker);
	uint64_t (*host_functions_ended)(void);
	/* Enters steps that other threads have recorded for objects. */
	void (*settle_notes)(struct ckt_worker *worker);
	/* Collectives that were put on streams so far. */
	uint64_t (*collectives_issued)(struct ckt_worker *worker);

	/* ---- Other sessions; the sentence says which. */
	/* Whether anything is shared with other sessions. */
	bool (*is_shared)(char *ret_message, size_t message_size);
	/* Whether anything is shared with a session that is not frozen together with this one. */
	bool (*is_shared_with_running)(
		struct ckt_worker *worker, char *ret_message, size_t message_size);
	/* From close to reopen, other sessions can open nothing more of this session. */
	void (*close_sharing)(void);
	void (*reopen_sharing)(void);
	/* The name of the job that it belongs to; "": none.  Precondition: locked. */
	const char *(*job)(struct ckt_worker *worker);
	/* Whether communicators of libraries tie it to other sessions. */
	bool (*has_peers)(char *ret_text, size_t text_size);

	/* ---- Images */
	/* The image is one of this session, by its ID and its secret. */
	bool (*is_image_of)(struct ckt_worker *worker, const ckt_image *image);
	/* 0, or -EOPNOTSUPP and a sentence: no image can hold something that the session has. */
	int (*check_saved)(struct ckt_worker *worker, char *ret_message, size_t message_size);
};

extern const struct ckt_session_operations ckt_session_operations;
