/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The calls on the control socket (rpc/worker.x), each by the thread of its connection.  0 or
 * -errno: the connection cannot be used any more.
 */
#pragma once

#include <stdbool.h>

#include "server/worker/session/control.h"

enum { CKT_REPLY_TIMEOUT_MS = 5000 };

/*
 * START, PRELOAD and WARM happen under this lock, so whoever holds it waits for one of them that
 * loads an image.
 */
void ckt_worker_control_lock(void);
void ckt_worker_control_unlock(void);
/* START has succeeded; without the lock. */
bool ckt_worker_control_has_devices(void);

/* ---- control_client.c */

int ckt_worker_serve_client(struct ckt_request *request);
/* The file of the pinned memory of the client that comes next. */
int ckt_worker_serve_host_memory(struct ckt_request *request);

/* ---- control_told.c */

int ckt_worker_serve_owner(struct ckt_request *request);
int ckt_worker_serve_owner_name(struct ckt_request *request);
int ckt_worker_serve_owner_gone(struct ckt_request *request);
int ckt_worker_serve_group(struct ckt_request *request);
int ckt_worker_serve_module_cache(struct ckt_request *request);
int ckt_worker_serve_turn(struct ckt_request *request);
int ckt_worker_serve_metrics(struct ckt_request *request);
int ckt_worker_serve_activity(struct ckt_request *request);
int ckt_worker_serve_stamps(struct ckt_request *request);
int ckt_worker_serve_hold(struct ckt_request *request);
int ckt_worker_serve_cut(struct ckt_request *request);
int ckt_worker_serve_lease_recall(struct ckt_request *request);
int ckt_worker_serve_lease_waited(struct ckt_request *request);
int ckt_worker_serve_lease_press(struct ckt_request *request);
int ckt_worker_serve_lease(struct ckt_request *request);
int ckt_worker_serve_durable(struct ckt_request *request);

/* ---- control_asked.c */

int ckt_worker_serve_origin(struct ckt_request *request);
int ckt_worker_serve_manifest(struct ckt_request *request);
int ckt_worker_serve_status(struct ckt_request *request);
int ckt_worker_serve_stamped(struct ckt_request *request);
int ckt_worker_serve_job(struct ckt_request *request);
int ckt_worker_serve_gpus(struct ckt_request *request);
int ckt_worker_serve_stats(struct ckt_request *request);
int ckt_worker_serve_trace(struct ckt_request *request);
