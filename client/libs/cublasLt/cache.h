/* SPDX-License-Identifier: Apache-2.0 */
/* Answers by what was asked, bounded in number and in bytes. */
#pragma once

#include <stddef.h>

enum {
	CKT_LT_ANSWERS_MAX = 4096,
	/* of all together; the ones not used for longest go */
	CKT_LT_ANSWER_BYTES_MAX = 16 << 20,
};
/* A malloc'd copy of the answer; NULL: there is none, or no memory. */
void *ckt_lt_cache_find(const void *key, size_t key_bytes, size_t *ret_bytes);
void ckt_lt_cache_add(const void *key, size_t key_bytes, const void *answer, size_t answer_bytes);
void ckt_lt_cache_clear(void);
