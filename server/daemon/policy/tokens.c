/* SPDX-License-Identifier: Apache-2.0 */
/* The tokens that the server knows; see tokens.h. */
#include "server/daemon/policy/tokens.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/log.h"
#include "rpc/net.h"
#include "server/daemon/server.h"

/* Within this time a change is noticed; a hello looks at once. */
enum { LOOK_MS = 100 };

bool ckt_tokens_known(const struct ckt_server *server)
{
	return server->token.size_bytes || server->options.tokens;
}

/* Whether the file is another one than the one that was read; notes which it is. */
static bool has_changed(struct ckt_tokens *tokens, const struct stat *st)
{
	bool same = tokens->device == st->st_dev && tokens->inode == st->st_ino &&
		tokens->size == (uint64_t)st->st_size &&
		tokens->modified.tv_sec == st->st_mtim.tv_sec &&
		tokens->modified.tv_nsec == st->st_mtim.tv_nsec;
	tokens->device = st->st_dev;
	tokens->inode = st->st_ino;
	tokens->size = (uint64_t)st->st_size;
	tokens->modified = st->st_mtim;
	return !same;
}

static int read_file(struct ckt_server *server, char *ret_message, size_t message_size)
{
	struct ckt_token_file file = {0};
	int result = ckt_token_file_read(server->options.tokens, &file, ret_message, message_size);
	if (!result && ckt_token_file_find(&file, CKT_SINGLE_TOKEN_NAME) &&
		server->token.size_bytes) {
		snprintf(ret_message, message_size,
			"tokens file %s: the token of --token-file has the name '" CKT_SINGLE_TOKEN_NAME
			"': rename this one",
			server->options.tokens);
		result = -EEXIST;
	}
	if (result) {
		ckt_token_file_free(&file);
		return result;
	}
	ckt_token_file_free(&server->tokens.file);
	server->tokens.file = file;
	return 0;
}

int ckt_tokens_open(struct ckt_server *server, char *ret_message, size_t message_size)
{
	struct stat st;
	const char *single = server->options.token_file;
	int result =
		single ? ckt_auth_token_load(single, &server->token, ret_message, message_size) : 0;
	if (result || !server->options.tokens)
		return result;
	if (stat(server->options.tokens, &st) == 0)
		has_changed(&server->tokens, &st);
	return read_file(server, ret_message, message_size);
}

void ckt_tokens_close(struct ckt_server *server)
{
	ckt_token_file_free(&server->tokens.file);
	server->tokens = (struct ckt_tokens){0};
}

void ckt_tokens_refresh(struct ckt_server *server)
{
	char message[CKT_MESSAGE_MAX];
	struct stat st;
	if (!server->options.tokens)
		return;
	server->tokens.looked_ms = ckt_net_now_ms();
	if (stat(server->options.tokens, &st)) {
		/* An edit replaces the file at once: who removes it wants no tokens. */
		if (server->tokens.file.count)
			ckt_warning("tokens file %s: %s: no token of it is valid any more",
				server->options.tokens, strerror(errno));
		ckt_token_file_free(&server->tokens.file);
		server->tokens.inode = 0;
		return;
	}
	if (!has_changed(&server->tokens, &st))
		return;
	if (read_file(server, message, sizeof message))
		ckt_error("%s; the tokens that were read before stay valid", message);
	else
		ckt_info("tokens file %s: read again, %u tokens", server->options.tokens,
			server->tokens.file.count);
}

/* The token of --token-file as an entry; NULL: there is none. */
static const struct ckt_token_entry *single_entry(struct ckt_server *server)
{
	struct ckt_token_entry *single = &server->tokens.single;
	if (!server->token.size_bytes)
		return NULL;
	*single = (struct ckt_token_entry){.name = CKT_SINGLE_TOKEN_NAME};
	ckt_token_verifier_make(&server->token, &single->verifier);
	return single;
}

const struct ckt_token_entry *ckt_tokens_find_id(
	struct ckt_server *server, const uint8_t id[CKT_TOKEN_ID_SIZE])
{
	const struct ckt_token_entry *single = single_entry(server);
	if (single && memcmp(single->verifier.id, id, CKT_TOKEN_ID_SIZE) == 0)
		return single;
	ckt_tokens_refresh(server);
	return ckt_token_file_find_id(&server->tokens.file, id);
}

bool ckt_token_is_expired(const struct ckt_token_entry *entry)
{
	return entry->expires && time(NULL) >= entry->expires;
}

const struct ckt_token_entry *ckt_tokens_find_owner(struct ckt_server *server, uint32_t owner)
{
	if (!ckt_owner_is_token(owner))
		return NULL;
	if (owner == ckt_owner_of_token(CKT_SINGLE_TOKEN_NAME) && server->token.size_bytes)
		return single_entry(server);
	if (ckt_net_now_ms() - server->tokens.looked_ms >= LOOK_MS)
		ckt_tokens_refresh(server);
	const struct ckt_token_entry *entry =
		ckt_token_file_find_owner(&server->tokens.file, owner);
	if (!entry)
		return ckt_certificates_find_owner(server, owner);
	return !ckt_token_is_expired(entry) ? entry : NULL;
}

const char *ckt_tokens_project(struct ckt_server *server, uint32_t owner)
{
	const struct ckt_token_entry *entry = ckt_tokens_find_owner(server, owner);
	return entry && entry->project_count ? entry->projects[0] : "";
}

bool ckt_token_entry_operates(
	struct ckt_server *server, const struct ckt_token_entry *entry, uint32_t owner)
{
	const char *project = ckt_tokens_project(server, owner);
	if (!entry || entry->role < CKT_ROLE_OPERATOR || !*project)
		return false;
	for (unsigned i = 0; i < entry->project_count; i++)
		if (strcmp(entry->projects[i], project) == 0)
			return true;
	return false;
}

bool ckt_tokens_operates(struct ckt_server *server, uint32_t token, uint32_t owner)
{
	return ckt_token_entry_operates(server, ckt_tokens_find_owner(server, token), owner);
}

/* Of a certificate that was shown; NULL: it is no certificate's. */
static const char *certificate_name(struct ckt_server *server, uint32_t owner)
{
	return ckt_token_file_find_owner(&server->tokens.file, owner)
		? NULL
		: ckt_certificates_name(server, owner);
}

void ckt_owner_text(struct ckt_server *server, uint32_t owner, char ret_text[CKT_OWNER_NAME_SIZE])
{
	const struct ckt_token_entry *entry = ckt_tokens_find_owner(server, owner);
	const char *certificate = certificate_name(server, owner);
	if (owner == CKT_UID_UNKNOWN)
		snprintf(ret_text, CKT_OWNER_NAME_SIZE, "nobody");
	else if (certificate)
		snprintf(ret_text, CKT_OWNER_NAME_SIZE, "certificate:%s", certificate);
	else if (ckt_owner_is_token(owner))
		snprintf(ret_text, CKT_OWNER_NAME_SIZE, "token:%s", entry ? entry->name : "?");
	else
		snprintf(ret_text, CKT_OWNER_NAME_SIZE, "uid:%u", owner);
}
