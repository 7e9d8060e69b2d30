/* SPDX-License-Identifier: Apache-2.0 */
/* server/daemon/metrics/gpu_metrics.h: figures of GPUs with and without NVML, with a budget, and of one that is lost. */
#include "server/daemon/metrics/gpu_metrics.h"

#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "inside.h"
#include "server/daemon/metrics/families.h"
#include "server/daemon/nvml/gpu_health.h"
#include "server/daemon/nvml/nvml.h"

static struct ckt_driver_info kept;
static uint64_t held[CKT_DEVICES_MAX];

static void begin(void)
{
	kept = server.driver;
	server.driver.gpu_count = 1;
	server.driver.gpus[0] = (struct ckt_driver_gpu){
		.memory_bytes = 1ull << 40, .name = "A \"GPU\"", .pci_bus_id = "0000:01:00.0"};
	memset(server.driver.gpus[0].uuid, 0x11, 16);
	held[0] = 1 << 20;
}

static void end(void)
{
	server.ledger.budgets[0] = 0;
	server.driver = kept;
}

#define GPU "{gpu=\"0\",uuid=\"GPU-11111111-1111-1111-1111-111111111111\""

/* @param text the caller's to free */
static void put_text(char **text)
{
	size_t size;
	struct ckt_metric_writer to = {.to = open_memstream(text, &size)};
	ckt_metrics_put_gpus(&server, &to, held);
	fclose(to.to);
}

static void says(const char *sample, bool expected)
{
	char *text = NULL;
	put_text(&text);
	if (expected)
		HAS(text, sample);
	else
		CU_ASSERT_PTR_NULL(strstr(text, sample));
	free(text);
}

static void test_soft(void)
{
	begin();
	server.driver.soft = true;
	says("cricket_gpu_info" GPU ",name=\"A \\\"GPU\\\"\",pci=\"0000:01:00.0\"} 1\n", true);
	says("cricket_gpu_up" GPU "} 1\n", true);
	says("cricket_gpu_memory_used_bytes" GPU "} 1048576\n", true);
	says("cricket_gpu_memory_free_bytes" GPU "} 1099510579200\n", true);
	/* Nothing is made up. */
	static const char *const by_nvml[] = {"cricket_gpu_temperature_celsius{",
		"cricket_gpu_power_watts{", "cricket_gpu_utilization_ratio{",
		"cricket_gpu_throttled{", "cricket_gpu_ecc_errors_total{",
		"cricket_gpu_sample_age_seconds{"};
	for (unsigned i = 0; i < sizeof by_nvml / sizeof *by_nvml; i++)
		says(by_nvml[i], false);
	/* Of a budget, what is leased counts, and more of it than there is leaves nothing. */
	struct ckt_ledger_holder holder = {.leased = {4 << 20}};
	server.ledger.budgets[0] = 10 << 20;
	ckt_ledger_add(&server.ledger, &holder);
	says("cricket_gpu_memory_free_bytes" GPU "} 6291456\n", true);
	holder.leased[0] = 12 << 20;
	says("cricket_gpu_memory_free_bytes" GPU "} 0\n", true);
	ckt_ledger_remove(&server.ledger, &holder);
	/* A driver that tells no UUID, and a host without a GPU. */
	memset(server.driver.gpus[0].uuid, 0, 16);
	says("cricket_gpu_up{gpu=\"0\",uuid=\"\"} 1\n", true);
	server.driver.gpu_count = 0;
	says("{", false);
	end();
}

static bool is_sampled(void *data)
{
	(void)data;
	return ckt_gpu_health_of(&server, 0);
}

static bool is_lost(void *data)
{
	(void)data;
	return ckt_gpu_health_of(&server, 0)->lost;
}

/* In milliseconds; -1: there is none. */
static double age_ms(void)
{
	static const char sample[] = "cricket_gpu_sample_age_seconds" GPU "} ";
	char *text = NULL;
	put_text(&text);
	const char *at = strstr(text, sample);
	double age = at ? 1000 * strtod(at + strlen(sample), NULL) : -1;
	free(text);
	return age;
}

static void test_nvml(void)
{
	int64_t begun_ms = ckt_net_now_ms();
	begin();
	server.driver.soft = false;
	says("cricket_gpu_up{", false);
	says("cricket_gpu_memory_used_bytes" GPU "} 1048576\n", true);
	ckt_nvml_library = fake_nvml;
	/* The loop comes to rest between rounds of questions, also where a round takes its time. */
	ckt_gpu_sample_ms = 100;
	setenv("FAKE_NVML_LOST", path_in("lost"), 1);
	ckt_gpu_health_begin(&server);
	MUST(run_until(is_sampled, NULL), true);
	says("cricket_gpu_up" GPU "} 1\n", true);
	says("cricket_gpu_memory_used_bytes" GPU "} 1098777624576\n", true);
	says("cricket_gpu_memory_free_bytes" GPU "} 734003200\n", true);
	says("cricket_gpu_utilization_ratio" GPU "} 0.72999999999999998\n", true);
	says("cricket_gpu_temperature_celsius" GPU "} 40\n", true);
	says("cricket_gpu_power_watts" GPU "} 1\n", true);
	says("cricket_gpu_throttled" GPU ",reason=\"power_cap\"} 1\n", true);
	says("cricket_gpu_throttled" GPU ",reason=\"hardware_thermal\"} 1\n", true);
	says("cricket_gpu_throttled" GPU ",reason=\"thermal\"} 0\n", true);
	says("cricket_gpu_ecc_errors_total" GPU ",kind=\"corrected\"} 30\n", true);
	says("cricket_gpu_ecc_errors_total" GPU ",kind=\"uncorrected\"} 31\n", true);
	/* However long this took. */
	double age = age_ms();
	YES(age >= 0 && age <= (double)(ckt_net_now_ms() - begun_ms));
	write_file(path_in("lost"), "", 0600);
	MUST(run_until(is_lost, NULL), true);
	says("cricket_gpu_up" GPU "} 0\n", true);
	says("cricket_gpu_memory_free_bytes" GPU "} 0\n", true);
	unlink(path_in("lost"));
	ckt_gpu_health_end(&server);
	ckt_daemon_nvml_fini(&server);
	while (waitpid(-1, NULL, 0) > 0)
		;
	unsetenv("FAKE_NVML_LOST");
	ckt_nvml_library = NULL;
	ckt_gpu_sample_ms = 2000;
	end();
}

UNIT_SUITE(gpu_metrics, {"soft", test_soft}, {"nvml", test_nvml})
