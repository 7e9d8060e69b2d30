/* SPDX-License-Identifier: Apache-2.0 */
/* Connections of kind CONTROL; see control.h. */
#include "client/conn/control.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "client/conn/settings.h"
#include "rpc/hello.h"
#include "rpc/net.h"
#include "rpc/secure.h"
#include "rpc/session.h"

int ckt_conn_control_connect(const char *address_text, int64_t deadline_ms, int *ret_fd,
	char *ret_message, size_t message_size)
{
	struct ckt_address address;
	char program[CKT_NAME_MAX], cause[CKT_MESSAGE_MAX], server[CKT_SECURE_NAME_MAX];
	int fd, result = ckt_address_parse(address_text, &address, ret_message, message_size);
	if (result)
		return result;
	result = ckt_net_connect(
		&address, (int)(deadline_ms - ckt_net_now_ms()), &fd, cause, sizeof cause);
	if (result) {
		snprintf(ret_message, message_size, "no server at %s: %s%s", address_text, cause,
			ckt_settings.address_given
				? ""
				: "; set REMOTE_GPU_ADDRESS to a host that runs cricket-server");
		return result;
	}
	bool is_unix = ckt_net_is_local(fd);
	ckt_program_name(program, sizeof program);
	*ret_message = 0;
	ckt_secure_server_name(address_text, server);
	result = ckt_hello_control(&fd, server, is_unix, program, ckt_settings.token_file,
		deadline_ms, ret_message, message_size);
	if (!result) {
		*ret_fd = fd;
		return 0;
	}
	if (fd >= 0)
		close(fd);
	if (!*ret_message)
		snprintf(ret_message, message_size,
			"%s during the hello at %s; check that this is a "
			"cricket-server's port",
			strerror(-result), address_text);
	return result;
}
