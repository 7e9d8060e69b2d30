/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Certificates that their authorities have revoked: the lists in one PEM file (crl.pem), each signed by an
 * authority of another (ca.pem).
 *
 * A list whose next update is past counts on: it is old, but not wrong, and without it everybody
 * whom it names would be back.  certificate_expiry.h warns of it.
 *
 * Errors: 0 or -errno with a sentence that names the file.  Threading: no shared state.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rpc/certificate.h"

struct ckt_revoked {
	uint8_t serial[CKT_CERTIFICATE_SERIAL_MAX];
	uint8_t size;
};

struct ckt_revocations {
	struct ckt_revoked *revoked; /* sorted */
	size_t count;
};

enum { CKT_REVOKED_MAX = 65536 };

int ckt_revocations_read(const char *path, const char *authorities,
	struct ckt_revocations *ret_revocations, char *ret_message, size_t message_size);
void ckt_revocations_free(struct ckt_revocations *revocations);
bool ckt_revocations_have(
	const struct ckt_revocations *revocations, const uint8_t *serial, size_t size);
