/* SPDX-License-Identifier: Apache-2.0 */
/* Who vouches for a chain; see chain_mac.h. */
#include "server/daemon/durable/chain_mac.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "checkpoint/format/sealed_file.h"
#include "rpc/identity.h"
#include "server/daemon/durable/sealed_chain.h"

#define NAME "mac "
#define END "end\n"

/* "mac ", the key's id, a blank, the sum, and a newline */
enum { LINE = sizeof NAME - 1 + 2 * CKT_IMAGE_KEY_ID + 1 + 2 * CKT_IMAGE_HASH + 1 };

static const struct ckt_image_keys *keys;

void ckt_chain_keys_set(const struct ckt_image_keys *wanted)
{
	keys = wanted && wanted->count ? wanted : NULL;
}

const struct ckt_image_keys *ckt_chain_keys(void)
{
	return keys;
}

/* ---- The state */

static void write_line(
	const struct ckt_image_key *key, const char *text, size_t length, char ret_line[LINE + 1])
{
	uint8_t sum[CKT_IMAGE_HASH];
	char id[2 * CKT_IMAGE_KEY_ID + 1];
	ckt_image_key_text(key->id, id);
	ckt_image_key_state_mac(key, text, length, sum);
	int used = snprintf(ret_line, LINE + 1, NAME "%s ", id);
	for (unsigned i = 0; i < sizeof sum; i++)
		used += snprintf(ret_line + used, 3, "%02x", sum[i]);
	snprintf(ret_line + used, 2, "\n");
}

int ckt_chain_mac_sign(char *text, size_t length, size_t room)
{
	if (!keys)
		return (int)length;
	if (room <= LINE || length >= room - LINE)
		return -E2BIG;
	write_line(&keys->keys[0], text, length, text + length);
	return (int)(length + LINE);
}

/* The line is the last one before the end; NULL: there is none. */
static const char *find_line(const char *text)
{
	size_t length = strlen(text), tail = LINE + sizeof END - 1;
	const char *line = length > tail ? text + length - tail : NULL;
	return line && line[-1] == '\n' && strncmp(line, NAME, sizeof NAME - 1) == 0 &&
			strcmp(line + LINE, END) == 0
		? line
		: NULL;
}

bool ckt_chain_mac_is_there(const char *text)
{
	return find_line(text) != NULL;
}

int ckt_chain_mac_check(const char *text)
{
	const char *line = find_line(text);
	char wanted[LINE + 1];
	if (!keys)
		return 0;
	for (unsigned i = 0; line && i < keys->count; i++) {
		write_line(&keys->keys[i], text, (size_t)(line - text), wanted);
		/* The key that it names; then the sum decides. */
		if (strncmp(line, wanted, sizeof NAME - 1 + 2 * CKT_IMAGE_KEY_ID) == 0)
			return ckt_auth_equal(line, wanted, LINE) ? 0 : -EKEYREJECTED;
	}
	return -ENOKEY;
}

/* ---- What comes back */

void ckt_chain_refusal(int error, const char *session, char ret_message[CKT_MESSAGE_MAX])
{
	const char *why = error == -ENOKEY
		? "no key of --image-key vouches for its state: give the key that was used"
		: error == -EKEYREJECTED
		? "its state was changed since it was written: put back the file from a copy"
		: error == -EBADMSG
		? "its state is damaged, or another session's: put back the file from a copy"
		: strerror(-error);
	snprintf(ret_message, CKT_MESSAGE_MAX, "the automatic images of session %.12s: %s", session,
		why);
}

/* The hash of the manifest in that directory. */
static int hash_manifest(int dir_fd, uint64_t number, uint8_t ret_hash[CKT_IMAGE_HASH])
{
	uint8_t salt[CKT_SEALED_SALT];
	bool known = false;
	char message[CKT_MESSAGE_MAX];
	int image = ckt_chain_image_open(dir_fd, number, false);
	int fd = image < 0 ? image
			   : ckt_sealed_image_open(image, "manifest", keys, salt, &known, message);
	int result = fd < 0 ? fd : ckt_image_file_hash(fd, ret_hash);
	if (fd >= 0)
		close(fd);
	if (image >= 0)
		close(image);
	return result;
}

/* Without a key there is nothing to check, and no way to decrypt. */
static int check_plain(int dir_fd, const struct ckt_chain_state *state, uint64_t number,
	char ret_message[CKT_MESSAGE_MAX])
{
	int image = ckt_chain_image_open(dir_fd, number, false);
	bool sealed = image >= 0 && ckt_sealed_image_is(image);
	if (image >= 0)
		close(image);
	if (sealed)
		snprintf(ret_message, CKT_MESSAGE_MAX,
			"the automatic images of session %s are encrypted, and this server has no "
			"key: start it with --image-key",
			state->session);
	return sealed ? -EBADMSG : 0;
}

int ckt_chain_check_newest(
	int dir_fd, const struct ckt_chain_state *state, char ret_message[CKT_MESSAGE_MAX])
{
	uint8_t hash[CKT_IMAGE_HASH];
	if (!state->count)
		return 0;
	uint64_t number = state->images[state->count - 1].number;
	if (!keys)
		return check_plain(dir_fd, state, number, ret_message);
	int result = state->has_manifest ? hash_manifest(dir_fd, number, hash) : -ENOKEY;
	if (!result && ckt_auth_equal(hash, state->manifest, sizeof hash))
		return 0;
	snprintf(ret_message, CKT_MESSAGE_MAX,
		"automatic image %llu of session %s: its manifest is not the one for which a key "
		"vouches%s%s: put back the image from a copy",
		(unsigned long long)number, state->session, result ? ": " : "",
		!result                     ? ""
			: result == -ENOKEY ? "its state names none"
					    : strerror(-result));
	return -EBADMSG;
}

/* The first command that a durable program still has; 0: it is none. */
static uint64_t first_kept(const struct ckt_hello_args *hello)
{
	for (u_int i = 0; i < hello->capabilities.capabilities_len; i++)
		if (strcmp(hello->capabilities.capabilities_val[i].name, CKT_CAPABILITY_DURABLE) ==
			0)
			return hello->capabilities.capabilities_val[i].value;
	return 0;
}

int ckt_chain_check_age(const struct ckt_hello_args *hello, const struct ckt_chain_state *state,
	char ret_message[CKT_MESSAGE_MAX])
{
	uint64_t first = first_kept(hello), needs = first ? first - 1 : hello->acked;
	if (!keys || state->executed >= needs)
		return 0;
	snprintf(ret_message, CKT_MESSAGE_MAX,
		"the automatic images of session %s are older than its program: they end with "
		"command %llu, and it needs command %llu: put back the newest copy",
		state->session, (unsigned long long)state->executed, (unsigned long long)needs);
	return -EBADMSG;
}
