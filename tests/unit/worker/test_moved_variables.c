/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Variables that lie elsewhere after a restore: harmless where nobody knows where they lay, refused
 * where somebody does.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "checkpoint/load/moved_variables.h"
#include "server/worker/objects/context.h"
#include "tests/unit/worker/inside.h"

static const char ptx[] =
	".version 8.0\n.target sm_70\n.address_size 64\n"
	".visible .global .align 8 .b8 first[64];\n.visible .global .align 8 .b8 second[32];\n"
	".visible .entry nothing()\n{\n\tret;\n}\n";

enum { WAS = 0x7123000 };

static ckt_image_module module;
static ckt_image_global globals[2];
static ckt_image_chunk chunks[3];
static ckt_image_context context;
static ckt_image_extent extent;
static ckt_image_device device;
static ckt_image image;
static CUdeviceptr addresses[2];

/* An image whose first variable lay at WAS and whose second lies where it lay. */
static void make(uint64_t memory)
{
	static const char *const names[] = {"first", "second"};
	struct ckt_object *object = ckt_objects_find(&ckt_worker.objects, ID(MODULE, 50));
	if (!object)
		object = inside_module(ID(MODULE, 50), ptx);
	for (int i = 0; i < 2; i++) {
		size_t size;
		MUST(ckt_driver.cuModuleGetGlobal_v2(&addresses[i], &size, object->real, names[i]),
			CUDA_SUCCESS);
		globals[i] = (ckt_image_global){
			.name = (char *)names[i], .address = i ? addresses[i] : WAS, .size = size};
	}
	module = (ckt_image_module){
		.id = object->id, .context = object->context, .globals = {2, globals}};
	chunks[0] = (ckt_image_chunk){.address = WAS, .size = 64};
	chunks[1] = (ckt_image_chunk){.space = 1, .address = WAS, .size = 64}; /* of a blob */
	chunks[2] = (ckt_image_chunk){.address = WAS + 64, .size = 4};         /* just behind it */
	context = (ckt_image_context){.id = object->context, .primary = true};
	extent = (ckt_image_extent){.address = memory, .size = 2 << 20};
	device = (ckt_image_device){.extents = {1, &extent}};
	image = (ckt_image){.modules = {1, &module},
		.chunks = {3, chunks},
		.contexts = {1, &context},
		.devices = {1, &device},
		.seen_known = true};
}

static void test_find(void)
{
	char message[CKT_MESSAGE_MAX] = "";
	struct ckt_moved moved = {0};
	make(0);
	IS(ckt_moved_find(&moved, &ckt_worker, &image, message, sizeof message), 0);
	IS(moved.count, 1);
	IS(moved.list[0].from, WAS);
	IS(moved.list[0].to, addresses[0]);
	IS(globals[0].address, addresses[0]);
	IS(chunks[0].address, addresses[0]); /* its contents go where it lies now */
	IS(chunks[1].address, WAS);
	IS(chunks[2].address, WAS + 64);
	ckt_moved_fini(&moved);
	/* it lies there now */
	IS(ckt_moved_find(&moved, &ckt_worker, &image, message, sizeof message), 0);
	IS(moved.count, 0);
	IS(ckt_moved_check(&moved, &ckt_worker, &image, message, sizeof message), 0);
	ckt_moved_fini(&moved);
}

static void test_refused(void)
{
	char message[CKT_MESSAGE_MAX] = "";
	struct ckt_moved moved = {0};
	ckt_image_seen seen[] = {{.module = ID(MODULE, 50), .name = (char *)"second"},
		{.module = ID(MODULE, 51), .name = (char *)"first"},
		{.module = ID(MODULE, 50), .name = (char *)"first"}};
	make(0);
	image.seen.seen_val = seen;
	image.seen.seen_len = 2; /* another variable, another module */
	IS(ckt_moved_find(&moved, &ckt_worker, &image, message, sizeof message), 0);
	ckt_moved_fini(&moved);
	make(0);
	image.seen.seen_val = seen;
	image.seen.seen_len = 3;
	IS(ckt_moved_find(&moved, &ckt_worker, &image, message, sizeof message), -EADDRNOTAVAIL);
	HAS(message, "variable first");
	HAS(message, "whose address the program knows");
	/* An image of before: the program may know all of them. */
	make(0);
	image.seen_known = false;
	IS(ckt_moved_find(&moved, &ckt_worker, &image, message, sizeof message), -EADDRNOTAVAIL);
	make(0);
	globals[1].size++;
	IS(ckt_moved_find(&moved, &ckt_worker, &image, message, sizeof message), -EIO);
	HAS(message, "another size");
	ckt_moved_fini(&moved);
	make(0);
	globals[1].name = (char *)"third";
	IS(ckt_moved_find(&moved, &ckt_worker, &image, message, sizeof message), -EIO);
	ckt_moved_fini(&moved);
	make(0);
	module.id = ID(MODULE, 52);
	IS(ckt_moved_find(&moved, &ckt_worker, &image, message, sizeof message), -EBADMSG);
	HAS(message, "journal");
	make(0);
	module.context = 12345;
	IS(ckt_moved_find(&moved, &ckt_worker, &image, message, sizeof message), -EBADMSG);
	ckt_moved_fini(&moved);
}

/* Whether a word of the session points there, wherever it lies. */
static void test_pointers(void)
{
	static const struct {
		uint64_t word;
		bool in_graph, refused;
	} cases[] = {
		{0, false, false},
		{WAS - 1, false, false},
		{WAS, false, true},
		{WAS + 64, false, true},
		{WAS + 65, false, false},
		{WAS + 8, true, true},
		{WAS + 100, true, false},
	};
	char message[CKT_MESSAGE_MAX] = "", graph[16];
	uint64_t memory = inside_memory(2 << 20, 0);
	ckt_image_graph saved = {.data = {sizeof graph, graph}};
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct ckt_moved moved = {0};
		uint64_t word = cases[i].in_graph ? 0 : cases[i].word;
		make(memory);
		memset(graph, 0, sizeof graph);
		ckt_put_u64((uint8_t *)graph + 4, cases[i].in_graph ? cases[i].word : 0);
		image.graphs.graphs_val = &saved;
		image.graphs.graphs_len = 1;
		MUST(ckt_driver.cuMemcpyHtoD_v2(memory + (1 << 20), &word, 8), CUDA_SUCCESS);
		IS(ckt_moved_find(&moved, &ckt_worker, &image, message, sizeof message), 0);
		ckt_worker.note[0] = 0;
		IS(ckt_moved_check(&moved, &ckt_worker, &image, message, sizeof message),
			cases[i].refused ? -EADDRNOTAVAIL : 0);
		if (cases[i].refused)
			HAS(message, "1 words of the session point to its old address");
		else
			HAS(ckt_worker.note, "1 variables of modules have moved");
		ckt_moved_fini(&moved);
	}
	ckt_worker.note[0] = 0;
	ckt_worker_use_context(&ckt_worker, ckt_handle_primary(0));
	inside_free(memory);
}

UNIT_SUITE(image_moved, {"find", test_find}, {"refused", test_refused}, {"pointers", test_pointers})
