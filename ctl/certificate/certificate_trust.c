/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cricketctl certificate trust: remembers a server that has no certificate of a known authority, by
 * its fingerprint.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "ctl/certificate/certificate_actions.h"
#include "ctl/certificate/certificate_trust.h"
#include "ctl/print.h"
#include "rpc/transport/known_servers.h"

int (*ckt_ctl_ask_fingerprint)(const char *address, uint8_t ret_fingerprint[CKT_FINGERPRINT_SIZE],
	char *ret_message, size_t message_size);

/* The name by which clients look for it: without the port. */
static int host_of(const char *word, char ret_host[CKT_KNOWN_SERVER_MAX + 1])
{
	size_t length = strlen(word);
	const char *colon = strchr(word, ':');
	if (*word == '[' && strchr(word, ']')) {
		word++;
		length = strcspn(word, "]");
	} else if (colon && !strchr(colon + 1, ':')) {
		length = (size_t)(colon - word);
	}
	if (!length || length > CKT_KNOWN_SERVER_MAX)
		return ckt_ctl_certificate_bad(
			"certificate trust", word, "write HOST, HOST:PORT or [ADDRESS]:PORT");
	memcpy(ret_host, word, length);
	ret_host[length] = 0;
	return CKT_EXIT_DONE;
}

static int print_trusted(const struct ckt_ctl_args *args, const char *host,
	const uint8_t fingerprint[CKT_FINGERPRINT_SIZE])
{
	char text[CKT_FINGERPRINT_TEXT];
	ckt_fingerprint_text(fingerprint, text);
	if (args->json)
		return ckt_ctl_json_print(json_pack(
			"{s:o, s:s}", "server", ckt_ctl_json_text(host), "fingerprint", text));
	fprintf(stderr, "cricketctl: server '%s' is trusted from now on by its key %s\n", host,
		text);
	return CKT_EXIT_DONE;
}

/* Shows what the server has, and asks as the first contact does. */
static int trust_of_network(const char *word, const char *host,
	uint8_t ret_fingerprint[CKT_FINGERPRINT_SIZE], struct ckt_ctl_problem *problem)
{
	char message[512];
	if (!ckt_ctl_ask_fingerprint)
		return ckt_ctl_problem_set(problem, ENOTSUP,
			"%s: this program cannot ask it for its key; give the fingerprint that "
			"'cricketctl certificate show cert.pem' prints there with --fingerprint",
			host);
	if (ckt_ctl_ask_fingerprint(word, ret_fingerprint, message, sizeof message) ||
		ckt_known_servers_decide(host, ret_fingerprint, NULL, 0, message, sizeof message))
		return ckt_ctl_problem_set(problem, EACCES, "%s", message);
	return 0;
}

int ckt_ctl_certificate_trust(const struct ckt_ctl_args *args)
{
	char host[CKT_KNOWN_SERVER_MAX + 1], message[512];
	uint8_t fingerprint[CKT_FINGERPRINT_SIZE];
	struct ckt_ctl_problem problem = {0};
	int status = host_of(args->words[1], host), result = 0;
	if (status != CKT_EXIT_DONE)
		return status;
	if (args->fingerprint && !ckt_fingerprint_parse(args->fingerprint, fingerprint))
		return ckt_ctl_certificate_bad("--fingerprint", args->fingerprint,
			"write it as cricketctl certificate show prints it: SHA256: and 43 "
			"characters");
	if (!args->fingerprint) {
		result = trust_of_network(args->words[1], host, fingerprint, &problem);
	} else {
		result = ckt_known_servers_keep(host, fingerprint, message, sizeof message);
		if (result)
			ckt_ctl_problem_set(&problem, -result, "%s", message);
	}
	return result ? ckt_ctl_certificate_failed(&problem)
		      : print_trusted(args, host, fingerprint);
}
