/* SPDX-License-Identifier: Apache-2.0 */
/* server/daemon/session/restore_again.h: what a restore needs for a second worker. */
#include <fcntl.h>
#include <stdint.h>
#include <unistd.h>

#include "inside.h"
#include "server/daemon/session/restore_again.h"

static bool is_open(int fd)
{
	return fcntl(fd, F_GETFD) >= 0;
}

static void test_descriptors(void)
{
	const int files[] = {open("/dev/null", O_RDONLY), open("/dev/zero", O_RDONLY)};
	struct ckt_session_spec spec = {.image_fd = files[0],
					.image_fds = files,
					.image_count = 2,
					.ahead = true},
				copy;
	struct ckt_restore_again *again = ckt_restore_again_create(&spec);
	CU_ASSERT_PTR_NOT_NULL_FATAL(again);
	YES(ckt_restore_again_spec(again, &server, &copy));
	YES(copy.image_fd != files[0] && copy.image_fds[0] != files[0] &&
		copy.image_fds[1] != files[1]);
	IS(copy.image_count, 2);
	YES(copy.ahead);
	/* They outlive the first ones. */
	close(files[0]);
	close(files[1]);
	YES(is_open(copy.image_fd) && is_open(copy.image_fds[1]));
	int one = copy.image_fd, other = copy.image_fds[1];
	ckt_restore_again_destroy(again);
	NO(is_open(one) || is_open(other));
	/* One that cannot be copied is no second time. */
	spec = (struct ckt_session_spec){.image_fd = one};
	CU_ASSERT_PTR_NULL(ckt_restore_again_create(&spec));
	ckt_restore_again_destroy(NULL);
}

static void test_memory(void)
{
	/* Compared, never looked into, once it is gone. */
	struct ckt_restore_again gone = {
		.image_fd = -1, .kept = (const struct ckt_memory_image *)(uintptr_t)8};
	struct ckt_session_spec copy;
	NO(ckt_restore_again_spec(&gone, &server, &copy));
	gone.kept = NULL;
	YES(ckt_restore_again_spec(&gone, &server, &copy));
	IS(copy.image_fd, -1);
}

UNIT_SUITE(restore_again, {"descriptors", test_descriptors}, {"memory", test_memory})
