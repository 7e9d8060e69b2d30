/* One question to the server; see internal.h. */
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "client/conn/settings.h"
#include "client/nvml/internal.h"
#include "rpc/hello.h"
#include "rpc/log.h"
#include "rpc/net.h"

/* After a server that could not be reached: libraries ask several times in a row, and each would wait as long again. */
enum { FAILURE_KEPT_MS = 10000 };

static pthread_once_t settings_once = PTHREAD_ONCE_INIT;
static _Atomic int64_t failed_ms;	/* when; 0: never */
static atomic_flag told = ATOMIC_FLAG_INIT;

static int connect_server(int64_t deadline_ms, int *ret_fd, char *ret_message, size_t message_size)
{
	struct ckt_address address;
	struct sockaddr_storage peer;
	socklen_t size = sizeof peer;
	char program[CKT_NAME_MAX], cause[CKT_MESSAGE_MAX];
	int fd, result = ckt_address_parse(ckt_settings.address, &address, ret_message, message_size);
	if (result)
		return result;
	result = ckt_net_connect(&address, (int)(deadline_ms - ckt_net_now_ms()), &fd, cause, sizeof cause);
	if (result) {
		snprintf(ret_message, message_size, "no server at %s: %s%s", ckt_settings.address, cause,
			 ckt_settings.address_given ? "" : "; set REMOTE_GPU_ADDRESS to a host that runs cricket-server");
		return result;
	}
	bool is_unix = getpeername(fd, (struct sockaddr *)&peer, &size) == 0 && peer.ss_family == AF_UNIX;
	ckt_program_name(program, sizeof program);
	*ret_message = 0;
	result = ckt_hello_control(fd, is_unix, program, ckt_settings.token_file, deadline_ms, ret_message, message_size);
	if (!result) {
		*ret_fd = fd;
		return 0;
	}
	close(fd);
	if (!*ret_message)
		snprintf(ret_message, message_size, "%s during the hello at %s; is this really a cricket-server's port?", strerror(-result),
			 ckt_settings.address);
	return result;
}

static void tell(const char *message)
{
	if (!atomic_flag_test_and_set(&told))
		ckt_log_user("NVML: %s", message);
	else
		ckt_debug("NVML: %s", message);
}

int ckt_nvml_call(uint32_t proc, xdrproc_t xdr_args, void *args, xdrproc_t xdr_res, void *ret)
{
	char message[2 * CKT_MESSAGE_MAX + CKT_ADDRESS_TEXT_MAX] = "";
	int fd, saved = errno;
	pthread_once(&settings_once, ckt_settings_load);
	int64_t now_ms = ckt_net_now_ms(), last_ms = atomic_load(&failed_ms);
	if (last_ms && now_ms - last_ms < FAILURE_KEPT_MS) {
		errno = saved;
		return CKT_NVML_DRIVER_NOT_LOADED;
	}
	/* One deadline for all of it. */
	int64_t deadline_ms = now_ms + ckt_settings.connect_timeout_ms;
	int result = connect_server(deadline_ms, &fd, message, sizeof message);
	if (!result) {
		result = ckt_net_call(fd, CRICKET_CONTROL_PROG, proc, xdr_args, args, xdr_res, ret, deadline_ms, -1);
		if (result)
			snprintf(message, sizeof message, "the server at %s does not answer: %s%s", ckt_settings.address, strerror(-result),
				 result == -ECONNRESET || result == -EPROTO ? "; is it older than this client?" : "");
		close(fd);
	}
	if (result)
		tell(message);
	atomic_store(&failed_ms, result ? ckt_net_now_ms() : 0);
	errno = saved;
	return result ? CKT_NVML_DRIVER_NOT_LOADED : CKT_NVML_SUCCESS;
}
