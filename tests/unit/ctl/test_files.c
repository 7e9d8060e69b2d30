/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ctl/files.c: directories of images: whole under their name or not there, what killed ones left
 * goes, what lives stays.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ctl/cleanup.h"
#include "ctl/command.h"
#include "ctl/files.h"
#include "inside.h"

static int places(const struct ckt_ctl_args *args)
{
	static const struct {
		const char *name;
		bool here;
		int status;
	} cases[] = {{NULL, true, 0}, {NULL, false, 2}, {"x", true, 2}, {"x", false, 0},
		{"tmp-x", false, 2}, {"A", false, 2}, {"", false, 2}, {"a/b", false, 2}};
	(void)args;
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct ckt_ctl_args a = {.command = "checkpoint", .server_side = cases[i].name};
		IS(ckt_ctl_check_place(&a, cases[i].here), cases[i].status);
	}
	char path[CKT_CTL_PATH_SIZE], parent[CKT_CTL_PATH_SIZE], longest[CKT_CTL_PATH_SIZE + 10];
	static const struct {
		const char *text, *path, *parent;
		int at;
	} paths[] = {{"/a/b", "/a/b", "/a", 3}, {"a", "a", ".", 0}, {"/a", "/a", "/", 1},
		{"a/b//", "a/b", "a", 2}, {"/", "/", "/", 1}, {"///", "/", "/", 1}};
	for (size_t i = 0; i < COUNT(paths); i++) {
		IS(ckt_ctl_path_copy(paths[i].text, path), 0);
		TEXT(path, paths[i].path);
		IS(ckt_ctl_path_parent(path, parent), paths[i].at);
		TEXT(parent, paths[i].parent);
	}
	IS(ckt_ctl_path_copy("", path), CKT_EXIT_REFUSED);
	memset(longest, 'x', sizeof longest - 1);
	longest[sizeof longest - 1] = 0;
	IS(ckt_ctl_path_copy(longest, path), CKT_EXIT_REFUSED);
	TEXT(ckt_ctl_kept_name("memory:x"), "x");
	CU_ASSERT_PTR_NULL(ckt_ctl_kept_name("/memory:x"));
	return 0;
}

static void test_places(void)
{
	run(places, (struct ckt_ctl_args){0}, NULL);
}

static int partials(const struct ckt_ctl_args *args)
{
	struct ckt_ctl_partial partial, other;
	char path[256];
	(void)args;
	snprintf(path, sizeof path, "%s", path_in("image"));
	IS(ckt_ctl_partial_make(path, &partial), 0);
	NO(exists(path));
	IS(strncmp(partial.temporary, path, strlen(path)), 0);
	/* Another of ours leaves it alone, as it is locked; what nobody holds goes. */
	IS(mkdir(path_in("image.partial.dead"), 0700), 0);
	write_file(path_in("image.partial.dead/data-0"), "x");
	IS(mkdir(path_in("image.partial.dead/client"), 0700), 0);
	write_file(path_in("image.partial.dead/client/x"), "x");
	IS(mkdir(path_in("image2.partial.dead"), 0700), 0);
	IS(ckt_ctl_partial_make(path, &other), 0);
	YES(exists(partial.temporary) && !exists(path_in("image.partial.dead")) &&
		exists(path_in("image2.partial.dead")));
	ckt_ctl_partial_drop(&other);
	ckt_ctl_partial_drop(&other);
	NO(exists(other.path));
	write_file(path_in("x"), "x");
	int fd = openat(partial.fd, "manifest", O_WRONLY | O_CREAT, 0600);
	close(fd);
	IS(ckt_ctl_partial_keep(&partial), 0);
	YES(exists(path_in("image/manifest")));
	IS(partial.fd, -1);
	/* Its name is taken now; an empty directory may be replaced. */
	IS(ckt_ctl_partial_make(path, &other), CKT_EXIT_REFUSED);
	IS(ckt_ctl_partial_make(path_in("x"), &other), CKT_EXIT_REFUSED);
	IS(ckt_ctl_partial_make(path_in("nowhere/image"), &other), CKT_EXIT_REFUSED);
	IS(mkdir(path_in("empty"), 0700), 0);
	IS(ckt_ctl_partial_make(path_in("empty"), &other), 0);
	IS(ckt_ctl_partial_keep(&other), 0);
	YES(exists(path_in("empty")));
	return 0;
}

static void test_partial(void)
{
	run(partials, (struct ckt_ctl_args){0}, NULL);
	HAS(err, "exists and is not empty");
	HAS(err, "is not a directory");
}

static void test_base(void)
{
	char base[CKT_CTL_PATH_SIZE], expected[300];
	IS(mkdir(path_in("c"), 0700), 0);
	IS(mkdir(path_in("c/one"), 0700), 0);
	IS(mkdir(path_in("c/two"), 0700), 0);
	IS(mkdir(path_in("elsewhere"), 0700), 0);
	int fd = open(path_in("c/two"), O_RDONLY | O_DIRECTORY);
	NO(ckt_ctl_base_read(path_in("c/two"), base));
	/* A neighbour is named from beside, so that both may be moved. */
	IS(ckt_ctl_base_write(fd, path_in("c/two"), path_in("c/one")), 0);
	TEXT(read_file(path_in("c/two/base")), "../one\n");
	YES(ckt_ctl_base_read(path_in("c/two"), base));
	snprintf(expected, sizeof expected, "%s/c/two/../one", directory);
	TEXT(base, expected);
	IS(ckt_ctl_base_write(fd, path_in("c/two"), path_in("c/one")), -EEXIST);
	close(fd);
	fd = open(path_in("elsewhere"), O_RDONLY | O_DIRECTORY);
	IS(ckt_ctl_base_write(fd, path_in("elsewhere"), path_in("c/one")), 0);
	YES(ckt_ctl_base_read(path_in("elsewhere"), base));
	TEXT(base, path_in("c/one"));
	close(fd);
	fd = open(path_in("c/one"), O_RDONLY | O_DIRECTORY);
	IS(ckt_ctl_base_write(fd, path_in("c/one"), path_in("nowhere/x")), -ENOENT);
	close(fd);
	write_file(path_in("c/one/base"), "\n");
	NO(ckt_ctl_base_read(path_in("c/one"), base));
}

static void test_remove(void)
{
	char path[300];
	IS(mkdir(path_in("tree"), 0700), 0);
	snprintf(path, sizeof path, "%s/tree", directory);
	for (int i = 0; i < 5; i++) {
		strcat(path, "/d");
		IS(mkdir(path, 0700), 0);
	}
	write_file(path_in("tree/d/d/file"), "x");
	write_file(path_in("precious"), "x");
	IS(symlink(path_in("precious"), path_in("tree/link")), 0);
	IS(symlink(path_in("c"), path_in("tree/d/link")), 0);
	ckt_ctl_tree_remove(AT_FDCWD, path_in("tree"), 0);
	NO(exists(path_in("tree")));
	YES(exists(path_in("precious")) && exists(path_in("c/two"))); /* links are not followed */
	ckt_ctl_tree_remove(AT_FDCWD, path_in("tree"), 0);
}

static atomic_bool sweep;

static void *remover(void *unused)
{
	while (atomic_load(&sweep))
		ckt_ctl_stale_remove(directory, "made-");
	return unused;
}

/*
 * Others sweep what dead ones left while we make ours: it is never theirs, not even before it is
 * locked.
 */
static void test_made_while_others_sweep(void)
{
	pthread_t others[2];
	char path[300];
	atomic_store(&sweep, true);
	for (int i = 0; i < 2; i++)
		MUST(pthread_create(&others[i], NULL, remover, NULL), 0);
	for (int i = 0; i < 2000; i++) {
		int fd = -1, file;
		snprintf(path, sizeof path, "%s/made-XXXXXX", directory);
		MUST(ckt_ctl_directory_make(path, &fd), 0);
		file = openat(fd, "file", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
		IS(file >= 0, 1);
		close(file);
		ckt_ctl_cleanup_drop(path);
		ckt_ctl_tree_remove(AT_FDCWD, path, 0);
		close(fd);
	}
	atomic_store(&sweep, false);
	for (int i = 0; i < 2; i++)
		pthread_join(others[i], NULL);
	snprintf(path, sizeof path, "%s/nowhere/made-XXXXXX", directory);
	int fd;
	IS(ckt_ctl_directory_make(path, &fd), -ENOENT);
}

UNIT_SUITE(files, {"made while others sweep", test_made_while_others_sweep},
	{"places", test_places}, {"partial", test_partial}, {"base", test_base},
	{"remove", test_remove})
