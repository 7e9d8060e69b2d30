/* SPDX-License-Identifier: Apache-2.0 */
/* ctl/doctor/doctor_certificate.c: a warning in the last 30 days, a failure afterwards. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ctl/doctor/doctor_certificate.h"
#include "inside.h"
#include "tests/unit/made_certificates.h"

enum { DAY_S = 86400 };

/* "RESULT: MESSAGE" of the check, "" where there is none. */
static const char *look(const char *check, long from_now_s)
{
	static char said[1024];
	struct ckt_doctor doctor = {.json = true, .checks = json_array()};
	size_t i;
	json_t *one;
	ckt_ctl_doctor_certificates(&doctor, time(NULL) + from_now_s);
	*said = 0;
	json_array_foreach(doctor.checks, i,
		one) if (strcmp(json_string_value(json_object_get(one, "name")), check) == 0)
		snprintf(said, sizeof said, "%s: %s",
			json_string_value(json_object_get(one, "result")),
			json_string_value(json_object_get(one, "message")));
	json_decref(doctor.checks);
	return said;
}

static void test_days(void)
{
	char tls[256], own[256], ca[256];
	setenv("XDG_CONFIG_HOME", directory, 1);
	snprintf(tls, sizeof tls, "%s", path_in("cricket/tls"));
	snprintf(own, sizeof own, "%s", path_in("cricket/tls/cert.pem"));
	snprintf(ca, sizeof ca, "%s", path_in("another-ca.pem"));
	mkdir(path_in("cricket"), 0700);
	mkdir(tls, 0700);
	TEXT(look("certificate", 0), "");
	TEXT(look("authority", 0), "");
	struct made made = made_certificate(
		&(struct made_wish){.from_s = -60, .until_s = 100 * DAY_S + 3600}, NULL);
	made_write(own, &made);
	made_write(ca, &made);
	made_free(&made);
	HAS(look("certificate", 0), "ok: this user's certificate (");
	HAS(look("certificate", 0), "is valid for 100 more days");
	HAS(look("certificate", 70 * DAY_S), "ok: ");
	HAS(look("certificate", 71 * DAY_S), "warning: ");
	HAS(look("certificate", 71 * DAY_S), "is valid for 29 more days");
	HAS(look("certificate", 101 * DAY_S), "fail: ");
	HAS(look("certificate", 101 * DAY_S), "has expired");
	HAS(look("certificate", -2 * DAY_S), "is not valid yet");
	TEXT(look("authority", 0), "");
	setenv("CRICKET_TLS_CA", ca, 1);
	HAS(look("authority", 99 * DAY_S), "warning: the authority's certificate (");
	write_file(ca, "nonsense");
	HAS(look("authority", 0), "fail: the authority's certificate: ");
	/* A variable that names nothing is not silently another file. */
	setenv("CRICKET_TLS_CERTIFICATE", "/nonexistent", 1);
	HAS(look("certificate", 0), "fail: this user's certificate: /nonexistent: No such file");
	unsetenv("CRICKET_TLS_CA");
	unsetenv("CRICKET_TLS_CERTIFICATE");
	unsetenv("XDG_CONFIG_HOME");
}

UNIT_SUITE(doctor_certificate, {"days", test_days})
