/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the worker counts for the server's --metrics, see rpc/session_metrics.h.  Without a page of
 * the server's, nothing is counted and no clock is read.  Threading: any thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rpc/session_metrics.h"

struct ckt_worker;
struct ckt_wcall;

/* NULL: none. */
extern struct ckt_session_metrics *_Atomic ckt_worker_metrics_page;

/*
 * From now on counts into the file, which is the callee's in every case.  Its devices show their
 * memory there.  0, or -errno; -EINVAL: a file of another size.
 */
int ckt_worker_metrics_use(struct ckt_worker *worker, int fd);
/* The state of worker->state.  Precondition: mail_lock. */
void ckt_worker_metrics_state(const struct ckt_worker *worker);

/* Those below do nothing without a page.  index: ckt_stat_index(). */
void ckt_worker_metrics_call(uint32_t index, bool waited, size_t bytes);
void ckt_worker_metrics_sent(uint32_t index, size_t bytes);
/* Of a waited call: its execution begins. */
void ckt_worker_metrics_begin(struct ckt_wcall *call);
/* Whether a kernel, or the GPU, has failed, and with it the context.  result: a CUresult. */
bool ckt_worker_metrics_is_fault(int result);
/* result: a CUresult. */
void ckt_worker_metrics_end(const struct ckt_wcall *call, int result);
