/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A trace of cricketctl as a file of the Trace Event Format: an array that has its final name once
 * it is whole and on the disk.  Exit codes, with the reason said.
 */
#pragma once

#include <stdint.h>
#include <stdio.h>

#include "rpc/control.h"

enum { CKT_CTL_TRACE_STREAMS = 1024 };

struct ckt_ctl_trace_file {
	FILE *file;
	const char *path; /* not owned */
	char temporary[4096];
	uint64_t calls, dropped;
	uint64_t streams[CKT_CTL_TRACE_STREAMS]; /* tracks of the GPU, in the order of their use */
	unsigned stream_count;
};

/* Creates the file under a temporary name. */
int ckt_ctl_trace_file_open(
	const char *path, const char *session, struct ckt_ctl_trace_file *ret_file);
/* Appends what the server sent.  CKT_EXIT_REFUSED: the disk is full, say. */
int ckt_ctl_trace_file_put(struct ckt_ctl_trace_file *file, const ckt_control_trace_res *res);
/* Ends the array, and gives the file its name.  The file is closed in any case. */
int ckt_ctl_trace_file_keep(struct ckt_ctl_trace_file *file);
/* Removes it. */
void ckt_ctl_trace_file_drop(struct ckt_ctl_trace_file *file);
