/* SPDX-License-Identifier: Apache-2.0 */
/* rpc/fingerprint.h: one text a fingerprint, and nothing else is one. */
#include <string.h>

#include "rpc/fingerprint.h"
#include "tests/unit/suite.h"

static void test_both_ways(void)
{
	uint8_t fingerprint[CKT_FINGERPRINT_SIZE], again[CKT_FINGERPRINT_SIZE];
	char text[CKT_FINGERPRINT_TEXT];
	memset(fingerprint, 0, sizeof fingerprint);
	ckt_fingerprint_text(fingerprint, text);
	TEXT(text, "SHA256:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA");
	for (unsigned i = 0; i < sizeof fingerprint; i++)
		fingerprint[i] = (uint8_t)(i * 37 + 200);
	ckt_fingerprint_text(fingerprint, text);
	IS(strlen(text), CKT_FINGERPRINT_TEXT - 1);
	MUST(ckt_fingerprint_parse(text, again), true);
	IS(memcmp(fingerprint, again, sizeof again), 0);
}

static void test_bad(void)
{
	static const char *const texts[] = {"", "SHA256:", "SHA256:AAAA",
		"SHA256:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=",
		"SHA512:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
		"sha256:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
		/* bits behind the last one */
		"SHA256:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAB",
		"SHA256:AAAA AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
		"SHA256:AAAA\nAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
		"SHA256:AAA-AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
		"SHA256:AAA=AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"};
	uint8_t fingerprint[CKT_FINGERPRINT_SIZE] = {7};
	for (unsigned i = 0; i < COUNT(texts); i++)
		NO(ckt_fingerprint_parse(texts[i], fingerprint));
	IS(fingerprint[0], 7);
}

UNIT_SUITE(fingerprint, {"both_ways", test_both_ways}, {"bad", test_bad})
