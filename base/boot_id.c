/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel's boot id; see boot_id.h. */
#include "base/boot_id.h"

#include <fcntl.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

bool ckt_boot_id(char ret_text[CKT_BOOT_ID_SIZE])
{
	int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, ret_text, CKT_BOOT_ID_SIZE - 1);
	if (fd >= 0)
		close(fd);
	ret_text[n > 0 ? n : 0] = 0;
	ret_text[strcspn(ret_text, "\n")] = 0;
	return *ret_text;
}
