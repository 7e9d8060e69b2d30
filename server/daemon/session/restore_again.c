/* SPDX-License-Identifier: Apache-2.0 */
/* A restore's second worker; see restore_again.h. */
#include "server/daemon/session/restore_again.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "server/daemon/image/memory_images.h"
#include "server/daemon/session/session.h"

static int copy_of(int fd)
{
	return fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 3);
}

void ckt_restore_again_destroy(struct ckt_restore_again *again)
{
	if (!again)
		return;
	if (again->image_fd >= 0)
		close(again->image_fd);
	for (unsigned i = 0; i < again->image_count; i++)
		if (again->image_fds[i] >= 0)
			close(again->image_fds[i]);
	free(again);
}

struct ckt_restore_again *ckt_restore_again_create(const struct ckt_session_spec *spec)
{
	struct ckt_restore_again *again = calloc(1, sizeof *again);
	if (!again)
		return NULL;
	again->ahead = spec->ahead;
	again->bond = spec->bond;
	again->image_fd = copy_of(spec->image_fd);
	bool good = spec->image_fd < 0 || again->image_fd >= 0;
	for (unsigned i = 0; i < spec->image_count && i < CKT_IMAGE_CHAIN_MAX; i++) {
		again->image_fds[again->image_count++] = copy_of(spec->image_fds[i]);
		good = good && again->image_fds[i] >= 0;
	}
	again->kept = spec->kept;
	if (spec->kept)
		ckt_memory_image_id(spec->kept, again->kept_id);
	if (good)
		return again;
	ckt_restore_again_destroy(again);
	return NULL;
}

bool ckt_restore_again_spec(const struct ckt_restore_again *again, const struct ckt_server *server,
	struct ckt_session_spec *ret_spec)
{
	*ret_spec = (struct ckt_session_spec){.image_fd = again->image_fd,
		.image_fds = again->image_fds,
		.image_count = again->image_count,
		.kept = again->kept,
		.ahead = again->ahead,
		.bond = again->bond};
	/* Another one may lie there by now. */
	return !again->kept || ckt_memory_image_is_kept(server, again->kept, again->kept_id);
}
