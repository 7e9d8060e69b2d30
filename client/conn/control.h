/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A connection of kind CONTROL to a server, for questions that need no session: which GPUs it has,
 * and NVML's. Threading: any.  Precondition: the settings are loaded.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* 0, or -errno and a sentence that names the server.  The caller owns the descriptor. */
int ckt_conn_control_connect(const char *address_text, int64_t deadline_ms, int *ret_fd,
	char *ret_message, size_t message_size);
