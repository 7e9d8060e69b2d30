/* SPDX-License-Identifier: Apache-2.0 */
/* Sizes as users write them.  Threading: no shared state. */
#pragma once

#include <stdint.h>

/*
 * "1G", "512M", "4096"; K, M, G and T are powers of 1024, with or without "B" or "iB".  0; -EINVAL:
 * not of that form, -ERANGE: 2^64 or more.
 */
int ckt_size_parse(const char *text, uint64_t *ret_bytes);
