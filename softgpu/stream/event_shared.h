/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Events of several processes: records are numbered, and done in the order of their numbers.  Any
 * thread; counted.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "softgpu/cuda_api.h"

struct ckt_soft_shared_event;

/* Removes what makers that were killed left; the first one that a process makes does it. */
void ckt_soft_shared_event_sweep(void);
/* NULL where there is no memory. */
struct ckt_soft_shared_event *ckt_soft_shared_event_new(void);
/* NULL where the handle is none, or its owner is gone. */
struct ckt_soft_shared_event *ckt_soft_shared_event_open(const CUipcEventHandle *handle);
/* False where it is another process's. */
bool ckt_soft_shared_event_handle(
	const struct ckt_soft_shared_event *shared, CUipcEventHandle *ret_handle);
/* Nobody opens it any more: its event is destroyed, whatever still waits for it. */
void ckt_soft_shared_event_withdraw(struct ckt_soft_shared_event *shared);
void ckt_soft_shared_event_ref(struct ckt_soft_shared_event *shared);
void ckt_soft_shared_event_put(struct ckt_soft_shared_event *shared);
/* A record begins, and gets its number; it is finished when its stream has come to it. */
uint64_t ckt_soft_shared_event_begin(struct ckt_soft_shared_event *shared);
void ckt_soft_shared_event_finish(struct ckt_soft_shared_event *shared, uint64_t number);
/* 0: never recorded. */
uint64_t ckt_soft_shared_event_latest(const struct ckt_soft_shared_event *shared);
bool ckt_soft_shared_event_reached(const struct ckt_soft_shared_event *shared, uint64_t number);
/* Also returns when the process that recorded it last is gone. */
void ckt_soft_shared_event_wait(const struct ckt_soft_shared_event *shared, uint64_t number);
