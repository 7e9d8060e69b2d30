/* SPDX-License-Identifier: Apache-2.0 */
/* A lane of a session over the wire (wire_client.h): the client's end, byte by byte. */
#pragma once

#include "rpc/lane.h"
#include "tests/unit/worker/wire_session.h"

/* A further connection with a hello of kind DATA; -1: refused. */
int lane_open(struct wire *w, bool right_secret);
/* The same after lanes that broke: of a new set. */
int lane_open_anew(struct wire *w);
/* Sends a piece, each byte of it `value`. */
void lane_send(int fd, uint64_t piece, uint32_t size, uint8_t value);
/* Any head, and then bytes of it or not. */
void lane_say(int fd, uint32_t kind, uint32_t size, uint64_t piece);
/* The next head; kind 0: the worker ended the lane. */
struct ckt_lane_head lane_hear(int fd);
/* Reads the bytes of a piece: how many of them are not the value. */
unsigned lane_wrong(int fd, uint32_t size, uint8_t value);
