/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A connection of kind CONTROL to a server, for questions that need no session: its list of GPUs,
 * and NVML.  Threading: any thread.  Precondition: the settings are loaded.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* 0, or -errno with a message that names the server.  The caller owns the descriptor. */
int ckt_conn_control_connect(const char *address_text, int64_t deadline_ms, int *ret_fd,
	char *ret_message, size_t message_size);
