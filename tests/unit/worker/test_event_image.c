/* SPDX-License-Identifier: Apache-2.0 */
/* server/worker/objects/event_image.c: events keep the time between them. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "checkpoint/load/image_load.h"
#include "checkpoint/save/image_save.h"
#include "checkpoint/save/save.h"
#include "server/worker/objects/context.h"
#include "server/worker/objects/object_kinds.h"
#include "tests/unit/worker/inside_image.h"

static char message[CKT_MESSAGE_MAX];

static struct ckt_loading loading(void)
{
	message[0] = 0;
	return (struct ckt_loading){
		.worker = &ckt_worker, .message = message, .message_size = sizeof message};
}

static void test_event(void)
{
	struct ckt_save s = {0};
	CUevent base = ckt_worker.time_base;
	float base_ms = ckt_worker.image_base_ms, ms = -1;
	for (unsigned i = 0; i < 3; i++)
		IS(ASK(event_create, .id = ID(EVENT, 41 + i)), CUDA_SUCCESS);
	for (unsigned i = 0; i < 2; i++)
		IS(ASK(event_record, .event = ID(EVENT, 41 + i)), CUDA_SUCCESS);
	ckt_driver.cuCtxSynchronize();
	image_files_new();
	MUST(image_save(&s), 0);
	ckt_image *image = image_read();
	MUST(image->events.events_len, 3);
	ckt_image_event *saved = image->events.events_val;
	YES(saved[0].recorded && saved[0].timed && saved[1].timed && !saved[2].recorded);
	YES(saved[1].milliseconds >= saved[0].milliseconds);
	/* Made again, with times of its own. */
	for (unsigned i = 0; i < 3; i++)
		ckt_object_destroy(
			&ckt_worker, ckt_objects_find(&ckt_worker.objects, ID(EVENT, 41 + i)));
	saved[0].milliseconds = 5;
	saved[1].milliseconds = 25;
	struct ckt_loading l = loading();
	l.image = *image;
	for (unsigned i = 0; i < 3; i++)
		MUST(ckt_event_kind.load(&l, i), 0);
	MUST(ckt_event_kind.load_rest(&l), 0);
	YES(ckt_worker.image_base_ms == 25);
	struct ckt_object *second = ckt_objects_find(&ckt_worker.objects, ID(EVENT, 42));
	CU_ASSERT_PTR_NOT_NULL_FATAL(second);
	YES(second->event.recorded && second->event.from_image && second->event.image_ms == 25);
	/* The next image has them as this one. */
	image_free(image);
	image_files_close();
	image_files_new();
	MUST(image_save(&s), 0);
	image = image_read();
	ms = image->events.events_val[1].milliseconds - image->events.events_val[0].milliseconds;
	YES(ms == 20);
	image_free(image);
	image_files_close();
	for (unsigned i = 0; i < 3; i++)
		ckt_object_destroy(
			&ckt_worker, ckt_objects_find(&ckt_worker.objects, ID(EVENT, 41 + i)));
	ckt_driver.cuEventDestroy_v2(ckt_worker.time_base);
	ckt_worker.time_base = base;
	ckt_worker.image_base_ms = base_ms;
}

UNIT_SUITE(event_image, {"event", test_event})
