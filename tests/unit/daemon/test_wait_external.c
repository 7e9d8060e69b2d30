/* SPDX-License-Identifier: Apache-2.0 */
/* server/daemon/policy/wait_external.c: what --wait-policy external says. */
#include <errno.h>

#include "server/daemon/policy/wait_policy.h"
#include "tests/unit/suite.h"

static void test_parse(void)
{
	static const struct {
		const char *text;
		const struct ckt_wait_policy *fallback; /* NULL: refused */
		unsigned timeout_ms;
	} cases[] = {{"external", &ckt_wait_fifo, 1000},
		{"external:best-fit", &ckt_wait_best_fit, 1000},
		{"external:random,0.25", &ckt_wait_random, 250},
		{"external,60", &ckt_wait_fifo, 60000}, {"external,.001", &ckt_wait_fifo, 1},
		{"external,0", NULL, 0}, {"external,60.1", NULL, 0}, {"external,", NULL, 0},
		{"external:", NULL, 0}, {"external:,1", NULL, 0}, {"external:external", NULL, 0},
		{"external,1,1", NULL, 0}, {"external,1.1.1", NULL, 0}, {"external,.", NULL, 0},
		{"external,inf", NULL, 0}, {"external,-1", NULL, 0}, {"external,1e1", NULL, 0},
		{"external,00000000000000001", NULL, 0}, {"externa", NULL, 0},
		{"externalfifo", NULL, 0}, {"", NULL, 0},
		{"external:a-name-that-is-longer-than-the-room-for-it", NULL, 0}};
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct ckt_wait_external external = {0};
		IS(ckt_wait_external_parse(cases[i].text, &external),
			cases[i].fallback ? 0 : -EINVAL);
		CU_ASSERT_PTR_EQUAL(external.fallback, cases[i].fallback);
		IS(external.timeout_ms, cases[i].timeout_ms);
	}
}

UNIT_SUITE(wait_external, {"parse", test_parse})
