/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What NVML says of each GPU, for --metrics: a sample that is kept, so that no scrape ever waits for
 * NVML.  While somebody scrapes, each GPU is asked once in ckt_gpu_sample_ms, one after the other, by
 * the reader's process (nvml_reader.h).
 *
 *	ckt_gpu_health_want --> timer --> question for GPU 0 --answer--> GPU 1 ... the last --> timer
 *
 * The soft GPU has no NVML and no samples.
 *
 * Threading: the loop's thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "server/daemon/nvml/nvml_reader.h"

struct ckt_server;

enum {
	CKT_GPU_WANTED_MS = 600000, /* asked for so long after a scrape: more than between two */
	/* NVML may start slowly, or start again, and the GPU is well */
	CKT_GPU_SILENT_MS = 30000,
	CKT_GPU_OLD_MS = 60000, /* a sample says nothing of now */
};

/* 2000; tests have less time. */
extern int ckt_gpu_sample_ms;

struct ckt_gpu_sample {
	bool found;        /* NVML has answered for this GPU: not for a part of one */
	bool lost;         /* it fell off its bus, or needs a reset */
	int64_t when_ms;   /* of the last answer */
	int64_t silent_ms; /* since when there is no answer; 0: the last question had one */
	uint32_t known;    /* bit N: values[N]; see enum ckt_reader_value */
	uint64_t values[CKT_HEALTH_VALUES];
};

/*
 * Begins to sample; with the soft GPU, or without memory, it does nothing.  The first sample does not
 * wait for a scrape.
 */
void ckt_gpu_health_begin(struct ckt_server *server);
void ckt_gpu_health_end(struct ckt_server *server);
/* Somebody scrapes. */
void ckt_gpu_health_want(struct ckt_server *server);
/* NULL: NVML has never answered for that GPU. */
const struct ckt_gpu_sample *ckt_gpu_health_of(const struct ckt_server *server, unsigned gpu);
/* Neither lost nor silent for CKT_GPU_SILENT_MS. */
bool ckt_gpu_health_is_up(const struct ckt_gpu_sample *sample, int64_t now_ms);
/* False: it is not known, or old. */
bool ckt_gpu_health_value(const struct ckt_gpu_sample *sample, int64_t now_ms,
	enum ckt_reader_value which, uint64_t *ret_value);
