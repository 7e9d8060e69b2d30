/* SPDX-License-Identifier: Apache-2.0 */
/* The audit log; see audit.h. */
#include "server/daemon/audit/audit.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "rpc/net.h"
#include "server/daemon/audit/audit_file.h"
#include "server/daemon/audit/audit_line.h"
#include "server/daemon/audit/audit_sources.h"
#include "server/daemon/audit/journal.h"
#include "server/daemon/loop.h"

struct ckt_audit {
	struct ckt_loop *loop;
	struct ckt_timer timer; /* set while sources are counted */
	struct ckt_audit_sources sources;
	pthread_mutex_t lock; /* of what follows */
	unsigned refs;
	/* One of them, until the end. */
	struct ckt_audit_file *file;
	struct ckt_audit_journal *journal;
};

static void write_counted(struct ckt_audit *audit, int64_t now_ms)
{
	struct ckt_audit_record record;
	while (ckt_audit_sources_due(&audit->sources, now_ms, &record))
		ckt_audit_write(audit, &record);
}

static void second_over(struct ckt_timer *timer)
{
	struct ckt_audit *audit = CKT_CONTAINER(timer, struct ckt_audit, timer);
	write_counted(audit, ckt_net_now_ms());
	for (unsigned i = 0; i <= CKT_AUDIT_SOURCES; i++)
		if (audit->sources.places[i].count) {
			ckt_timer_set(audit->loop, timer, CKT_AUDIT_SOURCE_MS);
			return;
		}
}

int ckt_audit_open(const char *where, struct ckt_loop *loop, struct ckt_audit **ret_audit,
	char *ret_message, size_t message_size)
{
	struct ckt_audit *audit = calloc(1, sizeof *audit);
	if (!audit) {
		snprintf(ret_message, message_size, "--audit: out of memory");
		return -ENOMEM;
	}
	int result = strcmp(where, CKT_AUDIT_JOURNAL) == 0
		? ckt_audit_journal_open(
			  CKT_AUDIT_JOURNAL_SOCKET, &audit->journal, ret_message, message_size)
		: ckt_audit_file_open(where, &audit->file, ret_message, message_size);
	if (result) {
		free(audit);
		return result;
	}
	audit->loop = loop;
	audit->refs = 1;
	audit->timer.fire = second_over;
	pthread_mutex_init(&audit->lock, NULL);
	*ret_audit = audit;
	return 0;
}

void ckt_audit_close(struct ckt_audit *audit)
{
	if (!audit)
		return;
	ckt_timer_clear(&audit->timer);
	write_counted(audit, INT64_MAX - CKT_AUDIT_SOURCE_MS);
	pthread_mutex_lock(&audit->lock);
	struct ckt_audit_file *file = audit->file;
	struct ckt_audit_journal *journal = audit->journal;
	audit->file = NULL;
	audit->journal = NULL;
	pthread_mutex_unlock(&audit->lock);
	ckt_audit_file_close(file);
	ckt_audit_journal_close(journal);
	ckt_audit_unref(audit);
}

struct ckt_audit *ckt_audit_ref(struct ckt_audit *audit)
{
	if (!audit)
		return NULL;
	pthread_mutex_lock(&audit->lock);
	audit->refs++;
	pthread_mutex_unlock(&audit->lock);
	return audit;
}

void ckt_audit_unref(struct ckt_audit *audit)
{
	if (!audit)
		return;
	pthread_mutex_lock(&audit->lock);
	bool is_last = --audit->refs == 0;
	pthread_mutex_unlock(&audit->lock);
	if (!is_last)
		return;
	pthread_mutex_destroy(&audit->lock);
	free(audit);
}

void ckt_audit_reopen(struct ckt_audit *audit)
{
	if (audit && audit->file)
		ckt_audit_file_reopen(audit->file);
}

void ckt_audit_write(struct ckt_audit *audit, const struct ckt_audit_record *record)
{
	struct timespec now;
	if (!audit)
		return;
	clock_gettime(CLOCK_REALTIME, &now);
	json_t *object = ckt_audit_line_object(record, &now);
	pthread_mutex_lock(&audit->lock);
	if (audit->file)
		ckt_audit_file_put(audit->file, object ? ckt_audit_line_text(object) : NULL);
	else if (audit->journal)
		ckt_audit_journal_put(audit->journal, object);
	pthread_mutex_unlock(&audit->lock);
	json_decref(object);
}

void ckt_audit_write_limited(struct ckt_audit *audit, const struct ckt_identity *source,
	unsigned burst, const struct ckt_audit_record *record)
{
	if (!audit)
		return;
	if (ckt_audit_sources_take(&audit->sources, source, burst, record, ckt_net_now_ms()))
		ckt_audit_write(audit, record);
	else if (!audit->timer.link)
		ckt_timer_set(audit->loop, &audit->timer, CKT_AUDIT_SOURCE_MS);
}
