/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The text of a server's fingerprint, as ssh writes it: "SHA256:" and the SHA-256 of the certificate's
 * SubjectPublicKeyInfo in base64 without padding.  Threading: no shared state.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum {
	CKT_FINGERPRINT_SIZE = 32,
	/* "SHA256:", 43 characters of base64, the end */
	CKT_FINGERPRINT_TEXT = 7 + 43 + 1,
};

void ckt_fingerprint_text(
	const uint8_t fingerprint[CKT_FINGERPRINT_SIZE], char ret_text[CKT_FINGERPRINT_TEXT]);
/* False: not such a text. */
bool ckt_fingerprint_parse(const char *text, uint8_t ret_fingerprint[CKT_FINGERPRINT_SIZE]);
