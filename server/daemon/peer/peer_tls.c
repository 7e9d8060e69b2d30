/* SPDX-License-Identifier: Apache-2.0 */
/* TLS of a peer; see peer_tls.h. */
#include "server/daemon/peer/peer_tls.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/log.h"
#include "rpc/starttls.h"
#include "server/daemon/log_limited.h"
#include "server/daemon/peer/peer.h"
#include "server/daemon/peer/peer_audit.h"
#include "server/daemon/peer/peer_certificate.h"
#include "server/daemon/tls/tls_process.h"

bool ckt_peer_offers_tls(const struct ckt_peer *peer)
{
	return ckt_tls_is_on(peer->server) && peer->who.kind != CKT_PEER_UNIX && !peer->secured;
}

bool ckt_peer_lacks_tls(const struct ckt_peer *peer)
{
	return ckt_peer_offers_tls(peer);
}

/* The socket for an end of a pair.  The peer is gone if that fails. */
static void give_away(struct ckt_peer *peer)
{
	int plain = -1, tcp = ckt_record_stream_detach(&peer->stream);
	int result = ckt_tls_process_take(peer->server, tcp, &plain);
	close(tcp);
	if (!result) {
		result = ckt_record_stream_init(&peer->stream, &peer->server->loop, plain);
		if (result)
			close(plain);
	}
	if (!result) {
		peer->phase = CKT_PEER_SECURING;
		peer->secured = true;
		peer->stream.max_bytes = CKT_TLS_FACTS_MAX;
		peer->stream.take_fds = false;
		return;
	}
	ckt_daemon_log_limited(peer->server, CKT_LIMIT_REFUSED, "%s: cannot begin TLS: %s",
		peer->who.text, strerror(-result));
	ckt_peer_close(peer);
}

static void begin(struct ckt_peer *peer, uint32_t xid)
{
	uint8_t *reply = malloc(CKT_STARTTLS_REPLY_SIZE);
	if (reply) {
		ckt_starttls_reply_put(reply, xid);
		ckt_record_stream_send(&peer->stream, reply, CKT_STARTTLS_REPLY_SIZE, -1);
	}
	/* A peer that has not even read the greeting is dropped. */
	if (!reply || ckt_record_stream_queued(&peer->stream))
		ckt_peer_close(peer);
	else
		give_away(peer);
}

static void secured(struct ckt_peer *peer, const uint8_t *data, size_t size)
{
	struct ckt_tls_facts facts;
	if (!ckt_tls_facts_get(data, size, &facts)) {
		ckt_error("%s: the process with the TLS key says nonsense", peer->who.text);
		ckt_peer_close(peer);
		return;
	}
	if (facts.error) {
		char why[CKT_TLS_WHY_MAX];
		snprintf(why, sizeof why, "%.*s", (int)facts.certificate_size,
			(const char *)facts.certificate);
		ckt_daemon_log_limited(
			peer->server, CKT_LIMIT_REFUSED, "%s: %s", peer->who.text, why);
		ckt_peer_audit_refused(peer, "hello", why);
		ckt_peer_close(peer);
		return;
	}
	if (getrandom(peer->nonce, sizeof peer->nonce, 0) != sizeof peer->nonce) {
		ckt_peer_close(peer);
		return;
	}
	ckt_peer_certificate_take(peer, facts.certificate, facts.certificate_size);
	peer->phase = CKT_PEER_GREETED;
	peer->stream.max_bytes = CKT_HELLO_MAX;
	ckt_peer_greet(peer);
	ckt_starttls_bind(peer->nonce, facts.exporter);
	explicit_bzero(facts.exporter, sizeof facts.exporter);
}

bool ckt_peer_tls_record(struct ckt_peer *peer, const uint8_t *data, size_t size)
{
	uint32_t xid;
	if (peer->phase == CKT_PEER_SECURING) {
		secured(peer, data, size);
		return true;
	}
	if (!ckt_peer_offers_tls(peer) || !ckt_starttls_call_get(data, size, &xid))
		return false;
	begin(peer, xid);
	return true;
}
