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

#include "server/daemon/nvml/nvml_reader.h"
#include "server/daemon/peer/control.h"

/* For tests: another library than libnvidia-ml.so.1; NULL: that one. */
extern const char *ckt_nvml_library;

void ckt_control_devices(struct ckt_peer *peer, void *args, int *passed_fd);
void ckt_control_nvml(struct ckt_peer *peer, void *args, int *passed_fd);
void ckt_control_gpu_use(struct ckt_peer *peer, void *args, int *passed_fd);
/* answer: NULL if none came in time. */
typedef void ckt_nvml_heard(
	struct ckt_server *server, unsigned gpu, const struct ckt_reader_answer *answer);
/*
 * The server's own question, CKT_READER_HEALTH of that GPU, before those of clients.  heard is called
 * once, later; false: it is never called, because there is no NVML now.
 */
bool ckt_nvml_ask_health(struct ckt_server *server, unsigned gpu, ckt_nvml_heard *heard);
/* Ends the reader. */
void ckt_daemon_nvml_fini(struct ckt_server *server);
