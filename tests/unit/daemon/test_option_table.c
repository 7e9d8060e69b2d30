/* SPDX-License-Identifier: Apache-2.0 */
/* server/daemon/option_table.c: every entry is whole, and what its check takes and refuses. */
#include <errno.h>
#include <string.h>

#include "server/daemon/option_table.h"
#include "tests/unit/suite.h"

static void test_entries(void)
{
	for (unsigned i = 0; i < CKT_SERVER_OPTIONS; i++) {
		const struct ckt_server_option *one = &ckt_server_options[i];
		MUST(one->option.name != NULL, true);
		IS(one->option.argument == NULL, one->type == CKT_SERVER_OPTION_FLAG);
		YES(*one->option.help != 0);
		/* What the INI file can hold can be wrong there, flags too. */
		YES(one->command_line_only || *one->remedy);
		for (unsigned other = 0; other < i; other++)
			NO(strcmp(one->option.name, ckt_server_options[other].option.name) == 0);
	}
}

static int check(const char *name, const char *value)
{
	for (unsigned i = 0; i < CKT_SERVER_OPTIONS; i++)
		if (strcmp(ckt_server_options[i].option.name, name) == 0)
			return ckt_server_options[i].check(value);
	return 1;
}

static void test_checks(void)
{
	IS(check("listen", "none"), 0);
	IS(check("listen", "127.0.0.1:0"), 0);
	IS(check("listen", "unix:/x"), -EINVAL);
	IS(check("socket", "/x"), 0);
	IS(check("socket", "x"), -EINVAL);
	IS(check("driver", "soft"), 0);
	IS(check("driver", "software"), -EINVAL);
	IS(check("library-path", "/a:/b"), 0);
	IS(check("library-path", "/a:b"), -EINVAL);
	IS(check("max-waiting", "00"), -EINVAL);
	IS(check("on-term", "checkpoint:/x"), 0);
	IS(check("on-term", "checkpoint:x"), -EINVAL);
	IS(check("log-level", "loud"), -EINVAL);
}

UNIT_SUITE(option_table, {"entries", test_entries}, {"checks", test_checks})
