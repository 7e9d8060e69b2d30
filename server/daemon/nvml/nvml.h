/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The questions of the client's libnvidia-ml.so.1: which GPUs exist, what the genuine NVML reports,
 * and who uses how much of them. No question starts a session or uses a GPU.
 *
 *	peer --DEVICES--> answered at once, from what the driver told when the server started
 *	     --NVML-----> queue -> the reader's process (nvml_reader.h) -> answered
 *	     --GPU_USE--> queue -> the reader's process -> the workers that the caller may see: what they have on it -> answered
 *
 * The first question that needs the reader starts it.  It gets one question at a time; a question
 * without a timely answer returns a timeout, and a reader that hangs is ended.  The soft GPU has no
 * reader.
 *
 * Threading: the loop's thread.
 */
#pragma once

#include "server/daemon/peer/control.h"

/* For tests: another library than libnvidia-ml.so.1; NULL: that one. */
extern const char *ckt_nvml_library;

void ckt_control_devices(struct ckt_peer *peer, void *args, int *passed_fd);
void ckt_control_nvml(struct ckt_peer *peer, void *args, int *passed_fd);
void ckt_control_gpu_use(struct ckt_peer *peer, void *args, int *passed_fd);
/* Ends the reader. */
void ckt_daemon_nvml_fini(struct ckt_server *server);
