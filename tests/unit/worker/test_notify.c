/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server/worker/session/notify.c: what the driver tells goes to the client, again to one that comes
 * back, and into the image.
 */
#include "checkpoint/save/save.h"
#include "server/worker/session/notify.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "checkpoint/load/image_load.h"
#include "server/worker/objects/object_kinds.h"
#include "tests/unit/worker/inside_image.h"

enum { FIRST = 5, SECOND = 6, ELSEWHERE = 7 };

struct told {
	uint64_t number, instance, over;
	uint32_t type;
};

static uint8_t bytes[4096];

static unsigned told(struct told *ret, unsigned room)
{
	unsigned count = 0;
	struct ckt_cursor c = {.p = bytes, .end = bytes + inside_sent(bytes, sizeof bytes)};
	while (c.p < c.end && count < room) {
		struct ckt_call_header header;
		IS(ckt_get_u32(&c), 0x80000000u | (CKT_CALL_HEADER_SIZE + 28));
		struct ckt_cursor record = {.p = c.p, .end = c.p + CKT_CALL_HEADER_SIZE + 28};
		c.p = record.end;
		YES(ckt_call_header_get(&record, &header));
		IS(header.prog, CRICKET_CALLBACK_PROG);
		IS(header.proc, CKT_CALLBACK_NOTIFY);
		struct told *t = &ret[count++];
		t->number = ckt_get_u64(&record);
		t->instance = ckt_get_u64(&record);
		t->type = ckt_get_u32(&record);
		t->over = ckt_get_u64(&record);
		YES(ckt_cursor_done(&record));
	}
	return count;
}

/* They come on a thread of the driver. */
static unsigned wait_told(struct told *ret, unsigned wanted)
{
	unsigned count = 0;
	for (int i = 0; i < 60000 && count < wanted; i++) {
		ckt_notifications_send(&ckt_worker);
		count += told(ret + count, wanted - count);
		poll(NULL, 0, 1);
	}
	return count;
}

static CUdeviceptr over_budget(void)
{
	CUdeviceptr memory = 0;
	MUST(ckt_driver.cuMemAlloc_v2(&memory, 1536u << 20), CUDA_SUCCESS);
	return memory;
}

static void test_told(void)
{
	struct told t[4] = {0}, again[4] = {0};
	IS(ASK(device_notify, .device = 0, .number = FIRST), CUDA_SUCCESS);
	IS(ASK(device_notify, .device = 0, .number = SECOND), CUDA_SUCCESS);
	IS(ASK(device_notify, .device = 1, .number = ELSEWHERE), CUDA_SUCCESS);
	IS(ASK(device_notify, .device = 1, .number = FIRST), CUDA_ERROR_INVALID_VALUE); /* taken */
	IS(ASK(device_notify, .device = 2, .number = 8), CUDA_ERROR_INVALID_DEVICE);
	ckt_driver.cuMemFree_v2(over_budget());
	MUST(wait_told(t, 2), 2);
	IS(t[0].number + t[1].number, FIRST + SECOND);
	for (unsigned i = 0; i < 2; i++) {
		IS(t[i].type, CU_ASYNC_NOTIFICATION_TYPE_OVER_BUDGET);
		IS(t[i].instance >> 40, ckt_worker.generation);
		YES(t[i].over >= 512u << 20 && t[i].over < 3ull << 30);
	}
	/* Once, until a new connection asks: under the same instances. */
	ckt_notifications_send(&ckt_worker);
	IS(told(again, 4), 0);
	ckt_notifications_resend(&ckt_worker);
	MUST(told(again, 4), 2);
	IS(again[0].instance, t[again[0].number == t[0].number ? 0 : 1].instance);
	/* One that is gone is told nothing. */
	IS(ASK(device_notify_end, .number = FIRST), CUDA_SUCCESS);
	IS(ASK(device_notify_end, .number = FIRST), CUDA_ERROR_INVALID_VALUE);
	ckt_driver.cuMemFree_v2(over_budget());
	MUST(wait_told(again, 1), 1);
	IS(again[0].number, SECOND);
	YES(again[0].instance > t[0].instance && again[0].instance > t[1].instance);
	poll(NULL, 0, 20);
	ckt_notifications_send(&ckt_worker);
	IS(told(again, 4), 0);
	IS(CUT(device_notify, .device = 0, .number = 1), 0);
	IS(CUT(device_notify_end, .number = 1), 0);
}

static int load(struct ckt_loading *l)
{
	int error = 0;
	for (unsigned i = 0; i < l->image.notifications.notifications_len && !error; i++)
		error = ckt_notification_kind.load(l, i);
	return error;
}

/*
 * Made again from an image, they have been told nothing on their new connection, and the driver
 * knows them.
 */
static void test_image(void)
{
	struct ckt_save s = {0};
	struct told t[2] = {0};
	char message[CKT_MESSAGE_MAX] = "";
	image_files_new();
	MUST(image_save(&s), 0);
	ckt_image *image = image_read();
	MUST(image->notifications.notifications_len, 2);
	const ckt_image_notification *second = &image->notifications.notifications_val[0],
				     *elsewhere = second + 1;
	IS(second->number, SECOND);
	IS(second->type, CU_ASYNC_NOTIFICATION_TYPE_OVER_BUDGET);
	YES(second->instance && second->over_bytes);
	IS(elsewhere->number, ELSEWHERE);
	IS(elsewhere->device, 1);
	IS(elsewhere->instance, 0);
	IS(ASK(device_notify_end, .number = SECOND), CUDA_SUCCESS);
	IS(ASK(device_notify_end, .number = ELSEWHERE), CUDA_SUCCESS);
	struct ckt_loading l = {.worker = &ckt_worker,
		.message = message,
		.message_size = sizeof message,
		.image = *image};
	MUST(load(&l), 0);
	ckt_notifications_send(&ckt_worker);
	MUST(told(t, 2), 1);
	IS(t[0].number, SECOND);
	IS(t[0].instance, second->instance);
	ckt_driver.cuMemFree_v2(over_budget());
	MUST(wait_told(t, 1), 1);
	IS(t[0].number, SECOND);
	YES(t[0].instance > second->instance);
	/* An image that names one twice, or another's device, is refused. */
	YES(load(&l) < 0);
	image->notifications.notifications_val[0] =
		(ckt_image_notification){.number = 9, .device = 2};
	YES(load(&l) < 0);
	image_free(image);
	image_files_close();
	IS(ASK(device_notify_end, .number = SECOND), CUDA_SUCCESS);
	IS(ASK(device_notify_end, .number = ELSEWHERE), CUDA_SUCCESS);
}

/* A driver without them: refused for a call, and a session from elsewhere goes on. */
static void test_without(void)
{
	char message[CKT_MESSAGE_MAX] = "";
	struct ckt_loading l = {
		.worker = &ckt_worker, .message = message, .message_size = sizeof message};
	ckt_image_notification saved = {.number = 77};
	struct ckt_driver before = ckt_driver;
	l.image.notifications.notifications_len = 1;
	l.image.notifications.notifications_val = &saved;
	ckt_driver.cuDeviceRegisterAsyncNotification = NULL;
	IS(ASK(device_notify, .device = 0, .number = FIRST), CUDA_ERROR_NOT_SUPPORTED);
	IS(ASK(device_notify_end, .number = FIRST), CUDA_ERROR_INVALID_VALUE);
	IS(load(&l), 0);
	IS(ASK(device_notify_end, .number = 77), CUDA_SUCCESS);
	ckt_driver = before;
}

static void test_many(void)
{
	int result = 0;
	for (unsigned i = 0; i < CKT_NOTIFICATIONS_MAX && !result; i++)
		result = ASK(device_notify, .device = 0, .number = 1000 + i);
	IS(result, CUDA_SUCCESS);
	IS(ASK(device_notify, .device = 0, .number = FIRST), CUDA_ERROR_OUT_OF_MEMORY);
	for (unsigned i = 0; i < CKT_NOTIFICATIONS_MAX && !result; i++)
		result = ASK(device_notify_end, .number = 1000 + i);
	IS(result, CUDA_SUCCESS);
}

UNIT_SUITE(notify, {"told", test_told}, {"image", test_image}, {"without", test_without},
	{"many", test_many})
