/* SPDX-License-Identifier: Apache-2.0 */
/* Who vouches for an image; see vouch.h. */
#include "ctl/vouch.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <nettle/sha2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "ctl/files.h"
#include "rpc/net.h"

enum { ANSWER_MS = 30000, CLIENT_FILES_MAX = 65536 };

int ckt_ctl_keys_read(const struct ckt_ctl_args *args, struct ckt_image_keys *ret_keys)
{
	char message[512];
	*ret_keys = (struct ckt_image_keys){0};
	for (unsigned i = 0; i < args->image_key_count; i++)
		if (ckt_image_keys_add(ret_keys, args->image_keys[i], message, sizeof message)) {
			explicit_bzero(ret_keys, sizeof *ret_keys);
			fprintf(stderr, "cricketctl: %s\n", message);
			return CKT_EXIT_REFUSED;
		}
	return CKT_EXIT_DONE;
}

/* ---- The program's processes */

/* CRIU reads no other files; it goes on writing its log after the others. */
static int is_restored(const struct dirent *entry)
{
	size_t length = strlen(entry->d_name);
	return (length > 4 && strcmp(entry->d_name + length - 4, ".img") == 0) ||
		strcmp(entry->d_name, "client.json") == 0;
}

/* The order must not depend on the user's language. */
static int by_bytes(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

static int hash_of(int directory, const char *name, uint8_t ret_hash[CKT_IMAGE_HASH])
{
	struct stat st;
	int fd = openat(directory, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	int result = fd < 0            ? -errno
		: fstat(fd, &st)       ? -errno
		: !S_ISREG(st.st_mode) ? -EINVAL
				       : ckt_image_file_hash(fd, ret_hash);
	if (fd >= 0)
		close(fd);
	return result;
}

static int hash_file(int directory, const char *name, struct sha256_ctx *sha)
{
	uint8_t sum[CKT_IMAGE_HASH];
	int result = hash_of(directory, name, sum);
	sha256_update(sha, strlen(name) + 1, (const uint8_t *)name);
	if (!result)
		sha256_update(sha, sizeof sum, sum);
	return result;
}

/* Of names and contents, in the order of the names; zeros if there is no client/. */
static int hash_client(int directory, uint8_t ret_hash[CKT_IMAGE_HASH])
{
	struct dirent **entries = NULL;
	struct sha256_ctx sha;
	memset(ret_hash, 0, CKT_IMAGE_HASH);
	int fd = openat(directory, "client", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? 0 : -errno;
	int count = scandirat(fd, ".", &entries, is_restored, by_bytes),
	    result = count < 0             ? -errno
		: count > CLIENT_FILES_MAX ? -E2BIG
					   : 0;
	sha256_init(&sha);
	for (int i = 0; i < count; i++) {
		if (!result)
			result = hash_file(fd, entries[i]->d_name, &sha);
		free(entries[i]);
	}
	free(entries);
	close(fd);
	if (!result)
		sha256_digest(&sha, CKT_IMAGE_HASH, ret_hash);
	return result;
}

/* ---- Checkpoint */

static int failed(int result)
{
	return result ? ckt_ctl_refuse(CKT_IMAGE_MAC_FILE, strerror(-result)) : CKT_EXIT_DONE;
}

static int add_mac(int directory, const ckt_image_mac *mac)
{
	uint8_t data[CKT_IMAGE_MAC_FILE_MAX];
	struct ckt_image_macs macs = {0};
	size_t size;
	int result = ckt_image_macs_read(directory, data, &size, &macs);
	if (result == -ENOENT)
		result = 0;
	if (!result)
		result = ckt_image_macs_add(&macs, mac);
	return result ? result : ckt_image_macs_write(directory, &macs);
}

/* The server saw what its worker wrote: the file here must be that. */
static int take_servers(const ckt_control_image_mac_res *res, int directory)
{
	struct ckt_image_macs macs;
	uint8_t hash[CKT_IMAGE_HASH];
	int result = ckt_image_macs_decode(res->mac.mac_val, res->mac.mac_len, &macs);
	if (!result)
		result = macs.count == 1 ? hash_of(directory, "manifest", hash) : -EPROTO;
	if (!result && memcmp(hash, macs.macs[0].manifest, sizeof hash) != 0)
		result = -EBADMSG;
	return failed(result ? result : add_mac(directory, &macs.macs[0]));
}

static int vouch_server(
	struct ckt_ctl_server *server, const ckt_control_save_res *saved, int directory)
{
	ckt_control_image_mac_args call = {.session = saved->session};
	ckt_control_image_mac_res res = {0};
	memcpy(call.image, saved->image, sizeof call.image);
	int status = ckt_ctl_call(server, CKT_CONTROL_IMAGE_MAC,
		(xdrproc_t)xdr_ckt_control_image_mac_args, &call,
		(xdrproc_t)xdr_ckt_control_image_mac_res, &res, ANSWER_MS, -1);
	if (status == CKT_EXIT_DONE)
		status = ckt_ctl_result(&res.result);
	if (status == CKT_EXIT_DONE)
		status = take_servers(&res, directory);
	xdr_free((xdrproc_t)xdr_ckt_control_image_mac_res, (char *)&res);
	return status;
}

int ckt_ctl_vouch_owner(const struct ckt_ctl_args *args, const char *session, int directory)
{
	struct ckt_image_keys keys;
	char name[CKT_IMAGE_SESSION + 1];
	ckt_image_mac mac = {.session = name, .uid = (u_int)getuid(), .made = (int64_t)time(NULL)};
	if (!args->image_key_count)
		return CKT_EXIT_DONE;
	int status = ckt_ctl_keys_read(args, &keys);
	if (status != CKT_EXIT_DONE)
		return status;
	snprintf(name, sizeof name, "%s", session);
	int result = hash_of(directory, "manifest", (uint8_t *)mac.manifest);
	if (!result)
		result = hash_client(directory, (uint8_t *)mac.client);
	if (!result)
		result = ckt_image_mac_make(&keys.keys[0], &mac);
	explicit_bzero(&keys, sizeof keys);
	return failed(result ? result : add_mac(directory, &mac));
}

int ckt_ctl_vouch(const struct ckt_ctl_args *args, struct ckt_ctl_server *server,
	const ckt_control_save_res *res, int directory)
{
	int status = strcmp(res->result.message, CKT_CONTROL_KEYED) == 0
		? vouch_server(server, res, directory)
		: CKT_EXIT_DONE;
	return status == CKT_EXIT_DONE ? ckt_ctl_vouch_owner(args, res->session, directory)
				       : status;
}

/* ---- Restore */

static int check_client(int directory, const ckt_image_mac *mac, char *ret_message, size_t size)
{
	static const uint8_t none[CKT_IMAGE_HASH];
	uint8_t hash[CKT_IMAGE_HASH];
	int result = hash_client(directory, hash);
	if (result)
		snprintf(ret_message, size, "client: %s", strerror(-result));
	else if (memcmp(mac->client, none, sizeof none) == 0)
		snprintf(ret_message, size,
			"the key vouches for no client: restore it without --with-client");
	else if (memcmp(mac->client, hash, sizeof hash) == 0)
		return 0;
	else
		snprintf(ret_message, size,
			"the files in client/ were changed since their MAC was made: restore the "
			"image from another copy");
	return -EBADMSG;
}

/* 0, or -errno with a sentence. */
static int check(const struct ckt_image_keys *keys, const struct ckt_image_macs *macs,
	int directory, const char *session, bool with_client, struct ckt_ctl_voucher *voucher,
	char *ret_message, size_t size)
{
	const ckt_image_mac *mac;
	int result = hash_of(directory, "manifest", voucher->hash);
	if (result) {
		snprintf(ret_message, size, "manifest: %s", strerror(-result));
		return result;
	}
	result = ckt_image_macs_check(macs, keys, voucher->hash, &mac, ret_message, size);
	if (!result && session && strcmp(session, mac->session) != 0) {
		snprintf(ret_message, size, "the key vouches for another session");
		result = -EBADMSG;
	}
	if (!result && with_client)
		result = check_client(directory, mac, ret_message, size);
	voucher->bind = !result;
	return result;
}

int ckt_ctl_voucher_read(const struct ckt_ctl_args *args, const char *path, int directory,
	const char *session, bool with_client, struct ckt_ctl_voucher *ret_voucher)
{
	struct ckt_image_keys keys;
	struct ckt_image_macs macs = {0};
	char message[512] = CKT_IMAGE_MAC_FILE " is damaged: restore the image from another copy";
	*ret_voucher = (struct ckt_ctl_voucher){0};
	int status = ckt_ctl_keys_read(args, &keys);
	if (status != CKT_EXIT_DONE)
		return status;
	int result = ckt_image_macs_read(directory, ret_voucher->data, &ret_voucher->size, &macs);
	/* Without a key of ours the server judges. */
	if (!keys.count) {
		ret_voucher->size = result && result != -EBADMSG ? 0 : ret_voucher->size;
		return CKT_EXIT_DONE;
	}
	if (result == -ENOENT)
		result = 0;
	if (!result)
		result = check(&keys, &macs, directory, session, with_client, ret_voucher, message,
			sizeof message);
	explicit_bzero(&keys, sizeof keys);
	return result ? ckt_ctl_refuse(path, message) : CKT_EXIT_DONE;
}

/*
 * An older server ends a connection over which it gets a call that it does not know, so it is asked
 * over another one.
 */
static bool knows_macs(const struct ckt_ctl_args *args)
{
	struct ckt_ctl_server server = {.fd = -1};
	char message[1200];
	ckt_control_image_mac_args call = {.session = (char *)""};
	ckt_control_image_mac_res res = {0};
	if (ckt_ctl_try_connect(args, &server, message, sizeof message) != CKT_EXIT_DONE)
		return false;
	bool known = ckt_net_call(server.fd, CRICKET_CONTROL_PROG, CKT_CONTROL_IMAGE_MAC,
			     (xdrproc_t)xdr_ckt_control_image_mac_args, &call,
			     (xdrproc_t)xdr_ckt_control_image_mac_res, &res,
			     ckt_net_now_ms() + ANSWER_MS, -1) == 0;
	xdr_free((xdrproc_t)xdr_ckt_control_image_mac_res, (char *)&res);
	ckt_ctl_disconnect(&server);
	return known;
}

int ckt_ctl_voucher_show(const struct ckt_ctl_args *args, struct ckt_ctl_server *server,
	const struct ckt_ctl_voucher *voucher)
{
	ckt_control_image_mac_args call = {.session = (char *)"",
		.bind = voucher->bind,
		.mac = {(u_int)voucher->size, (char *)voucher->data}};
	ckt_control_image_mac_res res = {0};
	if (!voucher->bind && !voucher->size)
		return CKT_EXIT_DONE;
	if (!knows_macs(args))
		return voucher->bind
			? ckt_ctl_refuse(server->address,
				  "is older than --image-key: restore at a newer server, or, if "
				  "you trust the image, without --image-key")
			: CKT_EXIT_DONE;
	memcpy(call.hash, voucher->hash, sizeof call.hash);
	int status = ckt_ctl_call(server, CKT_CONTROL_IMAGE_MAC,
		(xdrproc_t)xdr_ckt_control_image_mac_args, &call,
		(xdrproc_t)xdr_ckt_control_image_mac_res, &res, ANSWER_MS, -1);
	if (status == CKT_EXIT_DONE)
		status = ckt_ctl_result(&res.result);
	xdr_free((xdrproc_t)xdr_ckt_control_image_mac_res, (char *)&res);
	return status;
}
