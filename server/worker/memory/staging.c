/* SPDX-License-Identifier: Apache-2.0 */
/* Pinned staging memory; see staging.h. */
#include "rpc/not_supported.h"
#include "server/worker/memory/staging.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "base/log.h"
#include "server/worker/session/host_budget.h"
#include "server/worker/driver.h"
#include "server/worker/objects/fence.h"
#include "server/worker/memory/fixed_address.h"

/* Below the window, far from where the loader and the driver put things. */
#define STAGING_BASE 0x1f0000000000ull

/* How many pieces of each kind: the ring is small, the rest is shared out. */
static int share_out(struct ckt_staging *staging, uint64_t bytes)
{
	uint64_t count = (bytes ? bytes : CKT_STAGING_BYTES) / CKT_STAGING_PIECE;
	if (count < CKT_STAGING_LEAST / CKT_STAGING_PIECE)
		count = CKT_STAGING_LEAST / CKT_STAGING_PIECE;
	uint64_t ring = count / 5 < CKT_STAGING_TO_DEVICE ? count / 5 : CKT_STAGING_TO_DEVICE,
		 lanes = (count - ring) / 2 < CKT_STAGING_LANES_MAX ? (count - ring) / 2
								    : CKT_STAGING_LANES_MAX;
	staging->to_device_count = (unsigned)ring;
	staging->lane_count = (unsigned)lanes;
	staging->to_host_count = (unsigned)(count - ring - lanes);
	staging->to_device = calloc(count, sizeof *staging->to_device);
	if (!staging->to_device)
		return -ENOMEM;
	staging->lanes = staging->to_device + ring;
	staging->to_host = staging->lanes + lanes;
	staging->size = count * CKT_STAGING_PIECE + CKT_STAGING_SMALLS * CKT_STAGING_SMALL;
	return 0;
}

static void pin(struct ckt_staging *staging)
{
	CUresult result = ckt_driver.cuMemHostRegister_v2
		? ckt_driver.cuMemHostRegister_v2(
			  staging->base, staging->size, CU_MEMHOSTREGISTER_PORTABLE)
		: CKT_INTERNAL_NOT_SUPPORTED;
	staging->registered = !result;
	if (result)
		ckt_warning("cannot pin %zu MiB of staging memory (CUDA error %d): large copies "
			    "are slower; raise RLIMIT_MEMLOCK, or lower --staging",
			staging->size >> 20, result);
}

int ckt_staging_init(struct ckt_staging *staging, uint64_t bytes)
{
	*staging = (struct ckt_staging){0};
	pthread_mutex_init(&staging->lock, NULL);
	pthread_cond_init(&staging->lane_freed, NULL);
	int result = share_out(staging, bytes);
	if (result)
		return result;
	void *at = ckt_fixed_address_map(STAGING_BASE, staging->size, MAP_POPULATE);
	if (!at)
		return -errno;
	staging->base = at;
	pin(staging);
	uint8_t *p = at;
	for (unsigned i = 0; i < staging->to_device_count; i++, p += CKT_STAGING_PIECE)
		staging->to_device[i] =
			(struct ckt_staging_piece){.data = p, .size = CKT_STAGING_PIECE};
	for (unsigned i = 0; i < staging->to_host_count; i++, p += CKT_STAGING_PIECE) {
		staging->to_host[i] = (struct ckt_staging_piece){
			.data = p, .size = CKT_STAGING_PIECE, .next_free = staging->free_to_host};
		staging->free_to_host = &staging->to_host[i];
	}
	for (unsigned i = 0; i < staging->lane_count; i++, p += CKT_STAGING_PIECE) {
		staging->lanes[i] = (struct ckt_staging_piece){.data = p,
			.size = CKT_STAGING_PIECE,
			.next_free = staging->free_lanes,
			.of_lanes = true};
		staging->free_lanes = &staging->lanes[i];
	}
	for (unsigned i = 0; i < CKT_STAGING_SMALLS; i++, p += CKT_STAGING_SMALL) {
		staging->smalls[i] = (struct ckt_staging_piece){
			.data = p, .size = CKT_STAGING_SMALL, .next_free = staging->free_smalls};
		staging->free_smalls = &staging->smalls[i];
	}
	return 0;
}

static void wait_piece(struct ckt_staging_piece *piece)
{
	if (!piece->event)
		return;
	/* An error belongs to the stream and is reported when the program asks. */
	if (ckt_driver.cuEventQuery(piece->event) == CUDA_ERROR_NOT_READY)
		ckt_driver.cuEventSynchronize(piece->event);
	ckt_fences_event_give(piece->fences, piece->event);
	piece->event = NULL;
}

struct ckt_staging_piece *ckt_staging_to_device(struct ckt_staging *staging)
{
	struct ckt_staging_piece *piece = &staging->to_device[staging->next_to_device];
	staging->next_to_device = (staging->next_to_device + 1) % staging->to_device_count;
	wait_piece(piece);
	return piece;
}

CUresult ckt_staging_sent(
	struct ckt_staging_piece *piece, struct ckt_fences *fences, CUstream stream)
{
	CUevent event;
	CUresult result = ckt_fences_event_take(fences, &event);
	if (!result) {
		result = ckt_driver.cuEventRecord(event, stream);
		if (!result) {
			piece->event = event;
			piece->fences = fences;
			return CUDA_SUCCESS;
		}
		ckt_fences_event_give(fences, event);
	}
	/* Without an event the piece must be idle before it is used again. */
	ckt_driver.cuStreamSynchronize(stream);
	return result;
}

void ckt_staging_forget(struct ckt_staging *staging, struct ckt_fences *fences)
{
	for (unsigned i = 0; i < staging->to_device_count; i++)
		if (staging->to_device[i].fences == fences)
			wait_piece(&staging->to_device[i]);
}

struct ckt_staging_piece *ckt_staging_to_host(struct ckt_staging *staging, size_t size)
{
	pthread_mutex_lock(&staging->lock);
	struct ckt_staging_piece **list = size <= CKT_STAGING_SMALL && staging->free_smalls
		? &staging->free_smalls
		: &staging->free_to_host;
	struct ckt_staging_piece *piece = *list;
	if (piece)
		*list = piece->next_free;
	pthread_mutex_unlock(&staging->lock);
	return piece;
}

struct ckt_staging_piece *ckt_staging_own(size_t size)
{
	struct ckt_staging_piece *piece =
		ckt_budget_charge(sizeof *piece + size, "bytes on their way to the client")
		? malloc(sizeof *piece + size)
		: NULL;
	if (piece)
		*piece = (struct ckt_staging_piece){
			.data = (uint8_t *)(piece + 1), .size = size, .own = true};
	return piece;
}

void ckt_staging_give(struct ckt_staging *staging, struct ckt_staging_piece *piece)
{
	if (piece->own) {
		ckt_budget_uncharge(sizeof *piece + piece->size);
		free(piece);
		return;
	}
	struct ckt_staging_piece **list = piece->of_lanes ? &staging->free_lanes
		: piece->size == CKT_STAGING_SMALL        ? &staging->free_smalls
							  : &staging->free_to_host;
	pthread_mutex_lock(&staging->lock);
	piece->next_free = *list;
	*list = piece;
	if (piece->of_lanes)
		pthread_cond_signal(&staging->lane_freed);
	pthread_mutex_unlock(&staging->lock);
}

struct ckt_staging_piece *ckt_staging_lane_take(struct ckt_staging *staging, _Atomic bool *gone)
{
	pthread_mutex_lock(&staging->lock);
	while (!staging->free_lanes && !atomic_load(gone))
		pthread_cond_wait(&staging->lane_freed, &staging->lock);
	struct ckt_staging_piece *piece = atomic_load(gone) ? NULL : staging->free_lanes;
	if (piece)
		staging->free_lanes = piece->next_free;
	pthread_mutex_unlock(&staging->lock);
	return piece;
}

void ckt_staging_lanes_wake(struct ckt_staging *staging)
{
	pthread_mutex_lock(&staging->lock);
	pthread_cond_broadcast(&staging->lane_freed);
	pthread_mutex_unlock(&staging->lock);
}
