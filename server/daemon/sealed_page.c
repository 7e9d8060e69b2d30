/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of a worker and the server; see sealed_page.h. */
#include "server/daemon/sealed_page.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <unistd.h>

int ckt_sealed_page_make(const char *name, size_t size_bytes, const void **ret_page)
{
	int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0)
		return -errno;
	bool good = ftruncate(fd, (off_t)size_bytes) == 0 &&
		fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0;
	void *page = good && ret_page ? mmap(NULL, size_bytes, PROT_READ, MAP_SHARED, fd, 0) : NULL;
	if (!good || page == MAP_FAILED) {
		int result = -errno;
		close(fd);
		return result;
	}
	if (ret_page)
		*ret_page = page;
	return fd;
}
