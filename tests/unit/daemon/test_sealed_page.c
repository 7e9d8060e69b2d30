/* SPDX-License-Identifier: Apache-2.0 */
/* server/daemon/sealed_page.c: what one side writes the other reads, and none can cut it off. */
#include "server/daemon/sealed_page.h"

#include <errno.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "tests/unit/suite.h"

static void test_page(void)
{
	const void *read;
	int fd = ckt_sealed_page_make("cricket-test", 4096, &read);
	MUST(fd >= 0, true);
	IS(*(const uint64_t *)read, 0);
	uint64_t *write = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	MUST(write != MAP_FAILED, true);
	*write = 77;
	IS(*(const uint64_t *)read, 77);
	IS(ftruncate(fd, 0), -1);
	IS(errno, EPERM);
	IS(ftruncate(fd, 8192), -1);
	munmap(write, 4096);
	munmap((void *)read, 4096);
	close(fd);
	/* One that the server does not read. */
	fd = ckt_sealed_page_make("cricket-test", 4096, NULL);
	MUST(fd >= 0, true);
	IS(ftruncate(fd, 0), -1);
	close(fd);
}

static void test_none(void)
{
	struct rlimit limit, none;
	const void *page = &limit;
	MUST(getrlimit(RLIMIT_NOFILE, &limit), 0);
	none = limit;
	none.rlim_cur = 0;
	MUST(setrlimit(RLIMIT_NOFILE, &none), 0);
	int result = ckt_sealed_page_make("cricket-test", 4096, &page);
	MUST(setrlimit(RLIMIT_NOFILE, &limit), 0);
	IS(result, -EMFILE);
	YES(page == &limit);
	/* No memory has that size, and no descriptor stays. */
	int before = dup(0);
	close(before);
	YES(ckt_sealed_page_make("cricket-test", SIZE_MAX / 2, &page) < 0);
	int after = dup(0);
	close(after);
	IS(after, before);
}

UNIT_SUITE(sealed_page, {"page", test_page}, {"none", test_none})
