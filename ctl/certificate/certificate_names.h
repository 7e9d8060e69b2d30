/* SPDX-License-Identifier: Apache-2.0 */
/* Names that a certificate may have.  Threading: no shared state. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * A host name of RFC 1123 in small letters; international ones in their form xn--.  NULL: it is
 * good; else what to do about it.
 */
const char *ckt_ctl_host_check(const char *name);
/* The 4 or 16 bytes of a numeric address.  False: it is none. */
bool ckt_ctl_address_parse(const char *text, uint8_t ret_address[16], size_t *ret_size);
/*
 * An address, or a network such as 10.0.0.0/8: the address and the mask, 8 or 32 bytes.  False: it
 * is none.
 */
bool ckt_ctl_network_parse(const char *text, uint8_t ret_network[32], size_t *ret_size);
