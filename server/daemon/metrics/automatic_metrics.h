/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What --metrics tells of automatic images (durable/automatic.h) and of sessions that came back.
 * Threading: the loop's thread.
 */
#pragma once

struct ckt_metric_writer;
struct ckt_server;

void ckt_metrics_put_automatic(const struct ckt_server *server, struct ckt_metric_writer *to);
