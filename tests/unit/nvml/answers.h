/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A server that answers what a test tells it to, in a process of its own that shares `answers`:
 * greeting, hello of kind CONTROL, one call a connection.  REMOTE_GPU_ADDRESS names it before
 * anything is asked.
 */
#pragma once

#include <stdatomic.h>

#include "rpc/control.h"
#include "tests/unit/suite.h"

enum how { ANSWERS, SAYS_NOTHING, HANGS_UP, CUTS_SHORT, SAYS_NONSENSE, REFUSES };

struct shared_answers {
	_Atomic int how;
	_Atomic unsigned connections, calls;
	/* The latest call. */
	_Atomic uint32_t proc;
	ckt_control_nvml_args nvml_args;
	uint32_t gpu;
	/* The answers. */
	ckt_control_devices_res devices;
	ckt_control_nvml_res nvml;
	ckt_control_gpu_use_res use;
	/* What they point to; a name that is made up as the test runs. */
	ckt_control_device devices_list[CKT_DEVICES_MAX];
	ckt_control_gpu_process processes[CKT_CONTROL_GPU_PROCESSES_MAX];
	char data[CKT_CONTROL_GPU_DATA_MAX], name[CKT_NAME_MAX + 1];
};

extern struct shared_answers *shared_answers;
#define answers (*shared_answers)

/* Two GPUs that were put in the wrong order. */
void answers_reset(void);
/* test_ask.c: as if nothing had failed so far. */
void answers_forget(void);
/* What is written to stderr between the two.  Valid until the next. */
void stderr_begin(void);
const char *stderr_end(void);
