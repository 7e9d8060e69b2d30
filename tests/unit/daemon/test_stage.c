/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server/daemon/image/stage.c: stages: names, whose they are, what goes with a connection and what
 * is kept.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "inside.h"

static char message[CKT_MESSAGE_MAX], image_dir[128];

static void test_names(void)
{
	static const struct {
		const char *name;
		bool good;
	} cases[] = {{"a", true}, {"tmp-0123", true}, {"manifest", true}, {"data-15", true},
		{"", false}, {".", false}, {"..", false}, {"a/b", false}, {"A", false},
		{"a b", false}, {"a_b", false}, {"a.owner", false}, {"ä", false},
		{"0123456789012345678901234567890123456789012345678901234567890123", true},
		{"01234567890123456789012345678901234567890123456789012345678901234", false}};
	for (size_t i = 0; i < COUNT(cases); i++)
		IS(ckt_stage_name_good(cases[i].name), cases[i].good);
}

static void test_init(void)
{
	struct stat st;
	snprintf(image_dir, sizeof image_dir, "%s", path_in("images"));
	server.options.image_dir = image_dir;
	/* Others may look at nobody's images. */
	IS(mkdir(image_dir, 0755), 0);
	IS(ckt_stages_init(&server, message, sizeof message), -EPERM);
	HAS(message, "mode 0700");
	IS(chmod(image_dir, 0700), 0);
	/* What an earlier server left is cleared, what was kept stays. */
	IS(mkdir(path_in("images/tmp-0000000000000001"), 0700), 0);
	write_file(path_in("images/tmp-0000000000000001/manifest"), "x", 0600);
	IS(mkdir(path_in("images/kept"), 0700), 0);
	MUST(ckt_stages_init(&server, message, sizeof message), 0);
	YES(stat(path_in("images/tmp-0000000000000001"), &st) != 0);
	IS(stat(path_in("images/kept"), &st), 0);
	YES(server.image_dir_fd >= 0);
}

static char *make(int fd)
{
	static char name[CKT_CONTROL_NAME_MAX + 1];
	ckt_control_stage_res res = {0};
	YES(control(fd, CKT_CONTROL_STAGE_MAKE, NULL, NULL, -1,
		(xdrproc_t)xdr_ckt_control_stage_res, &res));
	IS(res.result.status, CKT_CONTROL_OK);
	snprintf(name, sizeof name, "%s", res.stage);
	xdr_free((xdrproc_t)xdr_ckt_control_stage_res, (char *)&res);
	return name;
}

static ckt_control_status ask(int fd, uint32_t proc, const char *stage)
{
	ckt_control_stage_args args = {.stage = (char *)stage};
	ckt_control_result result = {0};
	YES(control(fd, proc, (xdrproc_t)xdr_ckt_control_stage_args, &args, -1,
		(xdrproc_t)xdr_ckt_control_result, &result));
	ckt_control_status status = result.status;
	xdr_free((xdrproc_t)xdr_ckt_control_result, (char *)&result);
	return status;
}

static ckt_control_status keep(int fd, const char *stage, const char *name)
{
	ckt_control_keep_args args = {.stage = (char *)stage, .name = (char *)name};
	ckt_control_result result = {0};
	YES(control(fd, CKT_CONTROL_STAGE_KEEP, (xdrproc_t)xdr_ckt_control_keep_args, &args, -1,
		(xdrproc_t)xdr_ckt_control_result, &result));
	ckt_control_status status = result.status;
	xdr_free((xdrproc_t)xdr_ckt_control_result, (char *)&result);
	return status;
}

static bool exists(const char *name)
{
	return faccessat(server.image_dir_fd, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static void test_life(void)
{
	int fd = control_new(), other = control_new();
	char name[CKT_CONTROL_NAME_MAX + 1], file[400];
	snprintf(name, sizeof name, "%s", make(fd));
	IS(strncmp(name, "tmp-", 4), 0);
	snprintf(file, sizeof file, "%s/%s/manifest", image_dir, name);
	write_file(file, "12345", 0600);
	snprintf(file, sizeof file, "%s/%s/Not.a.name", image_dir, name);
	write_file(file, "x", 0600);
	ckt_control_stage_args args = {.stage = name};
	ckt_control_files_res list = {0};
	YES(control(other, CKT_CONTROL_STAGE_LIST, (xdrproc_t)xdr_ckt_control_stage_args, &args, -1,
		(xdrproc_t)xdr_ckt_control_files_res, &list));
	IS(list.files.files_len, 1);
	TEXT(list.files.files_val[0].name, "manifest");
	IS(list.files.files_val[0].bytes, 5);
	xdr_free((xdrproc_t)xdr_ckt_control_files_res, (char *)&list);
	/* Another user's it is not. */
	struct ckt_peer *peer = peer_last();
	uint32_t uid = peer->who.uid;
	peer->who.uid = 4242;
	if (uid != 0 || geteuid() == 0)
		IS(ckt_stage_find(peer, name) == NULL, true);
	peer->who.uid = uid;
	/* It goes with the connection that made it. */
	close(fd);
	run_for(10);
	NO(exists(name));
	IS(ask(other, CKT_CONTROL_STAGE_REMOVE, name), CKT_CONTROL_REFUSED);
	close(other);
	run_for(3);
	CU_ASSERT_PTR_NULL(server.stages);
}

static void test_keep(void)
{
	int fd = control_new();
	char name[CKT_CONTROL_NAME_MAX + 1], owner[32];
	snprintf(name, sizeof name, "%s", make(fd));
	static const char *const bad[] = {"", "tmp-x", "A", "a/b", "..", "kept"};
	for (size_t i = 0; i < COUNT(bad); i++)
		IS(keep(fd, name, bad[i]), CKT_CONTROL_REFUSED);
	IS(keep(fd, "tmp-none", "x"), CKT_CONTROL_REFUSED);
	IS(keep(fd, name, "mine"), CKT_CONTROL_OK);
	NO(exists(name));
	snprintf(owner, sizeof owner, "%u\n", (unsigned)geteuid());
	TEXT(read_file(path_in("images/mine.owner")), owner);
	IS(keep(fd, "mine", "again"), CKT_CONTROL_REFUSED); /* kept already */
	close(fd);
	run_for(10);
	YES(exists("mine"));
	fd = control_new();
	struct ckt_peer *peer = peer_last();
	uint32_t uid = peer->who.uid;
	peer->who.uid = 4242;
	CU_ASSERT_PTR_NULL(ckt_stage_find(peer, "mine"));
	/* without a file that says whose it is, it is root's */
	CU_ASSERT_PTR_NULL(ckt_stage_find(peer, "kept"));
	CU_ASSERT_PTR_NULL(ckt_stage_find(peer, "../images"));
	peer->who.uid = uid;
	IS(ask(fd, CKT_CONTROL_STAGE_REMOVE, "mine"), CKT_CONTROL_OK);
	NO(exists("mine") || exists("mine.owner"));
	IS(ask(fd, CKT_CONTROL_STAGE_REMOVE, "mine"), CKT_CONTROL_REFUSED);
	close(fd);
	run_for(3);
}

UNIT_SUITE(
	stage, {"names", test_names}, {"init", test_init}, {"life", test_life}, {"keep", test_keep})
