/*
 * What the client's libnvidia-ml.so.1 asks: which GPUs there are, what the genuine NVML says of
 * them, and who uses how much of them. Nothing of it starts a session or touches a GPU.
 *
 *	peer --DEVICES--> answered at once, from what the driver told when the server started
 *	     --NVML-----> queue -> the reader's process (nvml_reader.h) -> answered
 *	     --GPU_USE--> queue -> the reader's process -> the workers that the caller may see: what they have on it -> answered
 *
 * The reader is started by the first question that needs it, one question at a time; one that does
 * not answer in time is told so, and one that does not answer for long is ended.  The soft GPU has
 * none.
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
void ckt_nvml_fini(struct ckt_server *server);
