/* SPDX-License-Identifier: Apache-2.0 */
/* Fingerprints as text; see fingerprint.h. */
#include "rpc/fingerprint.h"

#include <nettle/base64.h>
#include <stdio.h>
#include <string.h>

static const char mark[] = "SHA256:";

enum {
	MARK = sizeof mark - 1,
	DIGITS = CKT_FINGERPRINT_TEXT - 1 - MARK,
	PADDED = BASE64_ENCODE_RAW_LENGTH(CKT_FINGERPRINT_SIZE),
};

_Static_assert((int)DIGITS + 1 == (int)PADDED, "one character of padding");

void ckt_fingerprint_text(
	const uint8_t fingerprint[CKT_FINGERPRINT_SIZE], char ret_text[CKT_FINGERPRINT_TEXT])
{
	char digits[PADDED];
	base64_encode_raw(digits, CKT_FINGERPRINT_SIZE, fingerprint);
	memcpy(ret_text, mark, MARK);
	memcpy(ret_text + MARK, digits, DIGITS);
	ret_text[CKT_FINGERPRINT_TEXT - 1] = 0;
}

bool ckt_fingerprint_parse(const char *text, uint8_t ret_fingerprint[CKT_FINGERPRINT_SIZE])
{
	struct base64_decode_ctx decode;
	char padded[PADDED], again[CKT_FINGERPRINT_TEXT];
	uint8_t bytes[BASE64_DECODE_LENGTH(PADDED)];
	size_t size = sizeof bytes;
	if (strlen(text) != CKT_FINGERPRINT_TEXT - 1 || strncmp(text, mark, MARK) != 0)
		return false;
	memcpy(padded, text + MARK, DIGITS);
	padded[DIGITS] = '=';
	base64_decode_init(&decode);
	if (!base64_decode_update(&decode, &size, bytes, sizeof padded, padded) ||
		!base64_decode_final(&decode) || size != CKT_FINGERPRINT_SIZE)
		return false;
	/* Blanks in it, or bits behind the last one: one fingerprint has one text. */
	ckt_fingerprint_text(bytes, again);
	if (strcmp(text, again) != 0)
		return false;
	memcpy(ret_fingerprint, bytes, CKT_FINGERPRINT_SIZE);
	return true;
}
