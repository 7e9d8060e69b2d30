/* Calls to a worker that are under way; the part of session.c that knows records.  Threading: the loop's thread. */
#pragma once

#include "session.h"

/* 0 or -errno. */
int ckt_request_connect(struct ckt_session *session, enum ckt_link_kind kind);
/* Tells everyone who waits that there will be no answer. */
void ckt_request_fail_all(struct ckt_session *session, int error);
