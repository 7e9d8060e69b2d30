/*
 * Loading an image into a worker that has not started.
 *
 * Threading: the control thread that starts the session.
 */
#pragma once

#include <stddef.h>

#include "rpc/worker.h"

struct ckt_worker;

int ckt_worker_preload(struct ckt_worker *worker, int broker, const ckt_worker_start_args *args,
	char *ret_message, size_t message_size);
int ckt_worker_load(struct ckt_worker *worker, int broker, const ckt_worker_start_args *args,
	char *ret_message, size_t message_size);
