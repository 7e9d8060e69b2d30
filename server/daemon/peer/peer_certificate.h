/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The certificate that a peer showed in its TLS handshake.  What TLS calls, once: after the
 * handshake has checked who signed it, and before the greeting inside.
 *
 * Threading: the loop's thread.
 */
#pragma once

#include <stddef.h>

#include "server/daemon/peer/peer.h"

/*
 * The peer is the user that the certificate names from now on; a token in its hello counts instead.
 * -ENOENT: it names no user, and the peer stays who it was.  Other -errno: the peer must not go on;
 * ret_message says why.
 */
int ckt_peer_certificate_take(struct ckt_peer *peer, const void *der, size_t size_bytes,
	char *ret_message, size_t message_size);
/* Its rights now; NULL: it showed none, or that one is not valid any more. */
const struct ckt_token_entry *ckt_peer_certificate_entry(const struct ckt_peer *peer);
void ckt_peer_certificate_drop(struct ckt_peer *peer);
