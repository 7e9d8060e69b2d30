/* SPDX-License-Identifier: Apache-2.0 */
/* CRICKET_SOFT_WAITS: where calls wait for the device by themselves. */
#pragma once

struct ckt_soft_context;
struct ckt_soft_stream;

/*
 * Where CRICKET_SOFT_WAITS says so: before a context loads code, and before a stream takes a
 * kernel.
 */
void ckt_soft_waits_load(struct ckt_soft_context *context);
void ckt_soft_waits_launch(struct ckt_soft_stream *stream);
/* What the list (NULL: none) names: 1 load, 2 launch. */
unsigned ckt_soft_waits_parse(const char *list);
