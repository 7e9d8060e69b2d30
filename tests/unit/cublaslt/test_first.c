/* client/libs/cublasLt/first.c: a bounded set of hashes, which forgets where it is full; what of an address matters. */
#include "tests/unit/cublaslt/bridge.h"

static void test_set(void)
{
	ckt_lt_taken_clear();
	NO(ckt_lt_taken(5));
	ckt_lt_take(5);
	YES(ckt_lt_taken(5));
	NO(ckt_lt_taken(5 + 1024));
	/* 0 is a hash as any other, also where it is an empty place. */
	NO(ckt_lt_taken(0));
	ckt_lt_take(0);
	YES(ckt_lt_taken(0));
	ckt_lt_taken_clear();
	NO(ckt_lt_taken(5));
}

/* Eight of a bucket are kept, the last among them. */
static void test_full(void)
{
	unsigned kept = 0;
	ckt_lt_taken_clear();
	for (uint64_t i = 1; i <= 100; i++) {
		ckt_lt_take(i << 10);
		YES(ckt_lt_taken(i << 10));
	}
	for (uint64_t i = 1; i <= 100; i++)
		kept += ckt_lt_taken(i << 10);
	IS(kept, 8);
	ckt_lt_taken_clear();
}

static void test_alignment(void)
{
	IS(ckt_lt_alignment(0), 0);
	IS(ckt_lt_alignment(0x7f0000000001), 1);
	IS(ckt_lt_alignment(0x7f0000000110), 16);
	IS(ckt_lt_alignment(0x7f0000000000), CKT_LT_ALIGNMENT_MAX);
}

UNIT_SUITE(first, {"set", test_set}, {"full", test_full}, {"alignment", test_alignment})
