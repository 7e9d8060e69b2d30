/* SPDX-License-Identifier: Apache-2.0 */
/* Text forms of addresses; see net.h. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rpc/net.h"

static int parse_port(const char *text, uint16_t *ret_port)
{
	char *end;
	if (*text < '0' || *text > '9')
		return -EINVAL;
	unsigned long port = strtoul(text, &end, 10);
	if (*end || port > 65535)
		return -EINVAL;
	*ret_port = (uint16_t)port;
	return 0;
}

static int parse_path(const char *text, size_t skip, const char *right, struct ckt_address *address,
	char *ret_message, size_t message_size)
{
	const char *path = text + skip;
	if (!*path || strlen(path) >= sizeof address->host) {
		snprintf(ret_message, message_size, "'%s' %s; write %s", text,
			*path ? "is too long a path" : "names no path", right);
		return -EINVAL;
	}
	strcpy(address->host, path);
	return 0;
}

int ckt_address_parse(
	const char *text, struct ckt_address *ret_address, char *ret_message, size_t message_size)
{
	struct ckt_address address = {.type = CKT_ADDRESS_TCP, .port = CKT_DEFAULT_PORT};
	int result = 0;
	if (strncmp(text, "unix:", 5) == 0) {
		address.type = CKT_ADDRESS_UNIX;
		result = parse_path(
			text, 5, "unix:/path of a socket", &address, ret_message, message_size);
		if (!result)
			*ret_address = address;
		return result;
	}
	if (strncmp(text, "file:", 5) == 0) {
		address.type = CKT_ADDRESS_FILE;
		result = parse_path(text, 5, "file:PATH of a file that holds the address", &address,
			ret_message, message_size);
		if (!result)
			*ret_address = address;
		return result;
	}
	if (strncmp(text, "local:", 6) == 0) {
		snprintf(ret_message, message_size,
			"'%s': only cricket-run can use the local driver; run "
			"cricket-run --server %s COMMAND",
			text, text);
		return -EINVAL;
	}
	const char *host = text, *host_end, *port = NULL;
	if (*text == '[') {
		host = text + 1;
		host_end = strchr(host, ']');
		if (!host_end || (host_end[1] && host_end[1] != ':')) {
			snprintf(ret_message, message_size,
				"'%s' is not an address; write [v6-address]:port", text);
			return -EINVAL;
		}
		port = host_end[1] ? host_end + 2 : NULL;
	} else {
		const char *colon = strchr(text, ':');
		/* Two colons without brackets: a bare IPv6 address. */
		bool bare_v6 = colon && strchr(colon + 1, ':');
		host_end = colon && !bare_v6 ? colon : text + strlen(text);
		port = colon && !bare_v6 ? colon + 1 : NULL;
	}
	size_t length = (size_t)(host_end - host);
	if ((length == 0 && !port) || length >= sizeof address.host) {
		snprintf(ret_message, message_size,
			"'%s' is not an address; write host, host:port, unix:/path or "
			"file:PATH",
			text);
		return -EINVAL;
	}
	memcpy(address.host, host, length);
	if (port && parse_port(port, &address.port)) {
		snprintf(ret_message, message_size,
			"'%s': '%s' is not a port number; write host:port", text, port);
		return -EINVAL;
	}
	*ret_address = address;
	return 0;
}

void ckt_address_format(const struct ckt_address *address, char *ret_text, size_t text_size)
{
	switch (address->type) {
	case CKT_ADDRESS_UNIX:
		snprintf(ret_text, text_size, "unix:%s", address->host);
		break;
	case CKT_ADDRESS_FILE:
		snprintf(ret_text, text_size, "file:%s", address->host);
		break;
	case CKT_ADDRESS_TCP:
		snprintf(ret_text, text_size, strchr(address->host, ':') ? "[%s]:%u" : "%s:%u",
			address->host, address->port);
		break;
	}
}

static bool is_there(char (*texts)[CKT_ADDRESS_TEXT_MAX], unsigned count, const char *text)
{
	for (unsigned i = 0; i < count; i++)
		if (strcmp(texts[i], text) == 0)
			return true;
	return false;
}

int ckt_address_split(const char *text, char ret_texts[CKT_SERVERS_MAX][CKT_ADDRESS_TEXT_MAX],
	unsigned *ret_count, char *ret_message, size_t message_size)
{
	unsigned count = 0;
	for (const char *p = text;; p++) {
		char one[CKT_ADDRESS_TEXT_MAX], whole[CKT_ADDRESS_TEXT_MAX];
		struct ckt_address address;
		size_t length = strcspn(p, ",");
		if (!length) {
			snprintf(ret_message, message_size,
				"address %u of the list '%.200s' is empty: remove the "
				"extra comma",
				count + 1, text);
			return -EINVAL;
		}
		if (length >= sizeof one) {
			snprintf(ret_message, message_size,
				"address %u of the list is longer than %zu characters", count + 1,
				sizeof one - 1);
			return -EINVAL;
		}
		snprintf(one, sizeof one, "%.*s", (int)length, p);
		if (strncmp(one, "local:", 6) == 0) {
			snprintf(ret_message, message_size,
				"'%.200s' is this machine's own driver and cannot be "
				"combined with other addresses: remove it from the list",
				one);
			return -EINVAL;
		}
		int result = ckt_address_parse(one, &address, ret_message, message_size);
		if (result)
			return result;
		/* In canonical form: `a` and `a:7350` are the same server. */
		ckt_address_format(&address, whole, sizeof whole);
		if (is_there(ret_texts, count, whole)) {
			snprintf(ret_message, message_size,
				"'%.200s' is in the list twice: a program has one "
				"session per server",
				whole);
			return -EINVAL;
		}
		if (count == CKT_SERVERS_MAX) {
			snprintf(ret_message, message_size, "the list has more than %d addresses",
				CKT_SERVERS_MAX);
			return -E2BIG;
		}
		strcpy(ret_texts[count++], whole);
		p += length;
		if (!*p)
			break;
	}
	*ret_count = count;
	return 0;
}
