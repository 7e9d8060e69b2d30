/* Filled in with checkpoint/. */
#include <errno.h>
#include <stdio.h>

#include "server/worker/worker.h"

int ckt_worker_save(struct ckt_worker *worker, int dir_fd, uint64_t *ret_bytes, char *ret_message, size_t message_size)
{
	snprintf(ret_message, message_size, "checkpoints are not there yet");
	return -ENOSYS;
}

int ckt_worker_load(struct ckt_worker *worker, int dir_fd, const ckt_worker_start_args *args, char *ret_message, size_t message_size)
{
	snprintf(ret_message, message_size, "checkpoints are not there yet");
	return -ENOSYS;
}
