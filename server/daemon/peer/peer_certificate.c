/* SPDX-License-Identifier: Apache-2.0 */
/* The certificate that a peer showed; see peer_certificate.h. */
#include "server/daemon/peer/peer_certificate.h"

#include <errno.h>
#include <stdio.h>

#include "base/log.h"

int ckt_peer_certificate_take(struct ckt_peer *peer, const void *der, size_t size_bytes,
	char *ret_message, size_t message_size)
{
	struct ckt_certificate_holder *holder;
	/* Of a UNIX socket the kernel knows the user, whom no certificate may change. */
	if (peer->who.kind == CKT_PEER_UNIX || peer->certificate) {
		snprintf(ret_message, message_size, "a certificate has no place here");
		return -EPROTO;
	}
	int result = ckt_certificates_take(
		peer->server, der, size_bytes, &holder, ret_message, message_size);
	if (result)
		return result;
	peer->certificate = holder;
	ckt_debug("%s: certificate of '%s'", peer->who.text, holder->entry.name);
	return 0;
}

const struct ckt_token_entry *ckt_peer_certificate_entry(const struct ckt_peer *peer)
{
	return peer->certificate ? ckt_certificate_entry(peer->server, peer->certificate) : NULL;
}

void ckt_peer_certificate_drop(struct ckt_peer *peer)
{
	ckt_certificates_give(peer->certificate);
	peer->certificate = NULL;
}
