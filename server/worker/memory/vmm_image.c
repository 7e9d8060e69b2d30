/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that the program maps itself in an image: addresses, physical memory, and what is mapped
 * where.
 */
#include "server/worker/memory/vmm_image.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "checkpoint/freeze/pause.h"
#include "checkpoint/load/image_load.h"
#include "checkpoint/save/image_save.h"
#include "server/worker/memory/vmm.h"
#include "server/worker/objects/object_kinds.h"
#include "server/worker/worker.h"

/* ---- Saving */

static int save_physical(struct ckt_saving *s, struct ckt_object *object)
{
	struct ckt_worker *worker = s->worker;
	uint64_t size = object->physical.size, address = ckt_vmm_window_on(worker, object);
	bool mapped = address != 0;
	CUresult result = CUDA_SUCCESS;
	if (!mapped)
		result = ckt_vmm_reserve(worker, object->physical.device, size, 0, 0, &address);
	if (!mapped && !result && !worker->checkpoint.paused)
		result = ckt_vmm_map(worker, address, size, 0, object->id);
	if (!mapped && !result && !worker->checkpoint.paused)
		result = ckt_vmm_set_access(
			worker, address, size, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
	s->image.physicals.physicals_val[s->image.physicals.physicals_len++] =
		(ckt_image_physical){.id = object->id,
			.device = object->physical.device,
			.size = size,
			.contents = address,
			.contents_only = !mapped};
	if (object->physical.compression)
		s->image.compressibles
			.compressibles_val[s->image.compressibles.compressibles_len++] =
			(ckt_image_compressible){object->id, object->physical.compression};
	if (result) {
		snprintf(s->message, s->message_size,
			"cannot read physical memory 0x%llx: CUDA error %d",
			(unsigned long long)object->id, result);
		return -EIO;
	}
	return ckt_save_add_pieces(
		s, 0, object->physical.device, address, ckt_pause_copy(0, object->id), size);
}

/* The tables first: addresses taken for the contents alone are not the program's. */
static int save_rest(struct ckt_saving *s)
{
	struct ckt_worker *worker = s->worker;
	struct ckt_vmm *vmm = &worker->vmm;
	ckt_image *image = &s->image;
	image->reservations.reservations_val =
		ckt_save_list(s, vmm->reservation_count, sizeof(ckt_image_reservation));
	image->mappings.mappings_val =
		ckt_save_list(s, vmm->mapping_count, sizeof(ckt_image_mapping));
	image->peer_accesses.peer_accesses_val =
		ckt_save_list(s, vmm->mapping_count, sizeof(ckt_image_peer_access));
	if (s->no_memory)
		return ckt_save_has_memory(s);
	for (size_t i = 0; i < vmm->reservation_count; i++)
		image->reservations.reservations_val[image->reservations.reservations_len++] =
			(ckt_image_reservation){
				vmm->reservations[i].address, vmm->reservations[i].size};
	for (size_t i = 0; i < vmm->mapping_count; i++) {
		struct ckt_mapping *m = &vmm->mappings[i];
		image->mappings.mappings_val[image->mappings.mappings_len++] =
			(ckt_image_mapping){m->address, m->size, m->offset, m->physical, m->access};
		if (m->readers | m->writers)
			image->peer_accesses
				.peer_accesses_val[image->peer_accesses.peer_accesses_len++] =
				(ckt_image_peer_access){m->address, m->readers, m->writers};
	}
	size_t count;
	struct ckt_object **objects = ckt_objects_in_order(&worker->objects, &count);
	s->no_memory |= !objects;
	image->physicals.physicals_val = ckt_save_list(s, count, sizeof(ckt_image_physical));
	image->compressibles.compressibles_val =
		ckt_save_list(s, count, sizeof(ckt_image_compressible));
	int result = ckt_save_has_memory(s);
	for (size_t i = 0; i < count && !result; i++)
		if (ckt_handle_kind(objects[i]->id) == CKT_KIND_PHYSICAL &&
			!objects[i]->physical.imported)
			result = save_physical(s, objects[i]);
	free(objects);
	return result;
}

/* Unmaps what was mapped only for the image. */
static void give_back(struct ckt_saving *s)
{
	for (unsigned i = 0; i < s->image.physicals.physicals_len && !s->vmm_given_back; i++) {
		const ckt_image_physical *physical = &s->image.physicals.physicals_val[i];
		if (physical->contents_only && physical->contents) {
			if (!s->worker->checkpoint.paused)
				ckt_vmm_unmap(s->worker, physical->contents, physical->size);
			ckt_vmm_free(s->worker, physical->contents, physical->size);
		}
	}
	s->vmm_given_back = true;
}

/* ---- Loading */

/*
 * Another session's physical memory is there later than this one's: then what it is mapped at
 * comes.
 */
static bool is_turn(const struct ckt_loading *l, uint64_t physical, bool imported)
{
	if (!l->image.shared_imports.shared_imports_len)
		return true;
	struct ckt_object *object =
		ckt_objects_find_kind(&l->worker->objects, physical, CKT_KIND_PHYSICAL);
	return imported ? physical && (!object || object->physical.imported) : object != NULL;
}

/* A GPU that could access another's memory must be able to here too, or its kernels would fault. */
static int map_for_peers(struct ckt_loading *l, bool imported)
{
	struct ckt_worker *worker = l->worker;
	for (unsigned i = 0; i < l->image.peer_accesses.peer_accesses_len; i++) {
		const ckt_image_peer_access *p = &l->image.peer_accesses.peer_accesses_val[i];
		uint64_t size = 0, physical = 0;
		for (unsigned k = 0; k < l->image.mappings.mappings_len && !size; k++)
			if (l->image.mappings.mappings_val[k].address == p->address) {
				size = l->image.mappings.mappings_val[k].size;
				physical = l->image.mappings.mappings_val[k].physical;
			}
		if (!is_turn(l, physical, imported))
			continue;
		for (unsigned d = 0; d < CKT_DEVICES_MAX; d++) {
			if (!((p->readers | p->writers) >> d & 1))
				continue;
			CUresult result = ckt_vmm_set_peer_access(worker, p->address, size, d,
				p->writers >> d & 1 ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE
						    : CU_MEM_ACCESS_FLAGS_PROT_READ);
			if (result)
				return ckt_load_fail(l, result,
					"a GPU's access to another's memory at", p->address);
		}
	}
	return 0;
}

static int load_mappings(struct ckt_loading *l, bool imported)
{
	struct ckt_worker *worker = l->worker;
	const ckt_image *image = &l->image;
	for (unsigned i = 0; i < image->mappings.mappings_len; i++) {
		const ckt_image_mapping *m = &image->mappings.mappings_val[i];
		if (!is_turn(l, m->physical, imported))
			continue;
		CUresult result = ckt_vmm_map(worker, m->address, m->size, m->offset, m->physical);
		if (!result && m->access)
			result = ckt_vmm_set_access(worker, m->address, m->size, m->access);
		if (result)
			return ckt_load_fail(l, result, "the mapping at", m->address);
	}
	return map_for_peers(l, imported);
}

static int load(struct ckt_loading *l)
{
	struct ckt_worker *worker = l->worker;
	const ckt_image *image = &l->image;
	uint64_t address;
	for (unsigned i = 0; i < image->reservations.reservations_len; i++) {
		const ckt_image_reservation *r = &image->reservations.reservations_val[i];
		CUresult result = ckt_vmm_reserve(worker, 0, r->size, 0, r->address, &address);
		if (result || address != r->address)
			return ckt_load_fail(l, result ? result : CUDA_ERROR_OUT_OF_MEMORY,
				"the reservation at", r->address);
	}
	for (unsigned i = 0; i < image->physicals.physicals_len; i++) {
		const ckt_image_physical *p = &image->physicals.physicals_val[i];
		CUresult result = ckt_vmm_physical_make(
			worker, p->id, p->device, p->size, ckt_load_compression(image, p->id));
		if (!result && p->contents_only) {
			result = ckt_vmm_reserve(
				worker, p->device, p->size, 0, p->contents, &address);
			if (!result && address != p->contents)
				result = CUDA_ERROR_OUT_OF_MEMORY;
			if (!result)
				result = ckt_vmm_map(worker, address, p->size, 0, p->id);
			if (!result)
				result = ckt_vmm_set_access(worker, address, p->size,
					CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
		}
		if (result)
			return ckt_load_fail(l, result, "physical memory", p->id);
	}
	return load_mappings(l, false);
}

int ckt_vmm_load_imported(struct ckt_loading *l)
{
	return load_mappings(l, true);
}

/* Unmaps what was mapped only for the contents. */
static int unmap_contents(struct ckt_loading *l)
{
	for (unsigned i = 0; i < l->image.physicals.physicals_len; i++) {
		const ckt_image_physical *p = &l->image.physicals.physicals_val[i];
		CUresult result = p->contents_only ? ckt_vmm_unmap(l->worker, p->contents, p->size)
						   : CUDA_SUCCESS;
		if (!result && p->contents_only)
			result = ckt_vmm_free(l->worker, p->contents, p->size);
		if (result)
			return ckt_load_fail(l, result, "physical memory", p->id);
	}
	return 0;
}

static void visit_contents(const ckt_image *image, ckt_contents_visit *visit, void *opaque)
{
	for (unsigned i = 0; i < image->physicals.physicals_len; i++) {
		const ckt_image_physical *p = &image->physicals.physicals_val[i];
		visit(&(struct ckt_contents){.owner = p->id,
			      .address = p->contents,
			      .size = p->size,
			      .device = p->device,
			      .context = ckt_handle_primary(p->device),
			      .taken = true},
			opaque);
	}
}

const struct ckt_object_kind ckt_physical_kind = {
	.name = "memory that the program maps",
	.handles = CKT_HANDLES(PHYSICAL),
	.save_rest = save_rest,
	.give_back = give_back,
	.stage = CKT_LOAD_MEMORY,
	.load_rest = load,
	.contents_loaded = unmap_contents,
	.contents = visit_contents,
};
