/* SPDX-License-Identifier: Apache-2.0 */
/* What is said about a TLS connection before its first byte; see tls_process.h. */
#include <string.h>

#include "rpc/wire.h"
#include "server/daemon/tls/tls_process.h"

uint8_t *ckt_tls_facts_put(uint8_t *p, const struct ckt_tls_facts *facts)
{
	p = ckt_put_u32(p, (uint32_t)-facts->error);
	p = ckt_put_fixed(p, facts->exporter, sizeof facts->exporter);
	return ckt_put_opaque(p, facts->certificate, facts->certificate_size);
}

bool ckt_tls_facts_get(const uint8_t *data, size_t size, struct ckt_tls_facts *ret_facts)
{
	struct ckt_cursor c = {.p = data, .end = data + size};
	uint32_t error = ckt_get_u32(&c);
	const uint8_t *exporter = ckt_get_fixed(&c, sizeof ret_facts->exporter);
	uint32_t length = 0;
	const uint8_t *certificate = ckt_get_opaque(&c, CKT_TLS_CERTIFICATE_MAX, &length);
	if (c.bad || c.p != c.end || error > 4095)
		return false;
	ret_facts->error = -(int)error;
	memcpy(ret_facts->exporter, exporter, sizeof ret_facts->exporter);
	ret_facts->certificate = certificate;
	ret_facts->certificate_size = length;
	return true;
}
