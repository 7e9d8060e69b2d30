/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server/daemon/image/image_mac.c: for what the server vouches, and what a peer may say of the
 * image that it restores next.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "checkpoint/format/image_key.h"
#include "inside.h"
#include "server/daemon/image/image_mac.h"

static char id[] = "0000000000b1", text[CKT_MESSAGE_MAX];
static uint8_t mac[CKT_CONTROL_MAC_MAX];
static size_t mac_size;
static struct ckt_image_keys keys;

static void with_keys(uint8_t first, uint8_t second)
{
	keys = (struct ckt_image_keys){.count = 2};
	ckt_image_key_init(&keys.keys[0], (const uint8_t[CKT_IMAGE_KEY_BYTES]){first});
	ckt_image_key_init(&keys.keys[1], (const uint8_t[CKT_IMAGE_KEY_BYTES]){second});
	server.image_keys = &keys;
}

/* What is answered is in mac and text. */
static ckt_control_status call(int fd, ckt_control_image_mac_args args)
{
	ckt_control_image_mac_res res = {0};
	args.session = args.session ? args.session : (char *)"";
	YES(control(fd, CKT_CONTROL_IMAGE_MAC, (xdrproc_t)xdr_ckt_control_image_mac_args, &args, -1,
		(xdrproc_t)xdr_ckt_control_image_mac_res, &res));
	ckt_control_status status = res.result.status;
	snprintf(text, sizeof text, "%.500s", res.result.message);
	mac_size = res.mac.mac_len;
	if (mac_size)
		memcpy(mac, res.mac.mac_val, mac_size);
	xdr_free((xdrproc_t)xdr_ckt_control_image_mac_res, (char *)&res);
	return status;
}

static ckt_control_status say(int fd, bool bind, uint8_t hash, const void *data, size_t size)
{
	ckt_control_image_mac_args args = {
		.bind = bind, .mac = {(u_int)size, (char *)(uintptr_t)data}};
	memset(args.hash, hash, sizeof args.hash);
	return call(fd, args);
}

/* A manifest-mac of that key for the manifest whose hash is all that byte. */
static size_t make(uint8_t key, uint8_t hash, uint8_t ret_data[CKT_IMAGE_MAC_FILE_MAX])
{
	struct ckt_image_key by;
	struct ckt_image_macs macs = {0};
	ckt_image_mac one = {.session = id};
	ckt_image_key_init(&by, (const uint8_t[CKT_IMAGE_KEY_BYTES]){key});
	memset(one.manifest, hash, sizeof one.manifest);
	IS(ckt_image_mac_make(&by, &one), 0);
	IS(ckt_image_macs_add(&macs, &one), 0);
	return (size_t)ckt_image_macs_encode(&macs, ret_data);
}

static void test_saved(void)
{
	struct ckt_session *session = session_new(id);
	int fd = control_new();
	struct ckt_image_macs macs;
	const ckt_image_mac *one;
	IS(call(fd, (ckt_control_image_mac_args){.session = id}), CKT_CONTROL_REFUSED);
	HAS(text, "this server has no key for images: start it with --image-key");
	TEXT(ckt_image_mac_saved_text(&server), "");
	with_keys(1, 2);
	TEXT(ckt_image_mac_saved_text(&server), CKT_CONTROL_KEYED);
	IS(call(fd, (ckt_control_image_mac_args){.session = (char *)"0000000000ff"}),
		CKT_CONTROL_NO_SESSION);
	IS(worker.calls[CKT_WORKER_MANIFEST], 0);
	memset(worker.manifest, 7, sizeof worker.manifest);
	IS(call(fd, (ckt_control_image_mac_args){.session = id}), CKT_CONTROL_OK);
	IS(ckt_image_macs_decode(mac, mac_size, &macs), 0);
	IS(ckt_image_macs_check(&macs, &keys, worker.manifest, &one, text, sizeof text), 0);
	/* By the first key, for that session and owner. */
	IS(memcmp(one->key, keys.keys[0].id, sizeof one->key), 0);
	TEXT(one->session, id);
	IS(one->uid, session->uid);
	worker.status = -2;
	IS(call(fd, (ckt_control_image_mac_args){.session = id}), CKT_CONTROL_REFUSED);
	HAS(text, "its worker does not know that image");
	IS(mac_size, 0);
	worker.status = 0;
	worker.garbage = true;
	IS(call(fd, (ckt_control_image_mac_args){.session = id}), CKT_CONTROL_REFUSED);
	HAS(text, "checkpoint the session again");
	worker.garbage = false;
	server.image_keys = NULL;
	close(fd);
	run_for(3);
	session_drop(session);
}

static bool take(struct ckt_peer *peer, struct ckt_image_bond *ret_bond)
{
	return ckt_image_mac_take(peer, NULL, ret_bond, text);
}

/* Without a key of the server's the caller's word binds, and only once. */
static void test_bound(void)
{
	int fd = control_new();
	struct ckt_peer *peer = peer_last();
	struct ckt_image_bond bond;
	IS(say(fd, true, 5, "", 0), CKT_CONTROL_OK);
	YES(take(peer, &bond));
	YES(bond.set && !bond.keyed && bond.hash[31] == 5 && !*bond.session);
	YES(take(peer, &bond));
	NO(bond.set);
	/* What it cannot judge it does not look at. */
	IS(say(fd, false, 5, "garbage", 7), CKT_CONTROL_OK);
	YES(take(peer, &bond));
	NO(bond.set);
	close(fd);
	run_for(3);
}

static void test_keyed(void)
{
	int fd = control_new();
	struct ckt_peer *peer = peer_last();
	struct ckt_image_bond bond;
	uint8_t data[CKT_IMAGE_MAC_FILE_MAX];
	with_keys(1, 2);
	NO(take(peer, &bond));
	HAS(text, "no key vouches for the image");
	IS(say(fd, false, 0, "garbage", 7), CKT_CONTROL_REFUSED);
	HAS(text, "manifest-mac is damaged");
	IS(say(fd, true, 5, "", 0), CKT_CONTROL_REFUSED);
	NO(take(peer, &bond));
	size_t size = make(3, 5, data);
	IS(say(fd, false, 0, data, size), CKT_CONTROL_REFUSED);
	HAS(text, "no key given vouches for the image");
	/* An older key of the server's. */
	size = make(2, 5, data);
	IS(say(fd, false, 0, data, size), CKT_CONTROL_OK);
	YES(take(peer, &bond));
	YES(bond.set && bond.keyed && bond.hash[0] == 5);
	TEXT(bond.session, id);
	NO(take(peer, &bond));
	IS(say(fd, true, 6, data, size), CKT_CONTROL_REFUSED);
	HAS(text, "vouch for different manifests");
	IS(say(fd, true, 5, data, size), CKT_CONTROL_OK);
	/* What is refused takes back what was said before. */
	data[size - 1] ^= 1;
	IS(say(fd, false, 0, data, size), CKT_CONTROL_REFUSED);
	HAS(text, "manifest-mac was changed");
	NO(take(peer, &bond));
	server.image_keys = NULL;
	close(fd);
	run_for(3);
}

static void test_files(void)
{
	struct ckt_server fresh = {.key_made = 0};
	char path[128];
	struct ckt_image_key key;
	snprintf(path, sizeof path, "%s/image-key", directory);
	IS(ckt_image_mac_init(&fresh, text, sizeof text), 0);
	YES(fresh.image_keys == NULL);
	fresh.options.image_key = (struct ckt_list){.items = {path}, .count = 1};
	IS(ckt_image_mac_init(&fresh, text, sizeof text), -ENOENT);
	HAS(text, path);
	ckt_image_mac_fini(&fresh);
	IS(ckt_image_key_make(path, &key), 0);
	fresh.options.image_key.items[1] = (char *)"server-key";
	fresh.options.image_key.count = 2;
	IS(ckt_image_mac_init(&fresh, text, sizeof text), 0);
	IS(fresh.image_keys->count, 2);
	IS(memcmp(fresh.image_keys->keys[0].id, key.id, sizeof key.id), 0);
	ckt_image_mac_fini(&fresh);
	unlink(path);
}

UNIT_SUITE(image_mac, {"saved", test_saved}, {"bound", test_bound}, {"keyed", test_keyed},
	{"files", test_files})
