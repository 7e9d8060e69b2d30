/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ctl/chain.c: chains of images: found by what each names as its base, and beside the first where
 * they were moved.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ctl/chain.h"
#include "ctl/command.h"
#include "ctl/files.h"
#include "inside.h"
#include "rpc/control.h"

static unsigned count;
static char last_path[CKT_CTL_PATH_SIZE];

static int open_chain(const struct ckt_ctl_args *args)
{
	struct ckt_ctl_chain chain;
	int status = ckt_ctl_chain_open(args->words[0], args->word_count > 1, &chain);
	count = status ? 0 : chain.count;
	if (!status) {
		/* The last of them, by its number in /proc. */
		char link[64];
		snprintf(link, sizeof link, "/proc/self/fd/%d", chain.fds[chain.count - 1]);
		ssize_t n = readlink(link, last_path, sizeof last_path - 1);
		last_path[n > 0 ? n : 0] = 0;
		ckt_ctl_chain_close(&chain);
	}
	return status;
}

static int try_open(const char *name, bool strict)
{
	return run(open_chain, (struct ckt_ctl_args){0}, path_in(name), strict ? "strict" : NULL,
		NULL);
}

static void test_find(void)
{
	char id[CKT_IMAGE_ID];
	IS(mkdir(path_in("chain"), 0700), 0);
	image_make(path_in("chain/whole"), 'a', "");
	image_make(path_in("chain/second"), 'b', "a");
	image_make(path_in("chain/third"), 'c', "ba");
	image_make(path_in("chain/skip"), 'd', "a"); /* b holds nothing that it needs */
	write_file(path_in("chain/second/base"), "../whole\n");
	write_file(path_in("chain/third/base"), "../second\n");
	write_file(path_in("chain/skip/base"), "../second\n");
	IS(try_open("chain/whole", true), 0);
	IS(count, 1);
	IS(try_open("chain/third/", true), 0);
	IS(count, 3);
	HAS(last_path, "/chain/whole");
	IS(try_open("chain/skip", true), 0);
	IS(count, 2);
	HAS(last_path, "/chain/whole");
	/* Without what leads there, it is looked for beside the first. */
	IS(unlink(path_in("chain/third/base")), 0);
	IS(rename(path_in("chain/whole"), path_in("chain/renamed")), 0);
	IS(try_open("chain/third", true), 0);
	IS(count, 3);
	HAS(last_path, "/chain/renamed");
	/* Another image under the base's name is not taken for it. */
	image_make(path_in("chain/whole"), 'z', "");
	IS(try_open("chain/second", true), 0);
	HAS(last_path, "/chain/renamed");
	IS(rename(path_in("chain/renamed"), path_in("away")), 0);
	IS(try_open("chain/second", true), CKT_EXIT_REFUSED);
	HAS(err, "neither at its recorded path nor beside it");
	YES(ckt_ctl_image_id(path_in("chain/third"), id) && id[0] == 'c');
	NO(ckt_ctl_image_id(path_in("chain"), id));
	NO(ckt_ctl_image_id(path_in("nowhere"), id));
}

static void test_damaged(void)
{
	char text[64];
	IS(try_open("nowhere", true), CKT_EXIT_REFUSED);
	IS(try_open("chain/third/manifest", true), CKT_EXIT_REFUSED);
	HAS(err, "is not a directory, and an image is a directory");
	/* A manifest that cannot be read is for others to judge, unless it is wanted. */
	IS(mkdir(path_in("chain/bad"), 0700), 0);
	write_file(path_in("chain/bad/manifest"), "this is none");
	write_file(path_in("chain/bad/base"), "../whole\n");
	IS(try_open("chain/bad", true), CKT_EXIT_REFUSED);
	IS(try_open("chain/bad", false), 0);
	IS(count, 2);
	/* Bases that lead round in a circle end at some length. */
	snprintf(text, sizeof text, "../bad\n");
	write_file(path_in("chain/bad/base"), text);
	IS(try_open("chain/bad", false), 0);
	IS(count, CKT_CONTROL_CHAIN_MAX);
	write_file(path_in("chain/bad/base"), "../gone\n");
	IS(try_open("chain/bad", false), CKT_EXIT_REFUSED);
}

UNIT_SUITE(chain, {"find", test_find}, {"damaged", test_damaged})
