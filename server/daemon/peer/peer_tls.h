/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TLS of a peer.  After its greeting it may ask for TLS instead of saying hello (rpc/starttls.h).
 * Then the process with the key takes the TCP socket (tls/tls_process.h), the peer goes on with the
 * plain end of a pair, and is greeted again with a nonce that the channel binds.  What is known of its
 * address stays; the pair proves nothing.
 *
 * The peer counts as one without hello all the while.  Threading: the loop's thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ckt_peer;

#define CKT_PEER_NEEDS_TLS                                                            \
	"the server takes no connection without TLS: set CRICKET_TLS_CA to the file " \
	"with its authority's certificate"

bool ckt_peer_offers_tls(const struct ckt_peer *peer);
/* Whether its hello is refused because it came in the clear. */
bool ckt_peer_lacks_tls(const struct ckt_peer *peer);
/* Whether the record was about TLS: then all is done, and the peer may be gone. */
bool ckt_peer_tls_record(struct ckt_peer *peer, const uint8_t *data, size_t size);
/* Sends the greeting.  In peer.c. */
void ckt_peer_greet(struct ckt_peer *peer);
