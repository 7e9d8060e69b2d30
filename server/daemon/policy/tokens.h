/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tokens that the server knows: the one of --token-file, as the token named "token" of role
 * user, and those of the file --tokens, which is read again when it has changed.
 *
 * Where a token is revoked or has expired, the server forgets who has it at once: its holder's
 * control connections have no rights any more.  A program that is connected goes on.
 *
 * Owners are numbers, see rpc/token_file.h.  Threading: the loop's thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "rpc/token_file.h"

struct ckt_server;

#define CKT_SINGLE_TOKEN_NAME "token"

struct ckt_tokens {
	struct ckt_token_file file;
	struct ckt_token_entry single; /* of --token-file */
	/* The file as it was read: which one, of which size and time. */
	uint64_t device, inode, size;
	struct timespec modified;
	int64_t looked_ms; /* when it was last compared */
};

/* At the start, both files: -errno with a sentence where one cannot be read. */
int ckt_tokens_open(struct ckt_server *server, char *ret_message, size_t message_size);
void ckt_tokens_close(struct ckt_server *server);
/* Whether the server knows tokens at all. */
bool ckt_tokens_known(const struct ckt_server *server);
/* Reads the file again if it has changed; what cannot be read leaves those that were read. */
void ckt_tokens_refresh(struct ckt_server *server);

/* NULL: none; an expired one is found. */
const struct ckt_token_entry *ckt_tokens_find_id(
	struct ckt_server *server, const uint8_t id[CKT_TOKEN_ID_SIZE]);
/* Also of a certificate (certificates.h).  NULL: none that is valid now. */
const struct ckt_token_entry *ckt_tokens_find_owner(struct ckt_server *server, uint32_t owner);
bool ckt_token_is_expired(const struct ckt_token_entry *entry);

/* Whether these are an operator's rights, of a project to which that owner's sessions belong. */
bool ckt_token_entry_operates(
	struct ckt_server *server, const struct ckt_token_entry *entry, uint32_t owner);
/* The same of a token. */
bool ckt_tokens_operates(struct ckt_server *server, uint32_t token, uint32_t owner);
/* "" where the owner is of no project. */
const char *ckt_tokens_project(struct ckt_server *server, uint32_t owner);
/*
 * The owner's name: "uid:1000", "token:alice", "certificate:alice", "token:?" for one that is not
 * known, "nobody".
 */
void ckt_owner_text(struct ckt_server *server, uint32_t owner, char ret_text[CKT_OWNER_NAME_SIZE]);
