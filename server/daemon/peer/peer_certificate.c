/* SPDX-License-Identifier: Apache-2.0 */
/* The certificate that a peer showed; see peer_certificate.h. */
#include "server/daemon/peer/peer_certificate.h"

#include <errno.h>

#include "base/log.h"

void ckt_peer_certificate_take(struct ckt_peer *peer, const void *der, size_t size_bytes)
{
	struct ckt_certificate_holder *holder;
	/* Of a UNIX socket the kernel knows the user, whom no certificate may change. */
	if (!size_bytes || peer->who.kind == CKT_PEER_UNIX || peer->holder)
		return;
	int result = ckt_certificates_take(
		peer->server, der, size_bytes, &holder, peer->denial, sizeof peer->denial);
	if (!result) {
		peer->holder = holder;
		ckt_debug("%s: certificate of '%s'", peer->who.text, holder->entry.name);
	} else if (result != -ENOENT) {
		peer->holder_refused = true;
	}
}

const struct ckt_token_entry *ckt_peer_certificate_entry(const struct ckt_peer *peer)
{
	return peer->holder ? ckt_certificate_entry(peer->server, peer->holder) : NULL;
}

void ckt_peer_certificate_drop(struct ckt_peer *peer)
{
	ckt_certificates_give(peer->holder);
	peer->holder = NULL;
}
