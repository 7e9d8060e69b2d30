/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The certificate that a peer showed in its TLS handshake.  TLS hands it over once, after the
 * handshake has checked who signed it, and before the greeting inside.
 *
 * Threading: the loop's thread.
 */
#pragma once

#include <stddef.h>

#include "server/daemon/peer/peer.h"

/*
 * The peer is the user that the certificate (DER) names from now on; a token in its hello counts
 * instead.  size_bytes 0: it showed none; that and a certificate that names no user change nothing. A
 * certificate that is malformed, expired or revoked is logged, and the peer's hello is refused.
 */
void ckt_peer_certificate_take(struct ckt_peer *peer, const void *der, size_t size_bytes);
/* Its rights now; NULL: it showed none, or that one is not valid any more. */
const struct ckt_token_entry *ckt_peer_certificate_entry(const struct ckt_peer *peer);
void ckt_peer_certificate_drop(struct ckt_peer *peer);
