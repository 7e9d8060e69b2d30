/* SPDX-License-Identifier: Apache-2.0 */
/* server/daemon/session/uid_range.c: which ranges of user ids are taken. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "inside.h"
#include "server/daemon/session/uid_range.h"

static void test_parse(void)
{
	static const char *const bad[] = {"", "-", "200000", "200000-", "-200000", "200009-200000",
		"0-5", "999-2000", "1000-4294967294", "4294967295-4294967295",
		"99999999999999999999-99999999999999999999", " 2000-3000", "2000-3000 ",
		"2000--3000", "+2000-3000", "2000-+3000", "0x1000-0x2000", "2000:3000",
		"2000-3000-4000"};
	struct ckt_uid_range range = {1, 2};
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		IS(ckt_uid_range_parse(bad[i], &range), -EINVAL);
	IS(range.first, 1);
	IS(ckt_uid_range_parse("1000-4294967293", &range), 0);
	YES(range.first == 1000 && range.last == 4294967293u);
	IS(ckt_uid_range_parse("200000-200000", &range), 0);
	YES(ckt_uid_range_has(&range, 200000));
	NO(ckt_uid_range_has(&range, 199999) || ckt_uid_range_has(&range, 200001));
	range = (struct ckt_uid_range){0};
	NO(ckt_uid_range_has(&range, 0) || ckt_uid_range_has(&range, 1));
}

static void test_check(void)
{
	struct ckt_uid_range range = {200000, 200009};
	char passwd[96], group[96], message[512] = "";
	snprintf(passwd, sizeof passwd, "%s", path_in("passwd"));
	snprintf(group, sizeof group, "%s", path_in("group"));
	write_file(passwd, "root:x:0:0::/root:/bin/sh\nada:x:200010:5::/:/bin/sh\n", 0644);
	write_file(group, "root:x:0:\nbees:x:199999:\n", 0644);
	IS(ckt_uid_range_check(&range, 0, passwd, group, message, sizeof message), 0);
	/* As this machine is, and as it is without the files. */
	IS(ckt_uid_range_check(&range, 0, NULL, NULL, message, sizeof message), 0);
	IS(ckt_uid_range_check(&range, 0, "/nowhere", "/nowhere", message, sizeof message), 0);
	IS(ckt_uid_range_check(&range, 200009, passwd, group, message, sizeof message), -EINVAL);
	HAS(message, "--uid-range: '200000-200009' holds 200009, which is the server's own user");
	range.last = 200010;
	IS(ckt_uid_range_check(&range, 0, passwd, group, message, sizeof message), -EINVAL);
	HAS(message, "holds 200010, which is user ada: give ids");
	range = (struct ckt_uid_range){199999, 200000};
	IS(ckt_uid_range_check(&range, 0, passwd, group, message, sizeof message), -EINVAL);
	HAS(message, "which is group bees");
	range = (struct ckt_uid_range){65000, 65534};
	IS(ckt_uid_range_check(&range, 0, passwd, group, message, sizeof message), -EINVAL);
	HAS(message, "nobody");
	range = (struct ckt_uid_range){65535, 65535};
	IS(ckt_uid_range_check(&range, 0, passwd, group, message, sizeof message), -EINVAL);
	unlink(passwd);
	unlink(group);
}

UNIT_SUITE(uid_range, {"parse", test_parse}, {"check", test_check})
