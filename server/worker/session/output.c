/* SPDX-License-Identifier: Apache-2.0 */
/* The output buffer; see output.h. */
#include "server/worker/session/output.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "rpc/record.h"

void ckt_output_init(struct ckt_output *output)
{
	*output = (struct ckt_output){0};
	ckt_transport_init_socket(&output->transport, -1);
	pthread_mutex_init(&output->lock, NULL);
}

static int make_room(struct ckt_output *output, size_t size)
{
	if (output->head == output->tail)
		output->head = output->tail = 0;
	if (output->room - output->tail >= size)
		return 0;
	size_t waiting = output->tail - output->head;
	if (output->head >= output->room / 2 && output->room - waiting >= size) {
		memmove(output->data, output->data + output->head, waiting);
	} else {
		size_t room = output->room ? output->room : 1 << 16;
		while (room - waiting < size)
			room *= 2;
		uint8_t *data = malloc(room);
		if (!data)
			return -ENOMEM;
		if (waiting)
			memcpy(data, output->data + output->head, waiting);
		free(output->data);
		output->data = data;
		output->room = room;
	}
	output->head = 0;
	output->tail = waiting;
	return 0;
}

/* Precondition: there is room.  Where the record's bytes go. */
static uint8_t *put_mark(struct ckt_output *output, size_t size)
{
	uint8_t *p = ckt_mark_put(output->data + output->tail, size);
	output->tail += size + CKT_MARK_SIZE;
	return p;
}

int ckt_output_connect(
	struct ckt_output *output, int fd, uint64_t epoch, const uint8_t *first, size_t size)
{
	pthread_mutex_lock(&output->lock);
	output->broken = false;
	output->head = output->tail = 0;
	int result = first ? make_room(output, size + CKT_MARK_SIZE) : 0;
	if (first && !result)
		memcpy(put_mark(output, size), first, size);
	ckt_transport_init_socket(&output->transport, result ? -1 : fd);
	output->epoch = result ? 0 : epoch;
	pthread_mutex_unlock(&output->lock);
	return result;
}

void ckt_output_connect_over(
	struct ckt_output *output, const struct ckt_transport *transport, uint64_t epoch)
{
	pthread_mutex_lock(&output->lock);
	output->broken = false;
	output->head = output->tail = 0;
	output->transport = *transport;
	output->epoch = epoch;
	pthread_mutex_unlock(&output->lock);
}

uint8_t *ckt_output_begin(struct ckt_output *output, uint64_t epoch, size_t size)
{
	pthread_mutex_lock(&output->lock);
	if (!ckt_transport_open(&output->transport) || output->epoch != epoch || output->broken) {
		pthread_mutex_unlock(&output->lock);
		return NULL;
	}
	/* A reply that finds no room is asked for again by the client that comes back. */
	if (make_room(output, size + CKT_MARK_SIZE)) {
		output->broken = true;
		ckt_transport_shutdown(&output->transport);
		pthread_mutex_unlock(&output->lock);
		return NULL;
	}
	return put_mark(output, size);
}

void ckt_output_end(struct ckt_output *output)
{
	pthread_mutex_unlock(&output->lock);
}

int ckt_output_flush(struct ckt_output *output)
{
	int result = 0;
	pthread_mutex_lock(&output->lock);
	while (output->head < output->tail && ckt_transport_open(&output->transport) &&
		!output->broken) {
		ssize_t n = ckt_transport_write(&output->transport, output->data + output->head,
			output->tail - output->head);
		if (n >= 0) {
			output->head += (size_t)n;
			continue;
		}
		result = (int)n;
		output->broken = n != -EAGAIN;
		break;
	}
	pthread_mutex_unlock(&output->lock);
	return result;
}

size_t ckt_output_waiting(struct ckt_output *output)
{
	pthread_mutex_lock(&output->lock);
	size_t waiting = output->broken || !ckt_transport_open(&output->transport)
		? 0
		: output->tail - output->head;
	pthread_mutex_unlock(&output->lock);
	return waiting;
}

uint64_t ckt_output_epoch(struct ckt_output *output)
{
	pthread_mutex_lock(&output->lock);
	uint64_t epoch = output->epoch;
	pthread_mutex_unlock(&output->lock);
	return epoch;
}

const char *ckt_output_transport(struct ckt_output *output)
{
	pthread_mutex_lock(&output->lock);
	const char *name = ckt_transport_name(&output->transport);
	pthread_mutex_unlock(&output->lock);
	return name;
}
