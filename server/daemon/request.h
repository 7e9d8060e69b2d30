/* Calls to a worker that are under way; the part of session.c that knows records.  Threading: the loop's thread. */
#pragma once

#include "session.h"

/* The stream callbacks of session->link. */
void ckt_request_record(struct ckt_stream *stream, uint8_t *data, size_t size, int passed_fd);
void ckt_request_closed(struct ckt_stream *stream, int error);
/* Connects session->link when it is not.  0 or -errno. */
int ckt_request_connect(struct ckt_session *session);
/* Tells everyone who waits that there will be no answer. */
void ckt_request_fail_all(struct ckt_session *session, int error);
