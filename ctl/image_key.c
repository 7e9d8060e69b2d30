/* SPDX-License-Identifier: Apache-2.0 */
/* cricketctl image-key make|show FILE, image-key sign DIR --image-key FILE: keys that vouch for images. */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "ctl/chain.h"
#include "ctl/command.h"
#include "ctl/files.h"
#include "ctl/print.h"
#include "ctl/subcommands.h"
#include "ctl/vouch.h"

static int print_key(const struct ckt_ctl_args *args, const struct ckt_image_key *key)
{
	char text[2 * CKT_IMAGE_KEY_ID + 1];
	ckt_image_key_text(key->id, text);
	if (args->json)
		return ckt_ctl_json_print(json_pack(
			"{s:s, s:o}", "key", text, "file", ckt_ctl_json_text(args->words[1])));
	printf("key %s in %s\n", text, args->words[1]);
	return ckt_ctl_flush();
}

static int make(const struct ckt_ctl_args *args)
{
	struct ckt_image_key key;
	int result = ckt_image_key_make(args->words[1], &key);
	int status = result == -EEXIST
		? ckt_ctl_refuse(args->words[1],
			  "exists: name another file, for images need their old keys")
		: result ? ckt_ctl_refuse(args->words[1], strerror(-result))
			 : print_key(args, &key);
	explicit_bzero(&key, sizeof key);
	return status;
}

static int show(const struct ckt_ctl_args *args)
{
	struct ckt_image_key key;
	char message[512];
	if (ckt_image_key_read(args->words[1], &key, message, sizeof message)) {
		fprintf(stderr, "cricketctl: %s\n", message);
		return CKT_EXIT_REFUSED;
	}
	int status = print_key(args, &key);
	explicit_bzero(&key, sizeof key);
	return status;
}

/* Of an image from before keys, or for a new key: the user says that it is what it should be. */
static int sign(const struct ckt_ctl_args *args)
{
	static struct ckt_ctl_chain chain;
	if (!args->image_key_count) {
		fprintf(stderr, "cricketctl: image-key sign needs --image-key FILE\n");
		return CKT_EXIT_USAGE;
	}
	int status = ckt_ctl_chain_open(args->words[1], true, &chain);
	if (status != CKT_EXIT_DONE)
		return status;
	status = ckt_ctl_vouch_owner(args, chain.image.session, chain.fds[0]);
	if (status == CKT_EXIT_DONE && fsync(chain.fds[0]))
		status = ckt_ctl_refuse(args->words[1], strerror(errno));
	ckt_ctl_chain_close(&chain);
	return status;
}

int ckt_ctl_image_key(const struct ckt_ctl_args *args)
{
	static const struct {
		const char *name;
		int (*run)(const struct ckt_ctl_args *args);
	} verbs[] = {{"make", make}, {"show", show}, {"sign", sign}};
	for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++)
		if (strcmp(verbs[i].name, args->words[0]) == 0)
			return verbs[i].run(args);
	fprintf(stderr,
		"cricketctl: usage: image-key make FILE, image-key show FILE or image-key sign DIR "
		"--image-key FILE\n");
	return CKT_EXIT_USAGE;
}
