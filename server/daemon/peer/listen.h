/* SPDX-License-Identifier: Apache-2.0 */
/* Sockets and files that the server owns.  -errno with the reason in ret_message. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct ckt_server;

int ckt_listen_open(struct ckt_server *server, char *ret_message, size_t message_size);
int ckt_listen_write_address_file(
	struct ckt_server *server, char *ret_message, size_t message_size);
/* Whether only this host can reach the listening TCP socket. */
bool ckt_listen_is_loopback(int fd);
void ckt_listen_close(struct ckt_server *server);
