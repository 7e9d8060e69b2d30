/* SPDX-License-Identifier: Apache-2.0 */
/* How cricketctl certificate trust asks a server for its key. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "rpc/fingerprint.h"

/*
 * Connects with TLS, whoever the server is, and gives back the fingerprint of the key that it shows.
 * 0 or -errno with a sentence.  NULL: this program has no TLS; set before the subcommand runs.
 */
extern int (*ckt_ctl_ask_fingerprint)(const char *address,
	uint8_t ret_fingerprint[CKT_FINGERPRINT_SIZE], char *ret_message, size_t message_size);
/* That with TLS. */
int ckt_ctl_ask_fingerprint_by_tls(const char *address,
	uint8_t ret_fingerprint[CKT_FINGERPRINT_SIZE], char *ret_message, size_t message_size);
