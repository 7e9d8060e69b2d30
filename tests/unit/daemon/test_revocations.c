/* SPDX-License-Identifier: Apache-2.0 */
/* server/daemon/policy/revocations.c: lists of ours, of others, spoiled ones and several. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "inside.h"
#include "server/daemon/policy/revocations.h"
#include "tests/unit/made_certificates.h"

static char ca[128], crl[128], message[512];

static bool have(const struct ckt_revocations *all, long serial)
{
	const uint8_t bytes[] = {(uint8_t)(serial >> 8), (uint8_t)serial};
	return ckt_revocations_have(all, serial < 256 ? bytes + 1 : bytes, serial < 256 ? 1 : 2);
}

static int read_them(struct ckt_revocations *ret)
{
	*message = 0;
	return ckt_revocations_read(crl, ca, ret, message, sizeof message);
}

static void append(const char *to, const char *from)
{
	char *old = strdup(read_file(to));
	FILE *file = fopen(to, "w");
	fputs(old, file);
	fputs(read_file(from), file);
	fclose(file);
	free(old);
}

static void test_lists(void)
{
	struct ckt_revocations all = {0};
	char other_crl[128];
	const struct made_wish wish = {.common_name = "one", .is_authority = 1},
			       wish2 = {.common_name = "two", .is_authority = 1};
	struct made one = made_certificate(&wish, NULL), two = made_certificate(&wish2, NULL),
		    liar = made_certificate(&wish, NULL);
	snprintf(ca, sizeof ca, "%s", path_in("ca.pem"));
	snprintf(crl, sizeof crl, "%s", path_in("crl.pem"));
	snprintf(other_crl, sizeof other_crl, "%s", path_in("other.pem"));
	made_write(ca, &one);
	made_write_list(crl, &one, (const long[]){0}, 100);
	MUST(read_them(&all), 0);
	IS(all.count, 0);
	NO(have(&all, 5));
	ckt_revocations_free(&all);
	made_write_list(crl, &one, (const long[]){100, 5, 99, 300, 0}, 100);
	MUST(read_them(&all), 0);
	IS(all.count, 4);
	YES(have(&all, 5) && have(&all, 99) && have(&all, 100) && have(&all, 300));
	NO(have(&all, 4) || have(&all, 44) || have(&all, 301));
	ckt_revocations_free(&all);
	/* An old one counts on. */
	made_write_list(crl, &one, (const long[]){5, 0}, -10);
	MUST(read_them(&all), 0);
	YES(have(&all, 5));
	ckt_revocations_free(&all);
	/* Somebody who has another authority of the same name cannot bring a list. */
	made_write_list(crl, &liar, (const long[]){6, 0}, 100);
	IS(read_them(&all), -EINVAL);
	HAS(message, "not signed by an authority that this server trusts");
	made_write_list(crl, &two, (const long[]){6, 0}, 100);
	IS(read_them(&all), -EINVAL);
	/* Two authorities, two lists. */
	char two_pem[128];
	snprintf(two_pem, sizeof two_pem, "%s", path_in("two.pem"));
	made_write(two_pem, &two);
	append(ca, two_pem);
	made_write_list(other_crl, &one, (const long[]){7, 0}, 100);
	append(crl, other_crl);
	MUST(read_them(&all), 0);
	YES(have(&all, 6) && have(&all, 7));
	ckt_revocations_free(&all);
	/* Cut in the second one. */
	MUST(truncate(crl, (off_t)strlen(read_file(crl)) - 60), 0);
	IS(read_them(&all), -EINVAL);
	HAS(message, "a list in it is malformed");
	made_free(&one);
	made_free(&two);
	made_free(&liar);
}

static void test_files(void)
{
	struct ckt_revocations all = {.count = 9};
	struct made one = made_certificate(&(struct made_wish){0}, NULL);
	unlink(crl);
	made_write(ca, &one);
	IS(read_them(&all), -ENOENT);
	/* A certificate that is no authority signs none. */
	made_write_list(crl, &one, (const long[]){1, 0}, 100);
	IS(read_them(&all), -EINVAL);
	write_file(ca, "", 0644);
	IS(read_them(&all), -EINVAL);
	HAS(message, "ca.pem: it holds no certificate");
	unlink(ca);
	IS(read_them(&all), -ENOENT);
	unlink(crl);
	IS(all.count, 9);
	made_free(&one);
}

UNIT_SUITE(revocations, {"lists", test_lists}, {"files", test_files})
