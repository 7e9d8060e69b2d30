/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server/daemon/session/server_key.c: the key's file, ids that come from secrets, seals of images.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "inside.h"
#include "server/daemon/session/server_key.h"

static char message[256];

/* A server that has its key there; its environment is put back. */
static int load(struct ckt_server *s, const char *state, const char *home)
{
	char *before[3];
	static const char *const names[] = {"STATE_DIRECTORY", "XDG_STATE_HOME", "HOME"};
	const char *const values[] = {state, "", home};
	for (size_t i = 0; i < COUNT(names); i++) {
		const char *value = getenv(names[i]);
		before[i] = value ? strdup(value) : NULL;
		if (values[i])
			setenv(names[i], values[i], 1);
		else
			unsetenv(names[i]);
	}
	memset(&s->key, 0, sizeof s->key);
	message[0] = 0;
	int result = ckt_server_key_load(s, message, sizeof message);
	for (size_t i = 0; i < COUNT(names); i++) {
		if (before[i])
			setenv(names[i], before[i], 1);
		else
			unsetenv(names[i]);
		free(before[i]);
	}
	return result;
}

static void test_file(void)
{
	static struct ckt_server one, two;
	struct stat st;
	char list[600];
	snprintf(one.socket_dir, sizeof one.socket_dir, "%s", server.socket_dir);
	two = one;
	snprintf(list, sizeof list, "%s:/nonexistent", path_in("state"));
	IS(load(&one, list, NULL), 0);
	IS(stat(path_in("state/server-key"), &st), 0);
	IS(st.st_mode & 07777, 0600);
	IS(st.st_size, CKT_KEY_SIZE);
	IS(one.key.size_bytes, CKT_KEY_SIZE);
	/* The same the next time, and another one elsewhere. */
	IS(load(&two, path_in("state"), NULL), 0);
	IS(memcmp(one.key.bytes, two.key.bytes, CKT_KEY_SIZE), 0);
	IS(memcmp(one.key_name, two.key_name, sizeof one.key_name), 0);
	IS(one.key_made, st.st_mtime);
	IS(load(&two, path_in("other"), NULL), 0);
	YES(memcmp(one.key.bytes, two.key.bytes, CKT_KEY_SIZE) != 0);
	YES(memcmp(one.key_name, two.key_name, sizeof one.key_name) != 0);
	/* What is not as it should be is not replaced behind anybody's back. */
	IS(chmod(path_in("state/server-key"), 0640), 0);
	IS(load(&two, path_in("state"), NULL), -EPERM);
	HAS(message, "with mode 0600; remove the file, and the server makes a new key");
	write_file(path_in("state/server-key"), "short", 0600);
	IS(load(&two, path_in("state"), NULL), -EBADMSG);
	HAS(message, "does not have 32 bytes");
	unlink(path_in("state/server-key"));
	IS(symlink(path_in("other/server-key"), path_in("state/server-key")), 0);
	IS(load(&two, path_in("state"), NULL), -EPERM); /* a link is not followed */
}

static void test_ids(void)
{
	uint8_t hash[CKT_SECRET_HASH_SIZE], other[CKT_SECRET_HASH_SIZE];
	char ids[CKT_SESSION_ID_TRIES][CKT_SESSION_ID_SIZE + 1];
	memset(hash, 7, sizeof hash);
	memcpy(other, hash, sizeof other);
	other[31] ^= 1;
	for (unsigned i = 0; i < CKT_SESSION_ID_TRIES; i++) {
		ckt_server_key_session_id(hash, i, ids[i]);
		IS(strlen(ids[i]), CKT_SESSION_ID_SIZE);
		IS(strspn(ids[i], "0123456789abcdef"), CKT_SESSION_ID_SIZE);
		YES(ckt_server_key_fits(ids[i], hash));
		NO(ckt_server_key_fits(ids[i], other));
		for (unsigned k = 0; k < i; k++)
			YES(strcmp(ids[i], ids[k]) != 0);
	}
	/* Images have it: it never changes. */
	TEXT(ids[0], "dc757f78fabd");
	NO(ckt_server_key_fits("", hash));
	NO(ckt_server_key_fits("000000000000", hash));
}

static void test_seals(void)
{
	static struct ckt_server one, two;
	char id[] = "0123456789ab";
	struct ckt_worker_owner_args owner;
	struct ckt_worker_origin_res origin = {.session = id, .uid = 1001, .generation = 3};
	snprintf(one.socket_dir, sizeof one.socket_dir, "%s", server.socket_dir);
	two = one;
	IS(load(&one, path_in("one-key"), NULL) || load(&two, path_in("two-key"), NULL), 0);
	memset(origin.secret_hash, 5, sizeof origin.secret_hash);
	IS(ckt_server_key_seal_check(&one, &origin), 0); /* it has none */
	ckt_server_key_seal(&one, id, 1001, (uint8_t *)origin.secret_hash, 3, &owner);
	IS(owner.uid, 1001);
	memcpy(origin.key, owner.key, sizeof origin.key);
	memcpy(origin.seal, owner.seal, sizeof origin.seal);
	IS(ckt_server_key_seal_check(&one, &origin), 1);
	IS(ckt_server_key_seal_check(&two, &origin), 0); /* another server's */
	/* Nothing of it can be another. */
	origin.uid = 0;
	IS(ckt_server_key_seal_check(&one, &origin), -EBADMSG);
	origin.uid = 1001;
	origin.generation++;
	IS(ckt_server_key_seal_check(&one, &origin), -EBADMSG);
	origin.generation--;
	id[11] = 'c';
	IS(ckt_server_key_seal_check(&one, &origin), -EBADMSG);
	id[11] = 'b';
	origin.secret_hash[0] ^= 1;
	IS(ckt_server_key_seal_check(&one, &origin), -EBADMSG);
	origin.secret_hash[0] ^= 1;
	origin.seal[31] ^= 1;
	IS(ckt_server_key_seal_check(&one, &origin), -EBADMSG);
	memcpy(origin.key, two.key_name, sizeof origin.key);
	IS(ckt_server_key_seal_check(&two, &origin), -EBADMSG);
	/* A MAC is for one purpose. */
	uint8_t a[CKT_SEAL_SIZE], b[CKT_SEAL_SIZE];
	ckt_server_key_mac(&one, "mark", "x", 1, a);
	ckt_server_key_mac(&one, "mask", "x", 1, b);
	YES(memcmp(a, b, sizeof a) != 0);
}

UNIT_SUITE(server_key, {"file", test_file}, {"ids", test_ids}, {"seals", test_seals})
