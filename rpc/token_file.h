/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file of a server's tokens: an INI file, one section a token.  cricketctl writes it, the server
 * reads it.
 *
 *	[alice]
 *	hash = 64 hex digits			the stored key of rpc/credential.h; nobody can log in with it
 *	roles = user				user, operator, administrator; the highest one counts
 *	projects = vision, speech		her sessions belong to the first; an operator's rights: all
 *	max-sessions = 4
 *	session-memory = 8G
 *	session-host-memory = 2G
 *	expires = 2027-01-31			from that day on (UTC); also 2027-01-31T12:00:00Z
 *
 * Only `hash` is required.  Others than its owner and group may not read the file, and only its
 * owner may write it.
 *
 * Errors: 0 or -errno with a sentence in ret_message that names the file and the line.
 * Threading: no shared state.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "rpc/credential.h"

enum {
	CKT_TOKEN_NAME_MAX = 32,
	CKT_TOKEN_PROJECTS_MAX = 8,
	CKT_TOKENS_MAX = 4096,
	/* "certificate:" and the name, with its end */
	CKT_OWNER_NAME_SIZE = 12 + CKT_TOKEN_NAME_MAX + 1,
};

/* Who is more may do all that who is less may do. */
enum ckt_role { CKT_ROLE_USER, CKT_ROLE_OPERATOR, CKT_ROLE_ADMINISTRATOR, CKT_ROLES };

struct ckt_token_entry {
	char name[CKT_TOKEN_NAME_MAX + 1];
	struct ckt_token_verifier verifier;
	enum ckt_role role;
	char projects[CKT_TOKEN_PROJECTS_MAX][CKT_TOKEN_NAME_MAX + 1];
	unsigned project_count;
	unsigned max_sessions;                        /* 0: as for everybody */
	uint64_t session_memory, session_host_memory; /* bytes; 0: as for everybody */
	time_t expires;                               /* 0: never */
};

struct ckt_token_file {
	struct ckt_token_entry *entries; /* in the file's order */
	unsigned count;
};

const char *ckt_role_name(enum ckt_role role);
bool ckt_role_parse(const char *name, enum ckt_role *ret_role);
/* A name of a token or of a project: 1 to 32 of a-z, 0-9, '.', '_' and '-', not '-' first. */
bool ckt_token_name_is_good(const char *name);
/* -EINVAL where the text is no such time. */
int ckt_token_expiry_parse(const char *text, time_t *ret_time);

int ckt_token_file_read(
	const char *path, struct ckt_token_file *ret_file, char *ret_message, size_t message_size);
void ckt_token_file_free(struct ckt_token_file *file);
/* NULL: there is none. */
const struct ckt_token_entry *ckt_token_file_find(
	const struct ckt_token_file *file, const char *name);
/* The same by its id. */
const struct ckt_token_entry *ckt_token_file_find_id(
	const struct ckt_token_file *file, const uint8_t id[CKT_TOKEN_ID_SIZE]);

/*
 * Owners are numbers wherever a session's owner is kept or compared: a user of the host is its uid,
 * a token a number above all uids that Linux systems give out, made of its name.  The user of a
 * certificate (certificate.h) is the token of the name "certificate:NAME", which no token can have.
 */
uint32_t ckt_owner_of_token(const char *name);
uint32_t ckt_owner_of_certificate(const char *user);
/* Or a certificate. */
bool ckt_owner_is_token(uint32_t owner);
/* NULL: none of this number. */
const struct ckt_token_entry *ckt_token_file_find_owner(
	const struct ckt_token_file *file, uint32_t owner);

/*
 * Adds a section, or removes one; everything else in the file stays as it is, with its mode and
 * owner.  The file is replaced at once.  -EEXIST, -ENOENT: the token is there already, or is not.
 */
int ckt_token_file_add(const char *path, const struct ckt_token_entry *entry, char *ret_message,
	size_t message_size);
int ckt_token_file_remove(
	const char *path, const char *name, char *ret_message, size_t message_size);
