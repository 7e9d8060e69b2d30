/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server/worker/libs/search.c: which of several files a library is, whose files count, and what is
 * said where there is none.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "server/worker/libs/search.h"
#include "tests/unit/suite.h"

static char root[64];

static void make_dirs(const char *path)
{
	char part[512];
	for (const char *slash = path + 1; (slash = strchr(slash, '/')); slash++) {
		snprintf(part, sizeof part, "%s%.*s", root, (int)(slash - path), path);
		mkdir(part, 0755);
	}
}

static void touch(const char *path)
{
	char whole[512];
	make_dirs(path);
	snprintf(whole, sizeof whole, "%s%s", root, path);
	int fd = open(whole, O_CREAT | O_WRONLY, 0644);
	YES(fd >= 0);
	close(fd);
}

static void link_to(const char *path, const char *target)
{
	char whole[512];
	make_dirs(path);
	snprintf(whole, sizeof whole, "%s%s", root, path);
	IS(symlink(target, whole), 0);
}

static const char *below(const char *path)
{
	static char whole[4][512];
	static unsigned next;
	next = (next + 1) % 4;
	snprintf(whole[next], sizeof whole[next], "%s%s", root, path);
	return whole[next];
}

static struct ckt_search fresh(void)
{
	strcpy(root, "/tmp/search-XXXXXX");
	YES(mkdtemp(root) != NULL);
	return (struct ckt_search){.root = root,
		.operator_path = "",
		.roots = "",
		.loader_path = "",
		.owners = {geteuid(), geteuid()}};
}

static void remove_tree(void)
{
	char command[128];
	snprintf(command, sizeof command, "rm -rf '%s'", root);
	IS(system(command), 0);
}

static struct ckt_search_found found;
static char message[1024];

static int find(const struct ckt_search *search, unsigned major, const char *version)
{
	*message = 0;
	return ckt_search_find(
		search, "libtoy.so", major, version, &found, message, sizeof message);
}

static void test_versions(void)
{
	YES(ckt_search_compare("13.1", "13.1") == 0);
	YES(ckt_search_compare("13.1", "13.1.0") < 0);
	YES(ckt_search_compare("13.10.1", "13.9.9") > 0);
	YES(ckt_search_compare("9", "13") < 0);
	struct ckt_search search = fresh();
	touch("/usr/local/cuda-13.0/lib64/libtoy.so.13.0.2");
	link_to("/usr/local/cuda-13.0/lib64/libtoy.so.13", "libtoy.so.13.0.2");
	link_to("/usr/local/cuda-13.0/lib64/libtoy.so", "libtoy.so.13");
	touch("/usr/local/cuda-13.10/targets/x86_64-linux/lib/libtoy.so.13.10.0");
	touch("/usr/local/cuda-12.9/lib64/libtoy.so.12.9.5");
	touch("/usr/local/cuda-12.9/lib64/libtoyLt.so.14.0.0");
	touch("/usr/local/cuda-12.9/lib64/libtoy.so.15.0.0-broken");
	link_to("/usr/local/cuda", "cuda-13.0");
	/*
	 * The client's own where it is there, else the highest of its major; without one, the
	 * highest of all.
	 */
	IS(find(&search, 13, "13.0.2"), 0);
	HAS(found.path, "/cuda-13.0/lib64/libtoy.so.13.0.2");
	TEXT(found.version, "13.0.2");
	IS(find(&search, 13, "13.0"), 0);
	TEXT(found.version, "13.0.2");
	IS(find(&search, 13, "13.1"), 0);
	TEXT(found.version, "13.10.0");
	IS(find(&search, 13, "13.5.0"), 0);
	TEXT(found.version, "13.10.0");
	IS(find(&search, 12, ""), 0);
	TEXT(found.version, "12.9.5");
	IS(found.major, 12);
	IS(find(&search, 0, ""), 0);
	IS(found.major, 13);
	IS(find(&search, 11, "11.0.1"), -ENOENT);
	HAS(message, "the server has no libtoy.so.11:");
	HAS(message, "cuda-13.0/lib64");
	HAS(message, "--library-path");
	remove_tree();
}

static void test_rows(void)
{
	struct ckt_search search = fresh();
	char path[1024];
	touch("/usr/local/cuda-13.0/lib64/libtoy.so.13.0.2");
	touch("/usr/lib/python3.11/dist-packages/nvidia/cu13/lib/libtoy.so.13");
	touch("/home/x/.local/lib/python3.12/site-packages/nvidia/toy/lib/libtoy.so.12");
	touch("/etc/ld.so.conf.d/x.conf");
	touch("/opt/loader/libtoy.so.11.2");
	touch("/opt/own/libtoy.so.13.0.1");
	FILE *conf = fopen(below("/etc/ld.so.conf.d/x.conf"), "w");
	fprintf(conf, "# where it is\n%s\n", below("/opt/loader"));
	fclose(conf);
	IS(find(&search, 13, ""), 0);
	TEXT(found.version, "13.0.2");
	IS(find(&search, 12, ""), -ENOENT);
	search.roots = below("/home/x/.local");
	IS(find(&search, 12, ""), 0);
	HAS(found.path, "/nvidia/toy/lib/libtoy.so.12");
	IS(find(&search, 11, ""), 0);
	HAS(found.path, "/opt/loader/");
	/*
	 * The operator's directories go before all, whatever lies elsewhere; relative ones are
	 * none.
	 */
	snprintf(path, sizeof path, "relative:/nowhere:%s:", below("/opt/own"));
	search.operator_path = path;
	IS(find(&search, 13, "13.0.2"), 0);
	TEXT(found.version, "13.0.1");
	IS(find(&search, 11, ""), 0);
	/* With the soft GPU nothing genuine is taken but from there. */
	search.soft_path = below("/opt/loader");
	IS(find(&search, 13, ""), 0);
	TEXT(found.version, "13.0.1");
	IS(find(&search, 11, ""), 0);
	IS(find(&search, 12, ""), -ENOENT);
	HAS(message, "soft GPU");
	remove_tree();
}

static void test_strangers(void)
{
	struct ckt_search search = fresh();
	touch("/usr/local/cuda-13.0/lib64/libtoy.so.13.0.2");
	touch("/usr/local/cuda-13.1/lib64/libtoy.so.13.1.0");
	/* The newer one can be replaced by others. */
	IS(chmod(below("/usr/local/cuda-13.1/lib64"), 0777), 0);
	IS(find(&search, 13, "13.1.0"), 0);
	TEXT(found.version, "13.0.2");
	IS(chmod(below("/usr/local/cuda-13.0/lib64/libtoy.so.13.0.2"), 0666), 0);
	IS(find(&search, 13, ""), -ENOENT);
	HAS(message, "not taken: other users can write");
	IS(chmod(below("/usr/local/cuda-13.0/lib64/libtoy.so.13.0.2"), 0644), 0);
	IS(find(&search, 13, ""), 0);
	/*
	 * Another's file: here everything is ours, and nobody is trusted but user 12345 and root.
	 */
	search.owners[0] = search.owners[1] = 12345;
	if (geteuid() == 0)
		IS(chown(root, 4242, 4242), 0);
	IS(find(&search, 13, ""), -ENOENT);
	HAS(message, "belongs to user");
	remove_tree();
}

UNIT_SUITE(search, {"versions", test_versions}, {"rows", test_rows}, {"strangers", test_strangers})
