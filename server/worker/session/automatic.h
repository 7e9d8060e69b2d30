/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The worker's part in the images that its server takes by itself (server/daemon/durable/automatic.h):
 * which command is the last in an image, whose copy a restored session is, and the lock that says
 * that the session lives.
 *
 * Threading: any thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct ckt_request;
struct ckt_save;
struct ckt_worker;

/*
 * AUTOMATIC: takes over the lock that comes along, which stays open as long as the process lives.
 * 0 or -errno, as all handlers.
 */
int ckt_automatic_serve(struct ckt_request *request);
/* AFRESH: the session begins again from nothing. */
int ckt_automatic_serve_afresh(struct ckt_request *request);
/*
 * A session without an image starts: if it begins again, it gets who it was.  Precondition:
 * mail_lock held, and no client is here.
 */
void ckt_automatic_started(struct ckt_worker *worker);
/* An image was written. */
void ckt_automatic_saved(const struct ckt_save *save);
/*
 * The session was restored: its generation and copy, as the server wants them.  Precondition: the
 * image's are set, and no client is here.
 */
void ckt_automatic_restored(struct ckt_worker *worker);
/* The worker ends, and the session with it: nobody shall start it again.  Once, just before _exit. */
void ckt_automatic_over(void);
/* Whether that copy ran here last, and lives no more; false for 0. */
bool ckt_automatic_was(uint64_t copy);
