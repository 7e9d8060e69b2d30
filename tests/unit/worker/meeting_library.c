/* SPDX-License-Identifier: Apache-2.0 */
/* A library that meets through its worker, as the soft GPU's NCCL does, for test_nccl_meeting.c. */
#include <stddef.h>

struct ckt_nccl_meeting;
extern const struct ckt_nccl_meeting *meeting_library_told;
void ncclCricketMeetThrough(const struct ckt_nccl_meeting *given);

const struct ckt_nccl_meeting *meeting_library_told;

void ncclCricketMeetThrough(const struct ckt_nccl_meeting *given)
{
	meeting_library_told = given;
}
