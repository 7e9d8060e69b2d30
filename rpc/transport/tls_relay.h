/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Carries the bytes of a TLS connection to whoever needs a plain descriptor: the server and its
 * workers, which never hold a key, and the callers of control calls.
 *
 *	peer ==TCP==> TLS transport --64 KiB--> one end of ckt_net_pair | the other end: the owner's
 *	              TLS transport <--64 KiB--
 *
 * Each side's end of stream reaches the other one after all bytes.  A stream that was cut ends both
 * sides at once.  When the plain end is gone, the rest that goes to the peer has CKT_NET_VANISHED_MS.
 */
#pragma once

#include "rpc/transport/transport.h"

/* Until both directions are over.  Closes both.  0 or -errno. */
int ckt_tls_relay(struct ckt_transport *tls, struct ckt_transport *plain);
/*
 * The same in a thread of this process.  *ret_fd: the plain end, the caller's.  Takes *tls over on
 * success alone.
 */
int ckt_tls_relay_start(struct ckt_transport *tls, int *ret_fd);
