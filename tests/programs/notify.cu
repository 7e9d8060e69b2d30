/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Async notifications: callbacks run when the process has more memory than its budget, also after the mid point.  The second argument
 * says that the device has a budget of 128 MiB; nothing is told natively, where there is none.
 */
#include "phase.h"

#include <atomic>

struct told {
	std::atomic<unsigned> count;
	cudaAsyncCallbackHandle_t handle;
	cudaError_t nested;
	bool right;
};

static void notified(cudaAsyncNotificationInfo_t *info, void *data, cudaAsyncCallbackHandle_t handle)
{
	struct told *told = (struct told *)data;
	cudaAsyncCallbackHandle_t other;

	told->handle = handle;
	told->right = info->type == cudaAsyncNotificationTypeOverBudget && info->info.overBudget.bytesOverBudget > 0;
	told->nested = cudaDeviceRegisterAsyncNotification(0, notified, data, &other);
	told->count++;
}

static bool budget;

/* Whether it is told once more than before. */
static bool reaches(struct told *told, unsigned before)
{
	for (int i = 0; i < 60000 && budget && told->count <= before; i++)
		usleep(1000);
	return !budget || told->count > before;
}

static void allocate(size_t mib)
{
	void *memory;

	CHECK(cudaMalloc(&memory, mib << 20));
}

int main(int argc, char **)
{
	static struct told a, b;
	cudaAsyncCallbackHandle_t first, second;
	unsigned before_a, before_b;

	budget = argc > 2;
	CHECK(cudaDeviceRegisterAsyncNotification(0, notified, &a, &first));
	CHECK(cudaDeviceRegisterAsyncNotification(0, notified, &b, &second));
	EXPECT(first != second);
	allocate(160);
	EXPECT(reaches(&a, 0) && reaches(&b, 0));
	EXPECT(!budget || (a.handle == first && b.handle == second && a.right && b.right));
	EXPECT(!budget || a.nested == cudaErrorNotPermitted);
	printf("told\n");
	phase();
	before_a = a.count, before_b = b.count;
	allocate(64);
	EXPECT(reaches(&a, before_a) && reaches(&b, before_b));
	printf("told after the mid point\n");
	CHECK(cudaDeviceUnregisterAsyncNotification(0, first));
	before_a = a.count, before_b = b.count;
	allocate(64);
	EXPECT(reaches(&b, before_b));
	CHECK(cudaDeviceUnregisterAsyncNotification(0, second));
	before_b = b.count;
	allocate(64);
	usleep(20000);
	EXPECT(a.count == before_a && b.count == before_b);
	/* NVIDIA's driver dies of a registration that is gone (seen on an H200); ours refuses it. */
	if (budget)
		EXPECT_ERROR(cudaDeviceUnregisterAsyncNotification(0, second), cudaErrorInvalidValue);
	printf("told no more\n");
	return finish();
}
