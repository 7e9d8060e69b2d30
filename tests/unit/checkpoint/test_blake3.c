/* SPDX-License-Identifier: Apache-2.0 */
/*
 * checkpoint/format/blake3.c: what the reference implementation says of the bytes i % 251, by sizes
 * around blocks, chunks and whole trees, and wherever the data lies.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "checkpoint/format/blake3.h"
#include "tests/unit/suite.h"

enum { MOST = 2100000 };

static uint8_t *bytes_of_count(void)
{
	uint8_t *data = malloc(MOST);
	for (size_t i = 0; i < MOST; i++)
		data[i] = (uint8_t)(i % 251);
	return data;
}

static void test_known(void)
{
	static const struct {
		size_t size;
		const char *hash;
	} known[] = {
		{0, "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262"},
		{1, "2d3adedff11b61f14c886e35afa036736dcd87a74d27b5c1510225d0f592e213"},
		{64, "4eed7141ea4a5cd4b788606bd23f46e212af9cacebacdc7d1f4c6dc7f2511b98"},
		{1023, "10108970eeda3eb932baac1428c7a2163b0e924c9a9e25b35bba72b28f70bd11"},
		{1024, "42214739f095a406f3fc83deb889744ac00df831c10daa55189b5d121c855af7"},
		{1025, "d00278ae47eb27b34faecf67b4fe263f82d5412916c1ffd97c8cb7fb814b8444"},
		{2048, "e776b6028c7cd22a4d0ba182a8bf62205d2ef576467e838ed6f2529b85fba24a"},
		{2049, "5f4d72f40d7a5f82b15ca2b2e44b1de3c2ef86c426c95c1af0b6879522563030"},
		{17000, "e83bd41e193b802b70ff45bd0ae5fa9412805804035c35d843b829e35140cef2"},
		{65536, "68d647e619a930e7b1082f74f334b0c65a315725569bdc123f0ee11881717bfe"},
		{65537, "7c99f9840a73dfcb6e5bfe4ff6d1558acab7e015640790c26411818bdbe17eca"},
		{102400, "bc3e3d41a1146b069abffad3c0d44860cf664390afce4d9661f7902e7943e085"},
		{1500000, "1c9ff5c77526ffa868e7b5f92c1ee835206e25fa77ede77f8515af24d2526c58"},
		{2097152, "96fbba37478c16b7614c890b26832f67b541cf14e69ab8ebf0c739818588c9f1"},
	};
	uint8_t *data = bytes_of_count(), hash[32];
	for (size_t k = 0; k < COUNT(known); k++) {
		char text[65];
		ckt_blake3(data, known[k].size, hash);
		for (int i = 0; i < 32; i++)
			snprintf(text + 2 * i, 3, "%02x", hash[i]);
		TEXT(text, known[k].hash);
	}
	free(data);
}

/*
 * The same bytes at any address, of any alignment: the same hash.  One byte more, less or other:
 * another.
 */
static void test_places(void)
{
	static const size_t sizes[] = {
		1, 63, 64, 65, 1023, 1024, 1025, 8191, 8192, 8193, 16384, 16385, 100000};
	uint8_t *data = bytes_of_count(), first[32], hash[32];
	for (size_t k = 0; k < COUNT(sizes); k++) {
		ckt_blake3(data, sizes[k], first);
		for (unsigned shift = 1; shift < 17; shift += 5) {
			/*
			 * In memory of its exact size, so that the sanitizer sees a byte read too
			 * many.
			 */
			uint8_t *copy = malloc(sizes[k] + shift);
			memcpy(copy + shift, data, sizes[k]);
			ckt_blake3(copy + shift, sizes[k], hash);
			IS(memcmp(first, hash, 32), 0);
			copy[shift + sizes[k] / 2] ^= 0x10;
			ckt_blake3(copy + shift, sizes[k], hash);
			YES(memcmp(first, hash, 32) != 0);
			copy[shift + sizes[k] / 2] ^= 0x10;
			ckt_blake3(copy + shift, sizes[k] - 1, hash);
			YES(memcmp(first, hash, 32) != 0);
			free(copy);
		}
	}
	free(data);
}

/* No two sizes of zeros are the same. */
static void test_lengths(void)
{
	uint8_t *zeros = calloc(1, 4096);
	static uint8_t hashes[400][32];
	unsigned same = 0;
	for (unsigned n = 0; n < 400; n++) {
		ckt_blake3(zeros, n * 10, hashes[n]);
		for (unsigned k = 0; k < n; k++)
			same += !memcmp(hashes[n], hashes[k], 32);
	}
	IS(same, 0);
	free(zeros);
}

UNIT_SUITE(checkpoint / format / blake3, {"known", test_known}, {"places", test_places},
	{"lengths", test_lengths})
