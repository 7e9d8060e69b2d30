/* SPDX-License-Identifier: Apache-2.0 */
/* server/daemon/durable/chain_mac.c: states that somebody changed, other keys, and images that are not those of the state. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "checkpoint/format/image_key.h"
#include "inside.h"
#include "server/daemon/durable/chain_mac.h"

#define SESSION "0123456789ab"

enum { EXECUTED = 77 };

static struct ckt_image_keys one, other, both;

static void keys_init(void)
{
	uint8_t bytes[CKT_IMAGE_KEY_BYTES] = {1};
	ckt_image_key_init(&one.keys[0], bytes);
	bytes[0] = 2;
	ckt_image_key_init(&other.keys[0], bytes);
	one.count = other.count = 1;
	both = (struct ckt_image_keys){.keys = {other.keys[0], one.keys[0]}, .count = 2};
}

static struct ckt_chain_state a_state(void)
{
	struct ckt_chain_state state = {.session = SESSION,
		.owner = 1000,
		.executed = EXECUTED,
		.has_manifest = true,
		.count = 1,
		.images = {{4, 1000}}};
	memset(state.manifest, 0xa5, sizeof state.manifest);
	return state;
}

static int make(int *ret_parent)
{
	char path[128];
	snprintf(path, sizeof path, "%s/vouched", directory);
	mkdir(path, 0700);
	*ret_parent = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int fd = ckt_chain_open(*ret_parent, SESSION, true);
	CU_ASSERT_FATAL(fd >= 0);
	return fd;
}

static void unmake(int parent, int fd)
{
	ckt_chain_keys_set(NULL);
	ckt_chain_remove(parent, fd, SESSION);
	close(fd);
	close(parent);
}

/* The text of the state in that directory. */
static size_t read_text(int fd, char *ret_text, size_t size)
{
	int file = openat(fd, "state", O_RDONLY | O_CLOEXEC);
	ssize_t n = read(file, ret_text, size - 1);
	close(file);
	CU_ASSERT_FATAL(n > 0);
	ret_text[n] = 0;
	return (size_t)n;
}

static void test_state(void)
{
	struct ckt_chain_state state = a_state(), back;
	char text[2048], copy[4096];
	int parent, fd = make(&parent);
	keys_init();
	/* Without a key: no line, and all counts. */
	MUST(ckt_chain_write(fd, &state), 0);
	read_text(fd, text, sizeof text);
	NO(ckt_chain_mac_is_there(text));
	IS(ckt_chain_mac_check(text), 0);
	ckt_chain_keys_set(&one);
	IS(ckt_chain_read(fd, SESSION, &back), -ENOKEY);
	MUST(ckt_chain_write(fd, &state), 0);
	MUST(ckt_chain_read(fd, SESSION, &back), 0);
	YES(back.has_manifest && memcmp(back.manifest, state.manifest, sizeof back.manifest) == 0);
	size_t size = read_text(fd, text, sizeof text);
	YES(ckt_chain_mac_is_there(text));
	/* No byte can be another one, and none can be missing. */
	for (size_t at = 0; at < size; at++) {
		memcpy(copy, text, size + 1);
		copy[at] ^= 1;
		int result = ckt_chain_mac_check(copy);
		YES(result == -EKEYREJECTED || result == -ENOKEY);
		snprintf(copy, sizeof copy, "%.*s", (int)at, text);
		YES(ckt_chain_mac_check(copy) < 0);
	}
	/* Nor does anything stand before or behind it. */
	snprintf(copy, sizeof copy, "asked 1\n%s", text);
	IS(ckt_chain_mac_check(copy), -EKEYREJECTED);
	snprintf(copy, sizeof copy, "%send\n", text);
	IS(ckt_chain_mac_check(copy), -ENOKEY);
	IS(ckt_chain_mac_check(""), -ENOKEY);
	IS(ckt_chain_mac_check("end\n"), -ENOKEY);
	/* Another key; one of several; and none, which reads all. */
	ckt_chain_keys_set(&other);
	IS(ckt_chain_read(fd, SESSION, &back), -ENOKEY);
	ckt_chain_keys_set(&both);
	IS(ckt_chain_read(fd, SESSION, &back), 0);
	ckt_chain_keys_set(NULL);
	IS(ckt_chain_read(fd, SESSION, &back), 0);
	/* No room is no line without a sum. */
	ckt_chain_keys_set(&one);
	IS(ckt_chain_mac_sign(text, 10, 60), -E2BIG);
	unmake(parent, fd);
}

static void write_manifest(int fd, const char *text)
{
	int image = ckt_chain_image_open(fd, 4, false);
	int file = openat(image, "manifest", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	IS(write(file, text, strlen(text)), (ssize_t)strlen(text));
	close(file);
	close(image);
}

static void test_newest(void)
{
	struct ckt_chain_state state = a_state();
	char message[CKT_MESSAGE_MAX] = "";
	int parent, fd = make(&parent);
	/* Without a key it may be any; with one it must be there. */
	IS(ckt_chain_check_newest(fd, &state, message), 0);
	ckt_chain_keys_set(&one);
	IS(ckt_chain_check_newest(fd, &state, message), -EBADMSG);
	YES(strstr(message, "automatic image 4 of session " SESSION) != NULL);
	close(ckt_chain_image_open(fd, 4, true));
	write_manifest(fd, "what it was");
	int image = ckt_chain_image_open(fd, 4, false);
	int file = openat(image, "manifest", O_RDONLY | O_CLOEXEC);
	MUST(ckt_image_file_hash(file, state.manifest), 0);
	close(file);
	close(image);
	IS(ckt_chain_check_newest(fd, &state, message), 0);
	write_manifest(fd, "another one");
	IS(ckt_chain_check_newest(fd, &state, message), -EBADMSG);
	state.has_manifest = false;
	IS(ckt_chain_check_newest(fd, &state, message), -EBADMSG);
	YES(strstr(message, "its state names none") != NULL);
	unmake(parent, fd);
}

/* A durable program needs what comes before the first command that it kept, another one all that it has seen. */
static void test_age(void)
{
	struct ckt_chain_state state = a_state();
	char message[CKT_MESSAGE_MAX] = "";
	ckt_capability kept = {(char *)CKT_CAPABILITY_DURABLE, EXECUTED + 1};
	struct ckt_hello_args plain = {.acked = EXECUTED},
			      durable = {.acked = EXECUTED + 100, .capabilities = {1, &kept}};
	ckt_chain_keys_set(&one);
	IS(ckt_chain_check_age(&plain, &state, message), 0);
	IS(ckt_chain_check_age(&durable, &state, message), 0);
	plain.acked++;
	kept.value++;
	IS(ckt_chain_check_age(&plain, &state, message), -EBADMSG);
	*message = 0;
	IS(ckt_chain_check_age(&durable, &state, message), -EBADMSG);
	YES(strstr(message, "it needs command 78") != NULL);
	ckt_chain_keys_set(NULL);
	IS(ckt_chain_check_age(&durable, &state, message), 0);
}

UNIT_SUITE(chain_mac, {"state", test_state}, {"newest", test_newest}, {"age", test_age})
