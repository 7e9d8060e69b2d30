/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server/worker/libs/genuine.c: a library is opened once, from where the server says, and a missing
 * one has one answer.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "server/worker/libs/genuine.h"
#include "tests/unit/worker/inside.h"
#include "tests/unit/worker/toy.h"

static void test_once(void)
{
	const struct ckt_genuine *genuine = NULL, *again = NULL;
	char message[1024] = "";
	toy_library();
	IS(ckt_genuine_open(&ckt_worker, "libtoy.so", 1, "", &genuine, message, sizeof message), 0);
	HAS(genuine->found.path, "libtoy.so.1");
	YES(dlsym(genuine->handle, "toy_alloc") == (void *)toy_library()->toy_alloc);
	IS(ckt_genuine_open(&ckt_worker, "libtoy.so", 2, "2.0", &again, message, sizeof message),
		0);
	YES(again == genuine);
	bool listed = false;
	for (unsigned i = 0; (again = ckt_genuine_at(i)); i++)
		listed |= again == genuine;
	YES(listed);
}

static void test_missing(void)
{
	const struct ckt_genuine *genuine = NULL;
	char message[1024] = "", again[1024] = "";
	setenv("CRICKET_LIBRARY_SOFT", "/nowhere", 1);
	IS(ckt_genuine_open(
		   &ckt_worker, "libmissing.so", 13, "13.1.0", &genuine, message, sizeof message),
		-ENOENT);
	HAS(message, "the server has no libmissing.so.13:");
	HAS(message, TOY_DIR);
	/* What is installed meanwhile is for the next session. */
	IS(ckt_genuine_open(
		   &ckt_worker, "libmissing.so", 13, "13.1.0", &genuine, again, sizeof again),
		-ENOENT);
	TEXT(again, message);
	/* There, and no library. */
	IS(ckt_genuine_open(&ckt_worker, "libbroken.so", 1, "", &genuine, message, sizeof message),
		-ENOEXEC);
	HAS(message, "libbroken.so.1");
	CU_ASSERT_PTR_NULL(genuine);
	unsetenv("CRICKET_LIBRARY_SOFT");
}

static void test_owner(void)
{
	const struct ckt_genuine *genuine = NULL;
	char message[1024] = "";
	char dir[] = "/tmp/genuine-XXXXXX", file[64],
	     *path = strdup(getenv("CRICKET_LIBRARY_PATH"));
	YES(mkdtemp(dir) != NULL);
	snprintf(file, sizeof file, "%s/libanothers.so.1", dir);
	close(open(file, O_CREAT | O_WRONLY | O_CLOEXEC, 0644));
	if (geteuid() == 0)
		IS(chown(file, 4242, 4242), 0);
	/* The server is another user's than the file. */
	setenv("CRICKET_LIBRARY_OWNER", "12345", 1);
	setenv("CRICKET_LIBRARY_SOFT", "", 1);
	setenv("CRICKET_LIBRARY_PATH", dir, 1);
	IS(ckt_genuine_open(
		   &ckt_worker, "libanothers.so", 1, "", &genuine, message, sizeof message),
		-ENOENT);
	HAS(message, "not taken");
	setenv("CRICKET_LIBRARY_PATH", path, 1);
	free(path);
	unlink(file);
	rmdir(dir);
	unsetenv("CRICKET_LIBRARY_OWNER");
	unsetenv("CRICKET_LIBRARY_SOFT");
}

UNIT_SUITE(libs_genuine, {"once", test_once}, {"missing", test_missing}, {"owner", test_owner})
