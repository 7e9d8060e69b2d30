/* SPDX-License-Identifier: Apache-2.0 */
/* base/size_text.h: sizes as users write them. */
#include "base/size_text.h"
#include "tests/unit/suite.h"

static void test_sizes(void)
{
	static const struct {
		const char *text;
		uint64_t bytes;
	} good[] = {{"0", 0}, {"4096", 4096}, {"1K", 1024}, {"512M", 512ull << 20},
		{"512m", 512ull << 20}, {"8G", 8ull << 30}, {"8GB", 8ull << 30},
		{"8GiB", 8ull << 30}, {"2T", 2ull << 40}, {"100B", 100},
		{"16777215T", 16777215ull << 40}, {"18446744073709551615", UINT64_MAX}};
	static const char *const bad[] = {"", " 1", "-1", "+1", "1X", "1.5G", "G", "1GG", "1Gi",
		"1G ", "0x10", "16777216T", "18446744073709551616"};
	for (size_t i = 0; i < COUNT(good); i++) {
		uint64_t bytes = 77;
		IS(ckt_size_parse(good[i].text, &bytes), 0);
		IS(bytes, good[i].bytes);
	}
	for (size_t i = 0; i < COUNT(bad); i++) {
		uint64_t bytes = 77;
		YES(ckt_size_parse(bad[i], &bytes) != 0);
		IS(bytes, 77);
	}
}

UNIT_SUITE(size_text, {"sizes", test_sizes})
