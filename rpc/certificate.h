/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an X.509 certificate says about a peer of Cricket.
 *
 *	server		extended key usage serverAuth; its names are in subjectAltName
 *	user		extended key usage clientAuth, and these URIs in subjectAltName:
 *			  cricket:user=alice		whose it is; exactly one
 *			  cricket:role=operator		user (without this line), operator, administrator
 *			  cricket:project=vision	up to 8, the first is that of the user's sessions
 *
 * The subject's common name means nothing here: other authorities write what they like into it.  A
 * URI of the scheme "cricket" that is not known, comes twice or holds other characters than a
 * token's name may have makes the certificate useless as a whole.
 *
 * Nothing here checks who signed: that is TLS's.
 *
 * Errors: 0 or -errno, with a sentence in ret_message.  Threading: no shared state.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "rpc/fingerprint.h"
#include "rpc/token_file.h"

enum {
	CKT_CERTIFICATE_MAX = 8192, /* bytes of DER */
	CKT_CERTIFICATE_SERIAL_MAX = 20,
	CKT_CERTIFICATE_NAME_MAX = 255, /* a host name has at most 253 characters */
};

#define CKT_CERTIFICATE_URI "cricket:"

struct ckt_certificate {
	char common_name[CKT_CERTIFICATE_NAME_MAX + 1]; /* for listings only */
	bool authority, server, client;                 /* basic constraints, extended key usage */
	char user[CKT_TOKEN_NAME_MAX + 1];              /* "": it names none */
	enum ckt_role role;
	char projects[CKT_TOKEN_PROJECTS_MAX][CKT_TOKEN_NAME_MAX + 1];
	unsigned project_count;
	time_t not_before, not_after;
	uint8_t serial[CKT_CERTIFICATE_SERIAL_MAX];
	size_t serial_size;
	uint8_t fingerprint[CKT_FINGERPRINT_SIZE]; /* SHA-256 of its SubjectPublicKeyInfo */
};

/* -EINVAL: not DER of one certificate, or not of the form above. */
int ckt_certificate_read(const void *der, size_t size_bytes,
	struct ckt_certificate *ret_certificate, char *ret_message, size_t message_size);
/* Of the first certificate in a PEM file. */
int ckt_certificate_file_read(const char *path, struct ckt_certificate *ret_certificate,
	char *ret_message, size_t message_size);
/*
 * When a revocation list in a PEM file wants to be replaced by a newer one.  -EINVAL: it is none, or
 * names no time.
 */
int ckt_certificate_list_next(
	const char *path, time_t *ret_next, char *ret_message, size_t message_size);
/* Whether the certificate is valid at that time. */
bool ckt_certificate_is_valid(const struct ckt_certificate *certificate, time_t now);
/* Lower-case hex digits, two a byte. */
void ckt_certificate_serial_text(const struct ckt_certificate *certificate,
	char ret_text[2 * CKT_CERTIFICATE_SERIAL_MAX + 1]);
