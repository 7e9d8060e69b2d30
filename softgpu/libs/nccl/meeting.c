/* SPDX-License-Identifier: Apache-2.0 */
/* How ranks meet inside of workers; see meeting.h. */
#include "softgpu/libs/nccl/meeting.h"

#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/socket.h>
#include <unistd.h>

#include "softgpu/libs/nccl/mesh.h"

static _Atomic(const struct ckt_nccl_meeting *) host;

void ncclCricketMeetThrough(const struct ckt_nccl_meeting *meeting)
{
	atomic_store(&host, meeting);
}

bool ckt_soft_nccl_meeting_is_open(void)
{
	const struct ckt_nccl_meeting *meeting = atomic_load(&host);
	return !meeting || meeting->open;
}

int ckt_soft_nccl_meeting_announce(const uint8_t name[CKT_NCCL_MEETING_NAME])
{
	const struct ckt_nccl_meeting *meeting = atomic_load(&host);
	int ends[2];
	if (!meeting)
		return -ENOTCONN;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends))
		return -errno;
	int error = meeting->announce(name, ends[1]);
	if (!error)
		return ends[0];
	close(ends[0]);
	return error;
}

int ckt_soft_nccl_meeting_take(int door)
{
	char byte;
	int fd = -1;
	int error = ckt_soft_nccl_mesh_receive_descriptor(door, &byte, sizeof byte, &fd);
	return error ? error : fd < 0 ? -EPROTO : fd;
}

int ckt_soft_nccl_meeting_visit(const uint8_t name[CKT_NCCL_MEETING_NAME])
{
	const struct ckt_nccl_meeting *meeting = atomic_load(&host);
	return meeting ? meeting->visit(name) : -ENOTCONN;
}
