/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Interprocess events: records have numbers and finish in the order of their numbers.  Any thread;
 * counted.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "softgpu/cuda_api.h"

struct ckt_soft_shared_event;

/* NULL if there is no memory. */
struct ckt_soft_shared_event *ckt_soft_shared_event_new(void);
/* NULL if the handle is not valid, its owner is gone, or this process may not see its descriptors. */
struct ckt_soft_shared_event *ckt_soft_shared_event_open(const CUipcEventHandle *handle);
/* False if another process created the event. */
bool ckt_soft_shared_event_handle(
	const struct ckt_soft_shared_event *shared, CUipcEventHandle *ret_handle);
/*
 * The event is destroyed: nobody can open it any more.  Existing waits continue.
 */
void ckt_soft_shared_event_withdraw(struct ckt_soft_shared_event *shared);
void ckt_soft_shared_event_ref(struct ckt_soft_shared_event *shared);
void ckt_soft_shared_event_put(struct ckt_soft_shared_event *shared);
/* Begins a record and returns its number; finish it when the stream reaches the record. */
uint64_t ckt_soft_shared_event_begin(struct ckt_soft_shared_event *shared);
void ckt_soft_shared_event_finish(struct ckt_soft_shared_event *shared, uint64_t number);
/* The number of the latest record; 0: never recorded. */
uint64_t ckt_soft_shared_event_latest(const struct ckt_soft_shared_event *shared);
bool ckt_soft_shared_event_reached(const struct ckt_soft_shared_event *shared, uint64_t number);
/* Also returns when the process of the latest record is gone. */
void ckt_soft_shared_event_wait(const struct ckt_soft_shared_event *shared, uint64_t number);
