/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which CUDA driver the sessions get, and what it finds.  The server itself never loads a driver: a
 * forked child does, so that no context and no thread of a driver's lives in the process that forks
 * workers.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bounds.h"

struct ckt_driver_gpu {
	char name[128];
	uint64_t memory_bytes;
	uint8_t uuid[16];
	char pci_bus_id[32];
	int major, minor; /* compute capability */
};

/* Its UUID as NVML writes it, "GPU-..."; empty: the driver tells none. */
enum { CKT_GPU_UUID_TEXT = 48 };
void ckt_driver_uuid_text(const struct ckt_driver_gpu *gpu, char ret_text[CKT_GPU_UUID_TEXT]);

struct ckt_driver_info {
	char path[4096];
	bool soft;
	int cuda_version; /* cuDriverGetVersion; 0 if it returns none */
	unsigned gpu_count;
	struct ckt_driver_gpu gpus[CKT_DEVICES_MAX];
};

/*
 * choice: "auto", "soft" or a path; soft_path: NULL if the soft GPU was not found.  With "auto"
 * ret_message says in one sentence why the soft GPU was chosen, and is empty otherwise.  -errno
 * with the reason in ret_message.
 */
int ckt_driver_choose(const char *choice, const char *soft_path, struct ckt_driver_info *ret_info,
	char *ret_message, size_t message_size);
