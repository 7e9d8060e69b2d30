/* checkpoint/save/save_objects.c: each object with what makes it again. */
#include <stdlib.h>

#include "checkpoint/save/image_save.h"
#include "tests/unit/worker/inside_image.h"

static const char ptx[] =
	".version 8.0\n.target sm_70\n.address_size 64\n"
	".visible .global .align 4 .u32 total = 77;\n.visible .entry nothing()\n{\n\tret;\n}\n";

static const ckt_image_module *module_of(const ckt_image *image, uint64_t id)
{
	for (unsigned i = 0; i < image->modules.modules_len; i++)
		if (image->modules.modules_val[i].id == id)
			return &image->modules.modules_val[i];
	return NULL;
}

static void test_objects(void)
{
	struct ckt_save s = {0};
	struct ckt_object *module = inside_module(ID(MODULE, 41), ptx), *function;
	MUST(ckt_stream_make(&ckt_worker, ID(STREAM, 41), CU_STREAM_NON_BLOCKING, -1),
		CUDA_SUCCESS);
	MUST(ckt_function_get(&ckt_worker, module, ID(FUNCTION, 41), "nothing", &function),
		CUDA_SUCCESS);
	IS(ASK(event_create, .id = ID(EVENT, 41)), CUDA_SUCCESS);
	IS(ASK(event_create, .id = ID(EVENT, 42)), CUDA_SUCCESS);
	IS(ASK(event_record, .event = ID(EVENT, 41)), CUDA_SUCCESS);
	IS(ASK(pool_create, .id = ID(POOL, 41), .max_bytes = 12345678), CUDA_SUCCESS);
	ckt_module_note_seen(module, "total");
	ckt_driver.cuCtxSynchronize();
	image_files_new();
	MUST(image_save(&s), 0);
	ckt_image *image = image_read();
	IS(image->streams.streams_len, 1);
	IS(image->streams.streams_val[0].id, ID(STREAM, 41));
	IS(image->streams.streams_val[0].flags, CU_STREAM_NON_BLOCKING);
	IS(image->streams.streams_val[0].priority, -1);
	IS(image->events.events_len, 2);
	YES(image->events.events_val[0].recorded && image->events.events_val[0].timed &&
		!image->events.events_val[1].recorded);
	IS(image->pools.pools_len, 3); /* one of each device, and its own */
	IS(image->pools.pools_val[2].max_bytes, 12345678);
	unsigned functions = 0;
	for (unsigned i = 0; i < image->functions.functions_len; i++)
		functions += image->functions.functions_val[i].id == function->id &&
			image->functions.functions_val[i].module == module->id;
	IS(functions, 1);
	const ckt_image_module *m = module_of(image, module->id);
	CU_ASSERT_PTR_NOT_NULL_FATAL(m);
	IS(m->globals.globals_len, 1);
	TEXT(m->globals.globals_val[0].name, "total");
	IS(image_word(image, m->globals.globals_val[0].address), 77);
	YES(image->seen_known);
	IS(image->seen.seen_len, 1);
	TEXT(image->seen.seen_val[0].name, "total");
	image_free(image);
	image_files_close();
	ckt_module_unload(&ckt_worker, module);
	for (unsigned i = 0; i < 2; i++)
		ckt_object_destroy(
			&ckt_worker, ckt_objects_find(&ckt_worker.objects, ID(EVENT, 41 + i)));
	ckt_object_destroy(&ckt_worker, ckt_objects_find(&ckt_worker.objects, ID(STREAM, 41)));
	IS(ASK(pool_destroy, .id = ID(POOL, 41)), CUDA_SUCCESS);
}

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

UNIT_SUITE(save_objects, {"objects", test_objects}, {"mapped nowhere", test_mapped_nowhere})
