/* SPDX-License-Identifier: Apache-2.0 */
/* checkpoint/save/save_objects.c: every object, in the order of its making, by its kind's table. */
#include <errno.h>

#include "checkpoint/save/image_save.h"
#include "checkpoint/save/save.h"
#include "server/worker/objects/context.h"
#include "tests/unit/worker/inside_image.h"

/* In the order of their making, not of their ids. */
static void test_order(void)
{
	struct ckt_save s = {0};
	static const unsigned order[] = {43, 41, 42};
	for (unsigned i = 0; i < COUNT(order); i++)
		IS(ASK(event_create, .id = ID(EVENT, order[i])), CUDA_SUCCESS);
	image_files_new();
	MUST(image_save(&s), 0);
	ckt_image *image = image_read();
	MUST(image->events.events_len, COUNT(order));
	for (unsigned i = 0; i < COUNT(order); i++)
		IS(image->events.events_val[i].id, ID(EVENT, order[i]));
	image_free(image);
	image_files_close();
	for (unsigned i = 0; i < COUNT(order); i++)
		ckt_object_destroy(
			&ckt_worker, ckt_objects_find(&ckt_worker.objects, ID(EVENT, order[i])));
}

/* Of a kind that no table knows: no image, and the session goes on. */
static void test_unknown(void)
{
	struct ckt_save s = {0};
	struct ckt_object *object;
	MUST(ckt_objects_add(
		     &ckt_worker.objects, ID(USER_OBJECT, 1), CKT_KIND_USER_OBJECT, false, &object),
		CUDA_SUCCESS);
	image_files_new();
	IS(image_save(&s), -EOPNOTSUPP);
	HAS(image_message, "cannot be saved yet");
	image_files_close();
	ckt_objects_remove(&ckt_worker.objects, object);
	image_files_new();
	IS(image_save(&s), 0);
	image_files_close();
}

UNIT_SUITE(save_objects, {"order", test_order}, {"unknown", test_unknown})
