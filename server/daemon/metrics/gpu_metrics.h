/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What --metrics tells of each GPU itself: the ledger's figures, and what NVML said last
 * (nvml/gpu_health.h).  Nobody is asked here.  Threading: the loop's thread.
 */
#pragma once

#include <stdint.h>

#include "base/bounds.h"

struct ckt_metric_writer;
struct ckt_server;

/* held: what all sessions hold of each GPU. */
void ckt_metrics_put_gpus(const struct ckt_server *server, struct ckt_metric_writer *to,
	const uint64_t held[CKT_DEVICES_MAX]);
