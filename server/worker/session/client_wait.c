/* SPDX-License-Identifier: Apache-2.0 */
/* How the executor waits for its client while the session is off the GPU; see executor.h. */
#include <poll.h>
#include <pthread.h>
#include <stdint.h>
#include <unistd.h>

#include "server/worker/ipc/ipc.h"
#include "server/worker/session/executor.h"
#include "server/worker/worker.h"

bool ckt_executor_wait_client(struct ckt_worker *worker, bool listen, int timeout_ms)
{
	struct ckt_input *input = &worker->input;
	struct ckt_transport *client = &input->transport;
	bool open = listen && worker->client_fd >= 0;
	pthread_mutex_lock(&worker->mail_lock);
	bool another = worker->new_client.fd >= 0;
	pthread_mutex_unlock(&worker->mail_lock);
	pthread_mutex_lock(&input->lock);
	bool has = input->tail > input->head || input->ahead_tail > input->ahead_head;
	pthread_mutex_unlock(&input->lock);
	if (listen &&
		(another || ckt_ipc_together_wanted() || (open && has) ||
			(open && ckt_transport_ready(client, CKT_TRANSPORT_READ))))
		return true;
	struct pollfd fds[2] = {{.fd = worker->wake_fd, .events = POLLIN}};
	if (open)
		fds[1] = ckt_transport_pollfd(client, CKT_TRANSPORT_READ);
	poll(fds, open ? 2 : 1, timeout_ms);
	if (open)
		ckt_transport_polled(client, CKT_TRANSPORT_READ, fds[1].revents);
	if (fds[0].revents & POLLIN) {
		uint64_t number;
		ssize_t ignored = read(worker->wake_fd, &number, sizeof number);
		(void)ignored;
	}
	return open && fds[1].revents;
}
