/* SPDX-License-Identifier: Apache-2.0 */
/* Libraries that workers open for their sessions.  Precondition: the driver is chosen. */
#pragma once

#include <stddef.h>

struct ckt_server;

int ckt_daemon_libraries_init(struct ckt_server *server, char *ret_message, size_t message_size);
void ckt_daemon_libraries_fini(struct ckt_server *server);
