/* SPDX-License-Identifier: Apache-2.0 */
/* server/daemon/policy/certificate_expiry.c: one line at each step, and again for another file. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/log.h"
#include "inside.h"
#include "server/daemon/metrics/collect.h"
#include "server/daemon/policy/certificate_expiry.h"
#include "tests/unit/made_certificates.h"

enum { DAY_S = 86400 };

static char certificate[128], ca[128], message[512];

static void write_ends(long server_s, long authority_s, long list_s)
{
	struct made authority = made_certificate(
			    &(struct made_wish){
				    .is_authority = 1, .from_s = -60, .until_s = authority_s},
			    NULL),
		    own = made_certificate(
			    &(struct made_wish){.from_s = -60, .until_s = server_s}, &authority);
	made_write(certificate, &own);
	made_write(ca, &authority);
	made_write_list(path_in("crl.pem"), &authority, (const long[]){0}, list_s);
	made_free(&own);
	made_free(&authority);
}

/* What a look at that time logs. */
static const char *look(long from_now_s)
{
	static char said[4096];
	int fd = memfd_create("log", MFD_CLOEXEC);
	MUST(fd >= 0, true);
	ckt_log_init_fd("test", CKT_LOG_INFO, fd);
	ckt_certificate_expiry_look(&server, time(NULL) + from_now_s);
	ssize_t n = pread(fd, said, sizeof said - 1, 0);
	said[n > 0 ? n : 0] = 0;
	ckt_log_init("test", CKT_LOG_ERROR, NULL);
	close(fd);
	return said;
}

static void test_steps(void)
{
	snprintf(certificate, sizeof certificate, "%s", path_in("cert.pem"));
	snprintf(ca, sizeof ca, "%s", path_in("ca.pem"));
	write_ends(40 * DAY_S + 3600, 400 * DAY_S + 3600, 500 * DAY_S + 3600);
	MUST(ckt_certificates_open(&server, certificate, ca, message, sizeof message), 0);
	TEXT(look(0), "");
	TEXT(look(9 * DAY_S), "");
	HAS(look(11 * DAY_S), "cert.pem: the server's certificate expires in 29 days; renew it");
	TEXT(look(12 * DAY_S), "");
	HAS(look(34 * DAY_S), "expires in 6 days");
	TEXT(look(35 * DAY_S), "");
	HAS(look(39 * DAY_S + 5400), "expires in 0 days");
	TEXT(look(39 * DAY_S + 7200), "");
	HAS(look(41 * DAY_S), "that time is over");
	TEXT(look(42 * DAY_S), "");
	HAS(look(380 * DAY_S),
		"ca.pem: the authority's certificate expires in 20 days; make a new");
	HAS(look(410 * DAY_S), "ca.pem: the authority's certificate expires: that time is over");
	HAS(look(490 * DAY_S), "crl.pem: the list of revoked certificates wants its next update");
	/* A new one is told of, too, in its time. */
	write_ends(20 * DAY_S + 3600, 400 * DAY_S + 3600, 500 * DAY_S + 3600);
	HAS(look(0), "expires in 20 days");
	TEXT(look(0), "");
	/* No file, no line. */
	unlink(certificate);
	TEXT(look(0), "");
	ckt_certificates_close(&server);
}

static void test_metrics(void)
{
	size_t size;
	time_t end = 0;
	char line[128];
	write_ends(40 * DAY_S + 3600, 400 * DAY_S + 3600, 500 * DAY_S + 3600);
	MUST(ckt_certificates_open(&server, certificate, ca, message, sizeof message), 0);
	for (int which = 0; which < CKT_EXPIRINGS; which++) {
		MUST(ckt_certificate_expiry_of(&server, (enum ckt_expiring)which, &end), true);
		char *text = ckt_metrics_collect(&server, true, &size);
		snprintf(line, sizeof line,
			"cricket_certificate_expiry_timestamp_seconds{certificate=\"%s\"} %lld\n",
			ckt_expiring_name((enum ckt_expiring)which), (long long)end);
		HAS(text, line);
		free(text);
	}
	ckt_certificates_close(&server);
	NO(ckt_certificate_expiry_of(&server, CKT_EXPIRING_SERVER, &end));
}

UNIT_SUITE(certificate_expiry, {"steps", test_steps}, {"metrics", test_metrics})
