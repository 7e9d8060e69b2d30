/* SPDX-License-Identifier: Apache-2.0 */
/* The worker's last moment; see deadline.h. */
#include "server/worker/session/deadline.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <time.h>

#include "rpc/net.h"
#include "rpc/worker.h"
#include "server/worker/session/control.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool made;
static timer_t timer;

/* CLOCK_BOOTTIME goes on while the host is suspended, and no step of the date moves it. */
static int set(uint64_t until_ms)
{
	struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGKILL};
	const struct itimerspec when = {.it_value = {.tv_sec = (time_t)(until_ms / 1000),
						.tv_nsec = (long)(until_ms % 1000) * 1000000}};
	if (until_ms / 1000 > INT32_MAX)
		return -EINVAL;
	pthread_mutex_lock(&lock);
	int result = 0;
	if (!made && until_ms) {
		result = timer_create(CLOCK_BOOTTIME, &event, &timer) ? -errno : 0;
		made = !result;
	}
	if (made && timer_settime(timer, TIMER_ABSTIME, &when, NULL))
		result = -errno;
	pthread_mutex_unlock(&lock);
	return result;
}

int ckt_deadline_serve(struct ckt_request *request)
{
	ckt_worker_fence_args args = {0};
	struct ckt_worker_result res = {.message = (char *)""};
	int result = ckt_net_decode(&request->args, (xdrproc_t)xdr_ckt_worker_fence_args, &args);
	if (result)
		return result;
	res.status = set(args.until_ms);
	return ckt_worker_control_reply(request, (xdrproc_t)xdr_ckt_worker_result, &res);
}
