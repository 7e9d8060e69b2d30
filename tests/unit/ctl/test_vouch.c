/* SPDX-License-Identifier: Apache-2.0 */
/* ctl/vouch.c: what a key of the user's covers beside the manifest: the files that CRIU reads. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "checkpoint/format/image_key.h"
#include "ctl/vouch.h"
#include "inside.h"

static char image[128], key[128];
static bool with_client;

static const char *file(const char *name)
{
	static char path[256];
	snprintf(path, sizeof path, "%s/%s", image, name);
	return path;
}

static int vouch(const struct ckt_ctl_args *args)
{
	int fd = open(image, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int status = ckt_ctl_vouch_owner(args, "0123456789ab", fd);
	close(fd);
	return status;
}

static int check(const struct ckt_ctl_args *args)
{
	struct ckt_ctl_voucher voucher;
	int fd = open(image, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int status = ckt_ctl_voucher_read(args, image, fd, "0123456789ab", with_client, &voucher);
	close(fd);
	YES(status != CKT_EXIT_DONE || voucher.bind);
	return status;
}

static const struct ckt_ctl_args args = {.image_keys = {key}, .image_key_count = 1};

static void start(const char *name)
{
	struct ckt_image_key made;
	begin();
	snprintf(image, sizeof image, "%s", path_in(name));
	snprintf(key, sizeof key, "%s", path_in("vouch-key"));
	unlink(key);
	IS(ckt_image_key_make(key, &made), 0);
	image_make(image, 'v', "");
}

static void test_client(void)
{
	start("with");
	/* Without processes the MAC says so. */
	with_client = false;
	IS(run(vouch, args, NULL), CKT_EXIT_DONE);
	IS(run(check, args, NULL), CKT_EXIT_DONE);
	with_client = true;
	IS(run(check, args, NULL), CKT_EXIT_REFUSED);
	HAS(err, "the key vouches for no client: restore it without --with-client");
	mkdir(file("client"), 0700);
	write_file(file("client/core-1.img"), "one");
	write_file(file("client/pages-1.img"), "two");
	write_file(file("client/client.json"), "{}");
	write_file(file("client/dump.log"), "said");
	IS(run(vouch, args, NULL), CKT_EXIT_DONE);
	IS(run(check, args, NULL), CKT_EXIT_DONE);
	/* CRIU goes on writing its log. */
	write_file(file("client/dump.log"), "said more");
	IS(run(check, args, NULL), CKT_EXIT_DONE);
	static const char *const names[] = {"core-1.img", "pages-1.img", "client.json"};
	for (size_t i = 0; i < COUNT(names); i++) {
		char path[256], kept[272];
		snprintf(path, sizeof path, "%s/client/%s", image, names[i]);
		snprintf(kept, sizeof kept, "%s.kept", path);
		IS(rename(path, kept), 0);
		IS(run(check, args, NULL), CKT_EXIT_REFUSED);
		HAS(err, "the files in client/ were changed since their MAC was made");
		write_file(path, "other");
		IS(run(check, args, NULL), CKT_EXIT_REFUSED);
		unlink(path);
		IS(symlink(kept, path), 0);
		IS(run(check, args, NULL), CKT_EXIT_REFUSED);
		IS(rename(kept, path), 0);
		IS(run(check, args, NULL), CKT_EXIT_DONE);
	}
	write_file(file("client/further.img"), "");
	IS(run(check, args, NULL), CKT_EXIT_REFUSED);
	/* Who does not restore the processes does not need them. */
	with_client = false;
	IS(run(check, args, NULL), CKT_EXIT_DONE);
}

static void test_keys(void)
{
	struct ckt_ctl_args none = {0};
	start("without");
	with_client = false;
	/* Without a key nothing is written. */
	IS(run(vouch, none, NULL), CKT_EXIT_DONE);
	NO(exists(file("manifest-mac")));
	IS(run(check, args, NULL), CKT_EXIT_REFUSED);
	HAS(err, "no key vouches for the image: it has no manifest-mac");
	IS(run(vouch, args, NULL), CKT_EXIT_DONE);
	IS(run(check, args, NULL), CKT_EXIT_DONE);
	write_file(file("manifest-mac"), "x");
	IS(run(check, args, NULL), CKT_EXIT_REFUSED);
	HAS(err, "manifest-mac is damaged");
	chmod(key, 0644);
	IS(run(check, args, NULL), CKT_EXIT_REFUSED);
	HAS(err, "others may read it");
}

UNIT_SUITE(vouch, {"client", test_client}, {"keys", test_keys})
