/* SPDX-License-Identifier: Apache-2.0 */
/* One request to a server; see server_query.h. */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "client/nvml/server_query.h"
#include "base/log.h"
#include "client/conn/control.h"
#include "client/conn/settings.h"
#include "rpc/control.h"
#include "rpc/net.h"
#include "rpc/nvml.h"

/*
 * After a failed request, further requests to the same server fail at once for this long.
 * Libraries ask several times in a row, and each request would otherwise wait for the full timeout.
 */
enum { FAILURE_KEPT_MS = 10000 };

static pthread_once_t settings_once = PTHREAD_ONCE_INIT;
static _Atomic int64_t failed_ms[CKT_SERVERS_MAX]; /* time of the last failure; 0: none */
static atomic_flag told = ATOMIC_FLAG_INIT;

static void tell(const char *message)
{
	if (!atomic_flag_test_and_set(&told))
		ckt_log_user("NVML: %s", message);
	else
		ckt_debug("NVML: %s", message);
}

unsigned ckt_nvml_servers(void)
{
	int saved = errno;
	pthread_once(&settings_once, ckt_settings_load);
	if (ckt_settings.address_error[0])
		tell(ckt_settings.address_error);
	errno = saved;
	return ckt_settings.address_error[0] ? 0 : ckt_settings.address_count;
}

int ckt_nvml_call(unsigned server, uint32_t proc, xdrproc_t xdr_args, void *args, xdrproc_t xdr_res,
	void *ret)
{
	char message[2 * CKT_MESSAGE_MAX + CKT_ADDRESS_TEXT_MAX] = "";
	int fd, saved = errno;
	pthread_once(&settings_once, ckt_settings_load);
	int64_t now_ms = ckt_net_now_ms(), last_ms = atomic_load(&failed_ms[server]);
	const char *address = ckt_settings_address(server);
	if (last_ms && now_ms - last_ms < FAILURE_KEPT_MS) {
		errno = saved;
		return CKT_NVML_DRIVER_NOT_LOADED;
	}
	/* One deadline covers the connection and the call. */
	int64_t deadline_ms = now_ms + ckt_settings.connect_timeout_ms;
	int result = ckt_conn_control_connect(address, deadline_ms, &fd, message, sizeof message);
	if (!result) {
		result = ckt_net_call(fd, CRICKET_CONTROL_PROG, proc, xdr_args, args, xdr_res, ret,
			deadline_ms, -1);
		if (result)
			snprintf(message, sizeof message, "the server at %s does not answer: %s%s",
				address, strerror(-result),
				result == -ECONNRESET || result == -EPROTO
					? "; the server may be older than this client"
					: "");
		close(fd);
	}
	if (result)
		tell(message);
	atomic_store(&failed_ms[server], result ? ckt_net_now_ms() : 0);
	errno = saved;
	return result ? CKT_NVML_DRIVER_NOT_LOADED : CKT_NVML_SUCCESS;
}
