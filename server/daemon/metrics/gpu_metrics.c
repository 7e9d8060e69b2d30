/* SPDX-License-Identifier: Apache-2.0 */
/* Metrics of GPUs; see gpu_metrics.h. */
#include "server/daemon/metrics/gpu_metrics.h"

#include "server/daemon/metrics/families.h"
#include "server/daemon/nvml/gpu_health.h"
#include "server/daemon/server.h"

/* One GPU at the time of a scrape. */
struct gpu {
	const struct ckt_driver_gpu *device;
	char number[16], uuid[CKT_GPU_UUID_TEXT];
	const struct ckt_gpu_sample *sample; /* NULL: none */
	const struct ckt_ledger *ledger;
	unsigned index;
	uint64_t held_bytes;
	bool soft;
	int64_t now_ms;
};

/* Bits of nvmlClocksEventReasons.  An idle GPU is not throttled. */
static const struct {
	uint64_t bit;
	const char *reason;
} reasons[] = {
	{0x2, "application_clocks"},
	{0x4, "power_cap"},
	{0x8, "hardware_slowdown"},
	{0x10, "sync_boost"},
	{0x20, "thermal"},
	{0x40, "hardware_thermal"},
	{0x80, "power_brake"},
};

static bool value_of(const struct gpu *gpu, enum ckt_reader_value which, uint64_t *ret_value)
{
	return gpu->sample && ckt_gpu_health_value(gpu->sample, gpu->now_ms, which, ret_value);
}

static void put(struct ckt_metric_writer *to, const struct gpu *gpu, double value)
{
	ckt_metric_put(
		to, (const char *const[]){"gpu", gpu->number, "uuid", gpu->uuid, NULL}, value);
}

static void put_free(struct ckt_metric_writer *to, const struct gpu *gpu)
{
	/* A budget counts contexts, too; without one nobody counts them, and NVML knows. */
	uint64_t budget = gpu->ledger->budgets[gpu->index], most;
	uint64_t all = budget ? budget : gpu->device->memory_bytes;
	uint64_t taken = budget ? ckt_ledger_budget_used(gpu->ledger, gpu->index) : gpu->held_bytes;
	uint64_t left = taken < all ? all - taken : 0;
	if (value_of(gpu, CKT_HEALTH_FREE_BYTES, &most) && most < left)
		left = most;
	if (gpu->sample && !ckt_gpu_health_is_up(gpu->sample, gpu->now_ms))
		left = 0;
	put(to, gpu, (double)left);
}

static void put_info(struct ckt_metric_writer *to, const struct gpu *gpu)
{
	ckt_metric_put(to,
		(const char *const[]){"gpu", gpu->number, "uuid", gpu->uuid, "name",
			gpu->device->name, "pci", gpu->device->pci_bus_id, NULL},
		1);
}

static void put_up(struct ckt_metric_writer *to, const struct gpu *gpu)
{
	const struct ckt_gpu_sample *sample = gpu->sample;
	bool up = gpu->soft || (sample && ckt_gpu_health_is_up(sample, gpu->now_ms));
	/* An old sample says that it was up, and not that it is. */
	if (gpu->soft || (sample && (!up || gpu->now_ms - sample->when_ms <= CKT_GPU_OLD_MS)))
		put(to, gpu, up);
}

static void put_used(struct ckt_metric_writer *to, const struct gpu *gpu)
{
	uint64_t used;
	put(to, gpu,
		(double)(value_of(gpu, CKT_HEALTH_USED_BYTES, &used) ? used : gpu->held_bytes));
}

/* Nothing where NVML does not say it. */
static void put_value(struct ckt_metric_writer *to, const struct gpu *gpu,
	enum ckt_reader_value which, double divisor)
{
	uint64_t value;
	if (value_of(gpu, which, &value))
		put(to, gpu, (double)value / divisor);
}

static void put_busy(struct ckt_metric_writer *to, const struct gpu *gpu)
{
	put_value(to, gpu, CKT_HEALTH_BUSY_PERCENT, 100);
}

static void put_celsius(struct ckt_metric_writer *to, const struct gpu *gpu)
{
	put_value(to, gpu, CKT_HEALTH_CELSIUS, 1);
}

static void put_watts(struct ckt_metric_writer *to, const struct gpu *gpu)
{
	put_value(to, gpu, CKT_HEALTH_MILLIWATTS, 1000);
}

static void put_throttled(struct ckt_metric_writer *to, const struct gpu *gpu)
{
	uint64_t bits;
	if (!value_of(gpu, CKT_HEALTH_THROTTLED, &bits))
		return;
	for (unsigned i = 0; i < sizeof reasons / sizeof *reasons; i++)
		ckt_metric_put(to,
			(const char *const[]){"gpu", gpu->number, "uuid", gpu->uuid, "reason",
				reasons[i].reason, NULL},
			bits & reasons[i].bit ? 1 : 0);
}

static void put_errors(struct ckt_metric_writer *to, const struct gpu *gpu)
{
	uint64_t count;
	for (unsigned i = 0; i < 2; i++)
		if (value_of(gpu, i ? CKT_HEALTH_UNCORRECTED : CKT_HEALTH_CORRECTED, &count))
			ckt_metric_put(to,
				(const char *const[]){"gpu", gpu->number, "uuid", gpu->uuid, "kind",
					i ? "uncorrected" : "corrected", NULL},
				(double)count);
}

static void put_age(struct ckt_metric_writer *to, const struct gpu *gpu)
{
	if (gpu->sample)
		put(to, gpu, (double)(gpu->now_ms - gpu->sample->when_ms) * 1e-3);
}

static const struct {
	enum ckt_metric metric;
	void (*put)(struct ckt_metric_writer *to, const struct gpu *gpu);
} families[] = {
	{CKT_METRIC_GPU_FREE, put_free},
	{CKT_METRIC_GPU_INFO, put_info},
	{CKT_METRIC_GPU_UP, put_up},
	{CKT_METRIC_GPU_USED, put_used},
	{CKT_METRIC_GPU_BUSY, put_busy},
	{CKT_METRIC_GPU_CELSIUS, put_celsius},
	{CKT_METRIC_GPU_WATTS, put_watts},
	{CKT_METRIC_GPU_THROTTLED, put_throttled},
	{CKT_METRIC_GPU_ERRORS, put_errors},
	{CKT_METRIC_GPU_AGE, put_age},
};

void ckt_metrics_put_gpus(const struct ckt_server *server, struct ckt_metric_writer *to,
	const uint64_t held[CKT_DEVICES_MAX])
{
	int64_t now = ckt_net_now_ms();
	for (unsigned f = 0; f < sizeof families / sizeof *families; f++) {
		ckt_metric_begin(to, families[f].metric);
		for (unsigned i = 0; i < server->driver.gpu_count && i < CKT_DEVICES_MAX; i++) {
			struct gpu gpu = {.device = &server->driver.gpus[i],
				.sample = ckt_gpu_health_of(server, i),
				.ledger = &server->ledger,
				.index = i,
				.held_bytes = held[i],
				.soft = server->driver.soft,
				.now_ms = now};
			snprintf(gpu.number, sizeof gpu.number, "%u", i);
			ckt_driver_uuid_text(gpu.device, gpu.uuid);
			families[f].put(to, &gpu);
		}
	}
}
