/* SPDX-License-Identifier: Apache-2.0 */
/* The file in which the client of a session looks for its server. */
#pragma once

#include <stddef.h>

/* Writes the file; 0, or -errno with the reason. */
int ckt_ctl_state_write(
	const char *session, const char *address, char *ret_message, size_t message_size);
int ckt_ctl_state_write_in(const char *state_directory, const char *session, const char *text,
	char *ret_message, size_t message_size);
/* Makes the directory and those above it, for this user only. */
int ckt_ctl_state_directory(char *path);
