/* SPDX-License-Identifier: Apache-2.0 */
/* Certificates that peers have shown; see certificates.h. */
#include "server/daemon/policy/certificates.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/log.h"
#include "rpc/net.h"
#include "server/daemon/policy/identity.h"
#include "server/daemon/server.h"
#include "server/daemon/session/session.h"

/* Within this time a change of crl.pem is noticed. */
enum { LOOK_MS = 100 };

/* ---- What is revoked */

static bool has_changed(struct ckt_certificates *all, const struct stat *st)
{
	bool same = all->device == st->st_dev && all->inode == st->st_ino &&
		all->size == st->st_size && all->modified.tv_sec == st->st_mtim.tv_sec &&
		all->modified.tv_nsec == st->st_mtim.tv_nsec;
	all->device = st->st_dev;
	all->inode = st->st_ino;
	all->size = st->st_size;
	all->modified = st->st_mtim;
	return !same;
}

/* A list that is gone, or that cannot be read, leaves what was read: nobody comes back by that. */
static int read_list(struct ckt_certificates *all, char *ret_message, size_t message_size)
{
	struct ckt_revocations read = {0};
	const struct ckt_certificate_paths *paths = &all->paths;
	struct stat st;
	all->looked_ms = ckt_net_now_ms();
	if (!paths->revocations || !paths->authority || stat(paths->revocations, &st) ||
		!has_changed(all, &st))
		return 0;
	int result = ckt_revocations_read(
		paths->revocations, paths->authority, &read, ret_message, message_size);
	if (result)
		return result;
	ckt_revocations_free(&all->revocations);
	all->revocations = read;
	ckt_info("%s: %zu certificates are revoked", paths->revocations, read.count);
	return 0;
}

static void refresh(struct ckt_server *server)
{
	struct ckt_certificates *all = &server->certificates;
	char message[CKT_MESSAGE_MAX];
	if (ckt_net_now_ms() - all->looked_ms >= LOOK_MS && read_list(all, message, sizeof message))
		ckt_error("%s; the list that was read before stays valid", message);
}

int ckt_certificates_open(struct ckt_server *server, const char *certificate, const char *authority,
	char *ret_message, size_t message_size)
{
	struct ckt_certificate_paths *paths = &server->certificates.paths;
	const char *slash = authority ? strrchr(authority, '/') : NULL;
	int length = slash ? (int)(slash - authority) + 1 : 0;
	if (certificate)
		paths->certificate = strdup(certificate);
	if (authority)
		paths->authority = strdup(authority);
	if (authority && asprintf(&paths->revocations, "%.*scrl.pem", length, authority) < 0)
		paths->revocations = NULL;
	if ((certificate && !paths->certificate) ||
		(authority && (!paths->authority || !paths->revocations))) {
		snprintf(ret_message, message_size, "no memory");
		return -ENOMEM;
	}
	int result = read_list(&server->certificates, ret_message, message_size);
	if (!result)
		ckt_certificate_expiry_open(server);
	return result;
}

void ckt_certificates_close(struct ckt_server *server)
{
	struct ckt_certificates *all = &server->certificates;
	ckt_certificate_expiry_close(server);
	for (struct ckt_certificate_holder *next, *holder = all->holders; holder; holder = next) {
		next = holder->next;
		free(holder);
	}
	ckt_revocations_free(&all->revocations);
	free(all->paths.certificate);
	free(all->paths.authority);
	free(all->paths.revocations);
	*all = (struct ckt_certificates){0};
}

/* ---- Holders */

static bool is_same(
	const struct ckt_certificate_holder *holder, const struct ckt_certificate *certificate)
{
	return holder->serial_size == certificate->serial_size &&
		memcmp(holder->serial, certificate->serial, holder->serial_size) == 0 &&
		memcmp(holder->fingerprint, certificate->fingerprint, CKT_FINGERPRINT_SIZE) == 0;
}

static struct ckt_certificate_holder **find(
	struct ckt_certificates *all, const struct ckt_certificate *certificate)
{
	struct ckt_certificate_holder **at = &all->holders;
	while (*at && !is_same(*at, certificate))
		at = &(*at)->next;
	return at;
}

static bool has_session(const struct ckt_server *server, uint32_t owner)
{
	for (const struct ckt_session *session = server->sessions; session; session = session->next)
		if (session->uid == owner)
			return true;
	return false;
}

/* The one that was shown longest ago, of those that nobody needs.  False: all are needed. */
static bool forget_one(struct ckt_server *server)
{
	struct ckt_certificate_holder **oldest = NULL;
	for (struct ckt_certificate_holder **at = &server->certificates.holders; *at;
		at = &(*at)->next)
		if (!(*at)->uses && !has_session(server, (*at)->owner))
			oldest = at;
	if (!oldest)
		return false;
	struct ckt_certificate_holder *holder = *oldest;
	*oldest = holder->next;
	server->certificates.count--;
	free(holder);
	return true;
}

static void fill(struct ckt_certificate_holder *holder, const struct ckt_certificate *certificate)
{
	struct ckt_token_entry *entry = &holder->entry;
	*holder = (struct ckt_certificate_holder){
		.owner = ckt_owner_of_certificate(certificate->user),
		.serial_size = certificate->serial_size,
		.not_before = certificate->not_before};
	memcpy(holder->serial, certificate->serial, sizeof holder->serial);
	memcpy(holder->fingerprint, certificate->fingerprint, sizeof holder->fingerprint);
	memcpy(entry->name, certificate->user, sizeof entry->name);
	entry->role = certificate->role;
	memcpy(entry->projects, certificate->projects, sizeof entry->projects);
	entry->project_count = certificate->project_count;
	/* A certificate is valid in its last second, too. */
	entry->expires = certificate->not_after + 1;
}

static bool is_token(struct ckt_server *server, uint32_t owner)
{
	return ckt_token_file_find_owner(&server->tokens.file, owner) ||
		(server->token.size_bytes && owner == ckt_owner_of_token(CKT_SINGLE_TOKEN_NAME));
}

/* Its holder, first in the list. */
static int keep(struct ckt_server *server, const struct ckt_certificate *certificate,
	struct ckt_certificate_holder **ret_holder)
{
	struct ckt_certificates *all = &server->certificates;
	struct ckt_certificate_holder **at = find(all, certificate), *holder = *at;
	if (holder) {
		*at = holder->next;
	} else {
		if (all->count >= CKT_CERTIFICATE_HOLDERS_MAX && !forget_one(server))
			return -ENOSPC;
		holder = malloc(sizeof *holder);
		if (!holder)
			return -ENOMEM;
		fill(holder, certificate);
		all->count++;
	}
	holder->next = all->holders;
	all->holders = holder;
	holder->uses++;
	*ret_holder = holder;
	return 0;
}

int ckt_certificates_take(struct ckt_server *server, const void *der, size_t size_bytes,
	struct ckt_certificate_holder **ret_holder, char *ret_message, size_t message_size)
{
	struct ckt_certificate certificate;
	struct ckt_identity identity;
	int result = ckt_identity_of_certificate(
		der, size_bytes, &certificate, &identity, ret_message, message_size);
	if (result)
		return result;
	refresh(server);
	if (ckt_revocations_have(&server->certificates.revocations, certificate.serial,
		    certificate.serial_size)) {
		snprintf(ret_message, message_size,
			"the certificate of '%s' was revoked: ask the server's administrator for "
			"another",
			certificate.user);
		return -EACCES;
	}
	if (is_token(server, identity.uid)) {
		snprintf(ret_message, message_size,
			"the certificate's user '%s' has the owner number of a token: rename the "
			"token",
			certificate.user);
		return -EEXIST;
	}
	result = keep(server, &certificate, ret_holder);
	if (result)
		snprintf(ret_message, message_size,
			"no memory, or more than %d certificates are in use",
			CKT_CERTIFICATE_HOLDERS_MAX);
	return result;
}

void ckt_certificates_give(struct ckt_certificate_holder *holder)
{
	if (holder)
		holder->uses--;
}

/* ---- Look-up */

const struct ckt_token_entry *ckt_certificate_entry(
	struct ckt_server *server, const struct ckt_certificate_holder *holder)
{
	refresh(server);
	return ckt_token_is_expired(&holder->entry) ||
			ckt_revocations_have(&server->certificates.revocations, holder->serial,
				holder->serial_size)
		? NULL
		: &holder->entry;
}

const struct ckt_token_entry *ckt_certificates_find_owner(struct ckt_server *server, uint32_t owner)
{
	const struct ckt_certificate_holder *latest = NULL;
	for (const struct ckt_certificate_holder *holder = server->certificates.holders; holder;
		holder = holder->next)
		if (holder->owner == owner && ckt_certificate_entry(server, holder) &&
			(!latest || holder->not_before > latest->not_before))
			latest = holder;
	return latest ? &latest->entry : NULL;
}

const char *ckt_certificates_name(struct ckt_server *server, uint32_t owner)
{
	for (const struct ckt_certificate_holder *holder = server->certificates.holders; holder;
		holder = holder->next)
		if (holder->owner == owner)
			return holder->entry.name;
	return NULL;
}
