/* SPDX-License-Identifier: Apache-2.0 */
/* Looking kinds of objects up; see object_kind.h. */
#include "checkpoint/object_kind.h"

#include "rpc/handle.h"

const struct ckt_object_kind *ckt_object_kind_of(unsigned handle_kind)
{
	for (const struct ckt_object_kind *const *kind = ckt_object_kinds; *kind; kind++)
		if ((*kind)->handles >> handle_kind & 1)
			return *kind;
	return NULL;
}

const struct ckt_journal_step *ckt_journal_step_of(unsigned wanted)
{
	for (const struct ckt_object_kind *const *kind = ckt_object_kinds; *kind; kind++)
		for (const struct ckt_journal_step *step = (*kind)->steps; step && step->replay;
			step++)
			if (step->kind == wanted)
				return step;
	return NULL;
}

void ckt_contents_visit_all(const ckt_image *image, ckt_contents_visit *visit, void *opaque)
{
	for (const struct ckt_object_kind *const *kind = ckt_object_kinds; *kind; kind++)
		if ((*kind)->contents)
			(*kind)->contents(image, visit, opaque);
}

CUresult ckt_piece_move(const struct ckt_object *object, uint64_t id, uint64_t offset,
	uint64_t size, enum ckt_piece_way way, uint64_t at, CUstream stream)
{
	const struct ckt_object_kind *kind = ckt_object_kind_of(ckt_handle_kind(id));
	return kind && kind->move_piece ? kind->move_piece(object, offset, size, way, at, stream)
					: CUDA_ERROR_INVALID_HANDLE;
}
