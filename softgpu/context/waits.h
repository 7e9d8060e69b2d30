/* SPDX-License-Identifier: Apache-2.0 */
/* CRICKET_SOFT_WAITS: selects where calls wait for the device. */
#pragma once

struct ckt_soft_context;
struct ckt_soft_stream;

/*
 * Waits if CRICKET_SOFT_WAITS requests it: before a context loads code, and before a stream accepts
 * a kernel.
 */
void ckt_soft_waits_load(struct ckt_soft_context *context);
void ckt_soft_waits_launch(struct ckt_soft_stream *stream);
/* Parses the list (NULL: none) to bits: 1 load, 2 launch. */
unsigned ckt_soft_waits_parse(const char *list);
