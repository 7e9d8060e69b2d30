/* SPDX-License-Identifier: Apache-2.0 */
/* server/daemon/tls/tls_facts.c: what is said of a TLS connection before its first byte. */
#include <errno.h>
#include <string.h>

#include "server/daemon/tls/tls_process.h"
#include "tests/unit/suite.h"

static void test_facts(void)
{
	static const uint8_t certificate[7] = "abcdefg";
	uint8_t record[CKT_TLS_FACTS_MAX];
	struct ckt_tls_facts in = {.error = -EPROTO,
				     .exporter = {1, 2, 3},
				     .certificate = certificate,
				     .certificate_size = sizeof certificate},
			     out = {0};
	size_t size = (size_t)(ckt_tls_facts_put(record, &in) - record);
	MUST(ckt_tls_facts_get(record, size, &out), true);
	IS(out.error, -EPROTO);
	IS(memcmp(out.exporter, in.exporter, sizeof in.exporter), 0);
	IS(out.certificate_size, sizeof certificate);
	IS(memcmp(out.certificate, certificate, sizeof certificate), 0);
	for (size_t n = 0; n < size; n++)
		NO(ckt_tls_facts_get(record, n, &out));
	/* A certificate that is too long, and an error that is none. */
	record[4 + CKT_TLS_EXPORTER_SIZE] = 1;
	NO(ckt_tls_facts_get(record, size, &out));
	record[4 + CKT_TLS_EXPORTER_SIZE] = 0;
	record[0] = 1;
	NO(ckt_tls_facts_get(record, size, &out));
}

UNIT_SUITE(tls_facts, {"facts", test_facts})
