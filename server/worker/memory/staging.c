/* SPDX-License-Identifier: Apache-2.0 */
/* Pinned staging memory; see staging.h. */
#include "server/worker/memory/staging.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "server/worker/session/host_budget.h"
#include "server/worker/driver.h"
#include "server/worker/objects/fence.h"
#include "server/worker/memory/fixed_address.h"

/* Below the window, far from where the loader and the driver put things. */
#define STAGING_BASE 0x1f0000000000ull

int ckt_staging_init(struct ckt_staging *staging)
{
	*staging = (struct ckt_staging){0};
	pthread_mutex_init(&staging->lock, NULL);
	staging->size = (size_t)(CKT_STAGING_TO_DEVICE + CKT_STAGING_TO_HOST) * CKT_STAGING_PIECE +
		CKT_STAGING_SMALLS * CKT_STAGING_SMALL;
	void *at = ckt_fixed_address_map(STAGING_BASE, staging->size, MAP_POPULATE);
	if (!at)
		return -errno;
	staging->base = at;
	staging->registered = ckt_driver.cuMemHostRegister_v2 &&
		ckt_driver.cuMemHostRegister_v2(at, staging->size, CU_MEMHOSTREGISTER_PORTABLE) ==
			CUDA_SUCCESS;
	uint8_t *p = at;
	for (unsigned i = 0; i < CKT_STAGING_TO_DEVICE; i++, p += CKT_STAGING_PIECE)
		staging->to_device[i] =
			(struct ckt_staging_piece){.data = p, .size = CKT_STAGING_PIECE};
	for (unsigned i = 0; i < CKT_STAGING_TO_HOST; i++, p += CKT_STAGING_PIECE) {
		staging->to_host[i] = (struct ckt_staging_piece){
			.data = p, .size = CKT_STAGING_PIECE, .next_free = staging->free_to_host};
		staging->free_to_host = &staging->to_host[i];
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
	staging->next_to_device = (staging->next_to_device + 1) % CKT_STAGING_TO_DEVICE;
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
	for (unsigned i = 0; i < CKT_STAGING_TO_DEVICE; i++)
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
	struct ckt_staging_piece **list =
		piece->size == CKT_STAGING_SMALL ? &staging->free_smalls : &staging->free_to_host;
	pthread_mutex_lock(&staging->lock);
	piece->next_free = *list;
	*list = piece;
	pthread_mutex_unlock(&staging->lock);
}
