/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages to and from CRIU: protocol buffers as criu_rpc.proto describes them, within fixed sizes.
 *
 * Errors: -errno.  Threading: any.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "ctl/client/criu_rpc.pb-c.h"

/* What we read of a response; 0, false or empty where CRIU did not send it. */
struct ckt_criu_response {
	unsigned type;
	bool success;
	int error;
	pid_t pid;        /* of the restored process */
	unsigned version; /* major * 10000 + minor * 100 + sublevel, the last two below 100 */
	char script[64];  /* which notice it is */
	char message[256];
};

/* The number of bytes; 0 if there are more than size, and then nothing is written. */
size_t ckt_ctl_criu_request_encode(
	const CktCtlCriu__Request *request, uint8_t *ret_data, size_t size);
/* -EPROTO for a malformed message: *ret_response is all zero then. */
int ckt_ctl_criu_response_decode(
	const uint8_t *data, size_t size, struct ckt_criu_response *ret_response);
