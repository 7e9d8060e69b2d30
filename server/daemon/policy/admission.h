/*
 * Connections that have said nothing: who gives way when there are too many, and who has to wait
 * after a wrong token.  When they are full, the source that has most of them gives way; how many is
 * too many says the policy.
 *
 * Threading: the loop's thread.
 */
#pragma once

#include <stdbool.h>

#include "server/daemon/policy/identity.h"

struct ckt_server;

/*
 * A connection was accepted as this descriptor.  True: it may say hello; somebody else's may have
 * been dropped for it.  Every true is followed by one ckt_admit_greeted, once the peer said hello
 * or went.
 */
bool ckt_admit_connection(struct ckt_server *server, const struct ckt_identity *source, int fd);
void ckt_admit_greeted(struct ckt_server *server, const struct ckt_identity *source);
/*
 * There was no descriptor for one: gives some back, from who has most connections that have said
 * nothing.
 */
void ckt_admit_no_descriptor(struct ckt_server *server);
/*
 * How long the answer to a wrong token or secret is to wait: more with each from that address, 0
 * for the first few.
 */
unsigned ckt_admit_failed(struct ckt_server *server, const struct ckt_identity *source);

/* Frees what is remembered. */
void ckt_admission_fini(struct ckt_server *server);
