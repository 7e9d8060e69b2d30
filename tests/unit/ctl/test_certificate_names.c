/* SPDX-License-Identifier: Apache-2.0 */
/* ctl/certificate/certificate_names.c: names of hosts, addresses and networks. */
#include <string.h>

#include "ctl/certificate/certificate_names.h"
#include "tests/unit/suite.h"

static void test_hosts(void)
{
	static const char *const good[] = {"node", "node1.cluster.example", "xn--bcher-kva.example",
		"a-b", "1a", "a.b.c"},
				 *const bad[] = {"", ".", "a.", ".a", "a..b", "-a", "a-", "a.-b",
					 "A", "a_b", "a b", "*.a", "a/b", "1.2.3.4", "::1",
					 "b\xc3\xbc"
					 "cher"};
	char label[66];
	for (unsigned i = 0; i < COUNT(good); i++)
		CU_ASSERT_PTR_NULL(ckt_ctl_host_check(good[i]));
	for (unsigned i = 0; i < COUNT(bad); i++)
		CU_ASSERT_PTR_NOT_NULL(ckt_ctl_host_check(bad[i]));
	memset(label, 'a', sizeof label);
	label[63] = 0;
	CU_ASSERT_PTR_NULL(ckt_ctl_host_check(label));
	label[63] = 'a';
	label[64] = 0;
	CU_ASSERT_PTR_NOT_NULL(ckt_ctl_host_check(label));
}

static void test_networks(void)
{
	static const struct {
		const char *text;
		size_t size;
		uint8_t bytes[32];
	} good[] = {
		{"10.1.2.3", 8, {10, 1, 2, 3, 255, 255, 255, 255}},
		{"10.1.2.3/8", 8, {10, 0, 0, 0, 255}},
		{"10.255.2.3/12", 8, {10, 240, 0, 0, 255, 240}},
		{"1.2.3.4/0", 8, {0}},
		{"fd00::/8", 32, {[0] = 0xfd, [16] = 0xff}},
	};
	static const char *const bad[] = {"", "10.1.2", "node", "10.0.0.0/33", "fd00::/129",
		"10.0.0.0/", "10.0.0.0/-1", "10.0.0.0/8x", "10.0.0.0/8/8", "/8",
		"1111111111111111111111111111111111111111111111111111111111111111111/8"};
	uint8_t network[32];
	size_t size = 0;
	for (unsigned i = 0; i < COUNT(good); i++) {
		MUST(ckt_ctl_network_parse(good[i].text, network, &size), true);
		IS(size, good[i].size);
		IS(memcmp(network, good[i].bytes, size), 0);
	}
	for (unsigned i = 0; i < COUNT(bad); i++)
		NO(ckt_ctl_network_parse(bad[i], network, &size));
}

UNIT_SUITE(certificate_names, {"hosts", test_hosts}, {"networks", test_networks})
