/* SPDX-License-Identifier: Apache-2.0 */
/* rpc/certificate.h: what a certificate may say of its user, and what makes it useless. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "rpc/certificate.h"
#include "tests/unit/made_certificates.h"
#include "tests/unit/suite.h"

static char message[512];

static int read_wish(const struct made_wish *wish, struct ckt_certificate *ret)
{
	struct made made = made_certificate(wish, NULL);
	*message = 0;
	int result = ckt_certificate_read(made.der, made.size, ret, message, sizeof message);
	made_free(&made);
	return result;
}

static void test_user(void)
{
	struct ckt_certificate is;
	char serial[2 * CKT_CERTIFICATE_SERIAL_MAX + 1];
	struct made_wish wish = {.names = "URI:cricket:user=alice.smith,URI:cricket:role=operator,"
					  "URI:cricket:project=vision,URI:cricket:project=speech,"
					  "URI:https://example.org/x,DNS:a.example",
		.usage = "clientAuth",
		.common_name = "administrator",
		.serial = 0x1234,
		.from_s = -60,
		.until_s = 3600};
	MUST(read_wish(&wish, &is), 0);
	TEXT(is.user, "alice.smith");
	TEXT(is.common_name, "administrator");
	IS(is.role, CKT_ROLE_OPERATOR);
	IS(is.project_count, 2);
	TEXT(is.projects[0], "vision");
	TEXT(is.projects[1], "speech");
	YES(is.client && !is.server && !is.authority);
	ckt_certificate_serial_text(&is, serial);
	TEXT(serial, "1234");
	time_t now = time(NULL);
	YES(ckt_certificate_is_valid(&is, now));
	NO(ckt_certificate_is_valid(&is, is.not_before - 1));
	YES(ckt_certificate_is_valid(&is, is.not_after));
	NO(ckt_certificate_is_valid(&is, is.not_after + 1));
	wish.names = "URI:cricket:user=bob";
	MUST(read_wish(&wish, &is), 0);
	IS(is.role, CKT_ROLE_USER);
	/* A common name makes nobody anything. */
	wish.names = NULL;
	MUST(read_wish(&wish, &is), 0);
	TEXT(is.user, "");
	IS(is.role, CKT_ROLE_USER);
}

static void test_others(void)
{
	struct ckt_certificate is;
	MUST(read_wish(
		     &(struct made_wish){.names = "DNS:gpunode", .usage = "serverAuth,clientAuth"},
		     &is),
		0);
	YES(is.server && is.client && !*is.user);
	MUST(read_wish(&(struct made_wish){.is_authority = 1}, &is), 0);
	YES(is.authority && !is.server && !is.client);
}

static void test_bad(void)
{
	static const struct {
		struct made_wish wish;
		const char *says;
	} rows[] = {
		{{.names = "URI:cricket:user=Alice", .usage = "clientAuth"},
			"names a user twice, or"},
		{{.names = "URI:cricket:user=", .usage = "clientAuth"}, "names a user twice, or"},
		{{.names = "URI:cricket:user=a/b", .usage = "clientAuth"},
			"names a user twice, or"},
		{{.names = "URI:cricket:user=a2345678901234567890123456789012x",
			 .usage = "clientAuth"},
			"names a user twice, or"},
		{{.names = "URI:cricket:user=a,URI:cricket:user=b", .usage = "clientAuth"},
			"names a user twice, or"},
		{{.names = "URI:cricket:user=a,URI:cricket:role=root", .usage = "clientAuth"},
			"two roles, or"},
		{{.names = "URI:cricket:user=a,URI:cricket:role=user,URI:cricket:role=administrator",
			 .usage = "clientAuth"},
			"two roles, or"},
		{{.names = "URI:cricket:user=a,URI:cricket:project=", .usage = "clientAuth"},
			"more than 8 projects, or"},
		{{.names = "URI:cricket:user=a,URI:cricket:project=1,URI:cricket:project=2,"
			   "URI:cricket:project=3,URI:cricket:project=4,URI:cricket:project=5,"
			   "URI:cricket:project=6,URI:cricket:project=7,URI:cricket:project=8,"
			   "URI:cricket:project=9",
			 .usage = "clientAuth"},
			"more than 8 projects, or"},
		{{.names = "URI:cricket:user=a,URI:cricket:limit=8G", .usage = "clientAuth"},
			"scheme 'cricket' that is not known"},
		{{.names = "URI:CRICKET:user=a", .usage = "clientAuth"},
			"scheme 'cricket' that is not known"},
		{{.names = "URI:cricket:", .usage = "clientAuth"},
			"scheme 'cricket' that is not known"},
		{{.names = "URI:cricket:role=administrator", .usage = "clientAuth"},
			"a role or a project, but no user"},
		{{.names = "URI:cricket:user=a", .usage = "serverAuth"}, "not one of a TLS client"},
		{{.names = "URI:cricket:user=a"}, "not one of a TLS client"},
		{{.names = "URI:cricket:user=a", .usage = "clientAuth", .is_authority = 1},
			"not one of a TLS client"},
	};
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct ckt_certificate is = {.serial_size = 77};
		IS(read_wish(&rows[i].wish, &is), -EINVAL);
		HAS(message, rows[i].says);
		IS(is.serial_size, 77);
	}
}

/* A zero byte in a name must not hide what is behind it. */
static void test_zero_byte(void)
{
	static const char before[] = "cricket:user=alice.x", after[] = "cricket:user=alice\0x";
	struct ckt_certificate is;
	struct made made = made_certificate(
		&(struct made_wish){.names = "URI:cricket:user=alice.x", .usage = "clientAuth"},
		NULL);
	uint8_t *at = memmem(made.der, made.size, before, sizeof before - 1);
	MUST(at != NULL, true);
	MUST(ckt_certificate_read(made.der, made.size, &is, message, sizeof message), 0);
	memcpy(at, after, sizeof after - 1);
	IS(ckt_certificate_read(made.der, made.size, &is, message, sizeof message), -EINVAL);
	made_free(&made);
}

static void test_sizes(void)
{
	struct ckt_certificate is;
	struct made made = made_certificate(
		&(struct made_wish){.names = "URI:cricket:user=alice", .usage = "clientAuth"},
		NULL);
	uint8_t *longer = calloc(1, CKT_CERTIFICATE_MAX + 1);
	for (size_t size = 0; size < made.size; size++)
		IS(ckt_certificate_read(made.der, size, &is, message, sizeof message), -EINVAL);
	memcpy(longer, made.der, made.size);
	IS(ckt_certificate_read(longer, made.size + 1, &is, message, sizeof message), -EINVAL);
	IS(ckt_certificate_read(longer, CKT_CERTIFICATE_MAX + 1, &is, message, sizeof message),
		-EINVAL);
	free(longer);
	made_free(&made);
}

static void test_files(void)
{
	char path[] = "/tmp/ckt-certificate-XXXXXX";
	struct ckt_certificate is;
	time_t next = 0;
	close(mkstemp(path));
	struct made made =
		made_certificate(&(struct made_wish){.common_name = "ca", .is_authority = 1}, NULL);
	made_write(path, &made);
	MUST(ckt_certificate_file_read(path, &is, message, sizeof message), 0);
	TEXT(is.common_name, "ca");
	IS(ckt_certificate_list_next(path, &next, message, sizeof message), -EINVAL);
	HAS(message, "no revocation list");
	made_write_list(path, &made, (const long[]){3, 0}, 1000);
	MUST(ckt_certificate_list_next(path, &next, message, sizeof message), 0);
	YES(next > time(NULL) + 900 && next <= time(NULL) + 1000);
	IS(ckt_certificate_file_read(path, &is, message, sizeof message), -EINVAL);
	HAS(message, "no certificate in PEM");
	IS(truncate(path, 0), 0);
	IS(ckt_certificate_file_read(path, &is, message, sizeof message), -EINVAL);
	IS(truncate(path, 5 << 20), 0);
	IS(ckt_certificate_file_read(path, &is, message, sizeof message), -EFBIG);
	unlink(path);
	IS(ckt_certificate_file_read(path, &is, message, sizeof message), -ENOENT);
	IS(ckt_certificate_file_read("/dev/zero", &is, message, sizeof message), -EINVAL);
	HAS(message, "not a regular file");
	made_free(&made);
}

UNIT_SUITE(certificate, {"user", test_user}, {"others", test_others}, {"bad", test_bad},
	{"zero_byte", test_zero_byte}, {"sizes", test_sizes}, {"files", test_files})
