/* SPDX-License-Identifier: Apache-2.0 */
/* Names that a certificate may have; see certificate_names.h. */
#include "ctl/certificate/certificate_names.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HOST_MAX = 253, LABEL_MAX = 63 };

static bool is_label(const char *label, size_t length)
{
	if (!length || length > LABEL_MAX || label[0] == '-' || label[length - 1] == '-')
		return false;
	return strspn(label, "abcdefghijklmnopqrstuvwxyz0123456789-") >= length;
}

const char *ckt_ctl_host_check(const char *name)
{
	uint8_t address[16];
	size_t size;
	if (ckt_ctl_address_parse(name, address, &size))
		return "it is an address; give it with --address";
	if (strchr(name, '*'))
		return "wildcards are not issued; name each host";
	for (const char *p = name; *p; p++)
		if ((unsigned char)*p >= 128)
			return "write an international name in its form xn--";
	if (strlen(name) > HOST_MAX)
		return "a host name has at most 253 characters";
	for (const char *p = name;; p++) {
		size_t length = strcspn(p, ".");
		if (!is_label(p, length))
			return "write a host name of a-z, 0-9, '-' and '.', each part of 1 to 63 "
			       "characters";
		p += length;
		if (!*p)
			return NULL;
	}
}

bool ckt_ctl_address_parse(const char *text, uint8_t ret_address[16], size_t *ret_size)
{
	*ret_size = 4;
	if (inet_pton(AF_INET, text, ret_address) == 1)
		return true;
	*ret_size = 16;
	return inet_pton(AF_INET6, text, ret_address) == 1;
}

bool ckt_ctl_network_parse(const char *text, uint8_t ret_network[32], size_t *ret_size)
{
	char address[64] = "";
	size_t length = strcspn(text, "/"), size;
	char *end = NULL;
	if (length >= sizeof address)
		return false;
	memcpy(address, text, length);
	if (!ckt_ctl_address_parse(address, ret_network, &size))
		return false;
	unsigned long bits = size * 8;
	if (text[length]) {
		bits = strtoul(text + length + 1, &end, 10);
		if (!isdigit((unsigned char)text[length + 1]) || *end || bits > size * 8)
			return false;
	}
	for (size_t i = 0; i < size; i++) {
		unsigned long of_byte = bits > i * 8 ? bits - i * 8 : 0;
		ret_network[size + i] = of_byte >= 8 ? 0xff : (uint8_t)(0xff00 >> of_byte);
		/* Bits behind the mask would match nothing. */
		ret_network[i] &= ret_network[size + i];
	}
	*ret_size = 2 * size;
	return true;
}
