/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The input buffer: the bytes of the client's connection, as the executor takes them, and what
 * another thread took from the socket ahead of it.
 *
 *	socket --receive (executor)--> data [head .. tail)        the executor runs the records between head and tail, without the lock
 *	       --look (another thread)--> ahead ---receive---^    behind tail, in the stream's order
 *
 * The lock is for what a look ahead touches: the descriptor, `ahead`, the bytes of `data` and its
 * tail.  Only the executor changes `data`, head and tail, and only ckt_input_receive moves or adds
 * bytes, so a command's arguments stay where they are while somebody looks.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rpc/transport/transport.h"
#include "rpc/wire.h"

enum {
	CKT_INPUT_SIZE = 8 << 20,
	/* More than a client keeps unanswered: its ring is smaller. */
	CKT_INPUT_AHEAD_MAX = 8 << 20,
	/* How many bytes of a command's arguments a look ahead sees. */
	CKT_INPUT_SEEN = 16,
};

struct ckt_input {
	pthread_mutex_t lock;
	struct ckt_transport transport; /* a copy: the executor closes the connection */
	uint8_t *data;
	size_t head, tail;
	_Atomic size_t begun; /* head, for who looks ahead */
	uint8_t *ahead;
	size_t ahead_head, ahead_tail, ahead_room;
};

/* 0 or -ENOMEM. */
int ckt_input_init(struct ckt_input *input);
/* A connection begins (fd >= 0) or ends (-1): drops the bytes of the one before. */
void ckt_input_connect(struct ckt_input *input, int fd);
/* The same over a transport that is open; the caller keeps and closes it. */
void ckt_input_connect_over(struct ckt_input *input, const struct ckt_transport *transport);
/* The executor's.  1: something came; 0: nothing is there; negative: the connection is gone. */
int ckt_input_receive(struct ckt_input *input);
/* The executor's: takes away what the connection holds, without looking at it. */
void ckt_input_discard(struct ckt_input *input);
/* The executor's: takes over the record that begins at head. */
static inline void ckt_input_take(struct ckt_input *input, size_t bytes)
{
	input->head += bytes;
	atomic_store_explicit(&input->begun, input->head, memory_order_relaxed);
}

/*
 * What a look ahead sees of one whole record: its header, and the beginning of its arguments.
 * False: look no further.
 */
typedef bool (*ckt_input_visit)(
	void *data, const struct ckt_call_header *header, struct ckt_cursor *args);
/*
 * Of another thread, while the executor does not come to its input: shows every whole record that
 * the executor may not have begun, in order, and some that it has.  True where bytes were taken
 * from the socket, which polls no more for them: the executor must be woken.
 */
bool ckt_input_look(struct ckt_input *input, ckt_input_visit visit, void *data);
