/* SPDX-License-Identifier: Apache-2.0 */
/* Certificates that end soon; see certificate_expiry.h. */
#include "server/daemon/policy/certificate_expiry.h"

#include <errno.h>
#include <stddef.h>
#include <unistd.h>

#include "base/log.h"
#include "rpc/certificate.h"
#include "server/daemon/server.h"

enum { HOUR_MS = 3600 * 1000, DAY_S = 86400 };

/* LATENESS: 0: in time; then fewer than so many days are left; at last none. */
static const int days[] = {30, 7, 1, 0};
enum { STEPS = sizeof days / sizeof *days };

const char *ckt_expiring_name(enum ckt_expiring which)
{
	static const char *const names[CKT_EXPIRINGS] = {"server", "authority", "revocations"};
	return names[which];
}

static const char *path_of(const struct ckt_server *server, enum ckt_expiring which)
{
	const struct ckt_certificate_paths *paths = &server->certificates.paths;
	return which == CKT_EXPIRING_SERVER       ? paths->certificate
		: which == CKT_EXPIRING_AUTHORITY ? paths->authority
						  : paths->revocations;
}

bool ckt_certificate_expiry_of(
	const struct ckt_server *server, enum ckt_expiring which, time_t *ret_end)
{
	struct ckt_certificate certificate;
	char message[CKT_MESSAGE_MAX];
	const char *path = path_of(server, which);
	if (!path)
		return false;
	if (which == CKT_EXPIRING_REVOCATIONS)
		return ckt_certificate_list_next(path, ret_end, message, sizeof message) == 0;
	if (ckt_certificate_file_read(path, &certificate, message, sizeof message))
		return false;
	*ret_end = certificate.not_after;
	return true;
}

static int lateness(time_t end, time_t now)
{
	int late = 0;
	while (late < STEPS && end - now < (time_t)days[late] * DAY_S)
		late++;
	return late;
}

static void tell(const struct ckt_server *server, enum ckt_expiring which, time_t left)
{
	static const char *const what[CKT_EXPIRINGS] = {"the server's certificate expires",
		"the authority's certificate expires",
		"the list of revoked certificates wants its next update"};
	static const char *const remedies[CKT_EXPIRINGS] = {
		"renew it with cricketctl certificate renew",
		"make a new authority with cricketctl certificate init, and trust both for a while",
		"write it again with cricketctl certificate revoke"};
	const char *path = path_of(server, which);
	if (left < 0)
		ckt_error("%s: %s: that time is over; %s", path, what[which], remedies[which]);
	else
		ckt_warning("%s: %s in %lld days; %s", path, what[which], (long long)(left / DAY_S),
			remedies[which]);
}

void ckt_certificate_expiry_look(struct ckt_server *server, time_t now)
{
	struct ckt_certificate_expiry *expiry = &server->certificates.expiry;
	for (int which = 0; which < CKT_EXPIRINGS; which++) {
		time_t end;
		if (!ckt_certificate_expiry_of(server, (enum ckt_expiring)which, &end))
			continue;
		int late = lateness(end, now);
		if (end != expiry->told_end[which])
			expiry->told[which] = 0;
		if (late > expiry->told[which])
			tell(server, (enum ckt_expiring)which, end - now);
		expiry->told_end[which] = end;
		expiry->told[which] = late;
	}
}

static void look_again(struct ckt_timer *timer)
{
	struct ckt_server *server =
		CKT_CONTAINER(timer, struct ckt_server, certificates.expiry.timer);
	ckt_certificate_expiry_look(server, time(NULL));
	ckt_timer_set(&server->loop, timer, HOUR_MS);
}

void ckt_certificate_expiry_open(struct ckt_server *server)
{
	struct ckt_timer *timer = &server->certificates.expiry.timer;
	const struct ckt_certificate_paths *paths = &server->certificates.paths;
	if (!paths->certificate && !paths->authority && !paths->revocations)
		return;
	timer->fire = look_again;
	look_again(timer);
}

void ckt_certificate_expiry_close(struct ckt_server *server)
{
	ckt_timer_clear(&server->certificates.expiry.timer);
}
