/* SPDX-License-Identifier: Apache-2.0 */
/* base/trusted_file.c: whose files count. */
#include "base/trusted_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit/suite.h"

static void test_modes(void)
{
	char dir[] = "/tmp/trusted-XXXXXX", file[64], other[64], message[512] = "";
	uid_t us = geteuid();
	YES(mkdtemp(dir) != NULL);
	snprintf(file, sizeof file, "%s/file", dir);
	snprintf(other, sizeof other, "%s/link", dir);
	close(open(file, O_CREAT | O_WRONLY | O_CLOEXEC, 0644));
	IS(symlink(file, other), 0);
	/* /tmp itself is everybody's, and sticky. */
	IS(ckt_trusted_path(file, &us, 1, message, sizeof message), 0);
	IS(ckt_trusted_path(dir, &us, 1, message, sizeof message), 0);
	IS(ckt_trusted_path("/", &us, 1, message, sizeof message), 0);
	IS(ckt_trusted_path(other, &us, 1, message, sizeof message), -ELOOP);
	IS(ckt_trusted_path("relative", &us, 1, message, sizeof message), -EINVAL);
	IS(ckt_trusted_path("/nowhere/at/all", &us, 1, message, sizeof message), -ENOENT);
	HAS(message, "'/nowhere'");
	IS(chmod(file, 0646), 0);
	IS(ckt_trusted_path(file, &us, 1, message, sizeof message), -EPERM);
	HAS(message, "other users can write");
	HAS(message, file);
	IS(chmod(file, 0644), 0);
	IS(chmod(dir, 0757), 0);
	IS(ckt_trusted_path(file, &us, 1, message, sizeof message), -EPERM);
	/* Sticky: what lies there is its owner's alone. */
	IS(chmod(dir, 01777), 0);
	IS(ckt_trusted_path(file, &us, 1, message, sizeof message), 0);
	IS(chmod(dir, 0755), 0);
	unlink(other);
	unlink(file);
	rmdir(dir);
}

static void test_users(void)
{
	char dir[] = "/tmp/trusted-XXXXXX", message[512] = "";
	uid_t us = geteuid(), others[] = {12345, us};
	YES(mkdtemp(dir) != NULL);
	IS(ckt_trusted_path(dir, others, 2, message, sizeof message), 0);
	/* As root we can give it away. */
	if (us == 0) {
		IS(chown(dir, 4242, 4242), 0);
		others[1] = 4243;
		IS(ckt_trusted_path(dir, others, 2, message, sizeof message), -EPERM);
		HAS(message, "belongs to user 4242");
		others[1] = 4242;
		IS(ckt_trusted_path(dir, others, 2, message, sizeof message), 0);
		/* Its group may write: root's, or another. */
		IS(chmod(dir, 0775), 0);
		IS(ckt_trusted_path(dir, others, 2, message, sizeof message), -EPERM);
		IS(chown(dir, 4242, 0), 0);
		IS(ckt_trusted_path(dir, others, 2, message, sizeof message), 0);
	} else {
		IS(ckt_trusted_path(dir, others, 1, message, sizeof message), -EPERM);
	}
	rmdir(dir);
}

UNIT_SUITE(trusted, {"modes", test_modes}, {"users", test_users})
