/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The root of unique ids inside of a worker (rpc/nccl_meeting.h): how it is found, and finds others.
 * Threading: any.  Errors: -errno.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "rpc/nccl_meeting.h"

void ncclCricketMeetThrough(const struct ckt_nccl_meeting *meeting);

/* Whether ranks also meet at abstract sockets: no worker hosts this process, or it says so. */
bool ckt_soft_nccl_meeting_is_open(void);
/* Where guests of that name come from, the caller's; -ENOTCONN: no worker hosts this process. */
int ckt_soft_nccl_meeting_announce(const uint8_t name[CKT_NCCL_MEETING_NAME]);
/* The next guest from there, the caller's. */
int ckt_soft_nccl_meeting_take(int door);
/* A connection with the root of that name, the caller's. */
int ckt_soft_nccl_meeting_visit(const uint8_t name[CKT_NCCL_MEETING_NAME]);
