/* SPDX-License-Identifier: Apache-2.0 */
/* What cricketctl doctor says about the certificates of this user's TLS. */
#include "ctl/doctor/doctor_certificate.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "rpc/certificate.h"
#include "rpc/transport/known_servers.h"

enum { PATH_SIZE = 4096, DAY_S = 86400, WARN_DAYS = 30 };

static const struct {
	const char *check, *variable, *file, *what, *remedy;
} files[] = {
	{"certificate", "CRICKET_TLS_CERTIFICATE", "tls/cert.pem", "this user's certificate",
		"ask for another: cricketctl certificate renew, where the authority is"},
	{"authority", "CRICKET_TLS_CA", "tls/ca.pem", "the authority's certificate",
		"ask for the ca.pem of its successor"},
};

/* The variable, or the file where it is by default.  False: there is none. */
static bool find(const char *variable, const char *file, char ret_path[PATH_SIZE])
{
	const char *given = getenv(variable);
	if (given && *given)
		return snprintf(ret_path, PATH_SIZE, "%s", given) < PATH_SIZE;
	return ckt_known_servers_configuration(file, ret_path, PATH_SIZE) == 0 &&
		access(ret_path, F_OK) == 0;
}

static void check_file(struct ckt_doctor *doctor, size_t which, const char *path, time_t now)
{
	struct ckt_certificate certificate;
	char message[512];
	const char *name = files[which].check, *what = files[which].what;
	if (ckt_certificate_file_read(path, &certificate, message, sizeof message)) {
		ckt_ctl_doctor_note(doctor, CKT_FINDING_FAIL, name,
			"name a certificate in PEM, or unset the variable", "%s: %s", what,
			message);
		return;
	}
	long long left = (long long)(certificate.not_after - now);
	if (left < 0)
		ckt_ctl_doctor_note(doctor, CKT_FINDING_FAIL, name, files[which].remedy,
			"%s (%s) has expired", what, path);
	else if (certificate.not_before > now)
		ckt_ctl_doctor_note(doctor, CKT_FINDING_FAIL, name, "look at this host's clock",
			"%s (%s) is not valid yet", what, path);
	else
		ckt_ctl_doctor_note(doctor,
			left < WARN_DAYS * DAY_S ? CKT_FINDING_WARNING : CKT_FINDING_OK, name,
			left < WARN_DAYS * DAY_S ? files[which].remedy : NULL,
			"%s (%s) is valid for %lld more days", what, path, left / DAY_S);
}

void ckt_ctl_doctor_certificates(struct ckt_doctor *doctor, time_t now)
{
	char path[PATH_SIZE];
	for (size_t i = 0; i < sizeof files / sizeof *files; i++)
		if (find(files[i].variable, files[i].file, path))
			check_file(doctor, i, path, now);
}
