/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server/worker/memory/vmm_image.c: memory that the program maps itself; the other half, over the
 * wire, is test_load_memory.c.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "checkpoint/load/image_load.h"
#include "checkpoint/save/image_save.h"
#include "checkpoint/save/save.h"
#include "server/worker/objects/object_kinds.h"
#include "tests/unit/worker/inside_image.h"

/*
 * Memory that is mapped nowhere is mapped for the image alone: neither the image's tables nor the
 * session know of it afterwards.
 */
static void test_mapped_nowhere(void)
{
	struct ckt_save s = {0};
	struct ckt_vmm *vmm = &ckt_worker.vmm;
	size_t reservations = vmm->reservation_count, mappings = vmm->mapping_count;
	MUST(ASK(physical_create_compressible, .id = ID(PHYSICAL, 41), .device = 0, .size = 2 << 20,
		     .compression = 2),
		CUDA_ERROR_INVALID_VALUE);
	MUST(ASK(physical_create_compressible, .id = ID(PHYSICAL, 41), .device = 0, .size = 2 << 20,
		     .compression = CU_MEM_ALLOCATION_COMP_GENERIC),
		CUDA_SUCCESS);
	image_files_new();
	MUST(image_save(&s), 0);
	ckt_image *image = image_read();
	MUST(image->physicals.physicals_len, 1);
	const ckt_image_physical *p = &image->physicals.physicals_val[0];
	IS(p->id, ID(PHYSICAL, 41));
	IS(p->size, 2 << 20);
	MUST(image->compressibles.compressibles_len, 1);
	IS(image->compressibles.compressibles_val[0].physical, ID(PHYSICAL, 41));
	IS(image->compressibles.compressibles_val[0].compression, CU_MEM_ALLOCATION_COMP_GENERIC);
	YES(p->contents_only && p->contents);
	IS(image->reservations.reservations_len, reservations);
	IS(image->mappings.mappings_len, mappings);
	IS(vmm->reservation_count, reservations);
	IS(vmm->mapping_count, mappings);
	image_free(image);
	image_files_close();
	IS(ASK(physical_release, .id = ID(PHYSICAL, 41)), CUDA_SUCCESS);
}

/* An image that has the same memory as the session: each of the steps says what it is about. */
static void test_refused(void)
{
	char message[CKT_MESSAGE_MAX] = "";
	struct ckt_loading l = {
		.worker = &ckt_worker, .message = message, .message_size = sizeof message};
	ckt_image_reservation reservation = {.address = 4096, .size = 2 << 20};
	ckt_image_physical physical = {.id = ID(PHYSICAL, 43), .device = 99, .size = 2 << 20};
	ckt_image_mapping mapping = {
		.address = 4096, .size = 2 << 20, .physical = ID(PHYSICAL, 44)};
	l.image.reservations.reservations_val = &reservation;
	l.image.reservations.reservations_len = 1;
	YES(ckt_physical_kind.load_rest(&l) < 0);
	HAS(message, "the reservation at 0x1000");
	l.image.reservations.reservations_len = 0;
	l.image.physicals.physicals_val = &physical;
	l.image.physicals.physicals_len = 1;
	YES(ckt_physical_kind.load_rest(&l) < 0);
	HAS(message, "physical memory 0x");
	l.image.physicals.physicals_len = 0;
	l.image.mappings.mappings_val = &mapping;
	l.image.mappings.mappings_len = 1;
	YES(ckt_physical_kind.load_rest(&l) < 0);
	HAS(message, "the mapping at 0x1000");
}

UNIT_SUITE(vmm_image, {"mapped nowhere", test_mapped_nowhere}, {"refused", test_refused})
