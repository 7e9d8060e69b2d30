/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NVIDIA's libnvidia-ml.so.1, read in a process of its own: the server loads no driver library, and
 * one that crashes or hangs must not take the server along.
 *
 * Threading: one thread in that process.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "rpc/nvml.h"

enum { CKT_READER_PROCESSES_MAX = 256, CKT_READER_TEXT_MAX = 256 };

/* A question that is no function of rpc/api/nvml.api: what --metrics tells of a GPU. */
#define CKT_READER_HEALTH (UINT32_MAX - 1)

/* Values of an answer to it, as NVML has them. */
enum ckt_reader_value {
	CKT_HEALTH_USED_BYTES,
	CKT_HEALTH_FREE_BYTES,
	CKT_HEALTH_BUSY_PERCENT,
	CKT_HEALTH_CELSIUS,
	CKT_HEALTH_MILLIWATTS,
	CKT_HEALTH_THROTTLED, /* bits: nvmlClocksEventReasons */
	CKT_HEALTH_CORRECTED, /* errors of memory since the driver was loaded */
	CKT_HEALTH_UNCORRECTED,
	CKT_HEALTH_VALUES
};

/* NVML's names of a GPU. */
struct ckt_reader_gpu {
	char uuid[48]; /* "GPU-..." */
	char pci_bus_id[32];
};

struct ckt_reader_question {
	/* as in rpc/api/nvml.api; 0: memory and processes; or CKT_READER_HEALTH */
	uint32_t function;
	uint32_t selectors[CKT_NVML_SELECTORS_MAX];
	struct ckt_reader_gpu gpu, other;
};

struct ckt_reader_answer {
	/* nvmlReturn_t; LIBRARY_NOT_FOUND if there is no working NVML */
	int32_t result;
	uint32_t data_bytes;
	uint8_t data[CKT_NVML_DATA_BYTES];
	char text[CKT_READER_TEXT_MAX];
	/* Function 0. */
	uint64_t total_bytes, free_bytes;
	uint32_t process_count;
	struct {
		uint32_t pid;
		uint64_t memory_bytes; /* all bits set: NVML does not know */
	} processes[CKT_READER_PROCESSES_MAX];
	/* CKT_READER_HEALTH.  Bit N: values[N] is known. */
	uint32_t known;
	uint64_t values[CKT_HEALTH_VALUES];
};

/* Loads that library and initializes it; false if that fails.  Once in a process. */
bool ckt_daemon_nvml_reader_open(const char *library);
void ckt_daemon_nvml_reader_answer(
	const struct ckt_reader_question *question, struct ckt_reader_answer *ret_answer);

/*
 * Starts the process.  *ret_fd: a socket that takes one question a message and gives one answer a
 * message; -errno.
 */
int ckt_daemon_nvml_reader_start(const char *library, int *ret_pid, int *ret_fd);
