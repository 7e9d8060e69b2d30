/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server/daemon/nvml/gpu_health.h: samples of an NVML that is made up (fake_nvml.c): a GPU that is
 * lost and comes back, a reader that dies, a crowd of clients, and an end while it is asked.
 */
#include "server/daemon/nvml/gpu_health.h"

#include <dirent.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "inside.h"
#include "server/daemon/nvml/nvml.h"

/* Between rounds of questions: the loop comes to rest there, also where a round takes its time. */
enum { CROWD = 20, SAMPLE_MS = 100 };

static struct ckt_driver_info kept;

static void begin(unsigned gpus)
{
	kept = server.driver;
	server.driver.soft = false;
	server.driver.gpu_count = gpus;
	for (unsigned i = 0; i < gpus; i++) {
		server.driver.gpus[i] = (struct ckt_driver_gpu){.memory_bytes = 1ull << 30};
		memset(server.driver.gpus[i].uuid, 0x11 * (int)(i + 1), 16);
	}
	ckt_nvml_library = fake_nvml;
	ckt_gpu_sample_ms = SAMPLE_MS;
	setenv("FAKE_NVML_LOST", path_in("lost"), 1);
}

static void end(void)
{
	ckt_gpu_health_end(&server);
	ckt_daemon_nvml_fini(&server);
	while (waitpid(-1, NULL, 0) > 0)
		;
	unsetenv("FAKE_NVML_LOST");
	ckt_nvml_library = NULL;
	ckt_gpu_sample_ms = 2000;
	server.driver = kept;
}

static bool all_found(void *data)
{
	(void)data;
	for (unsigned i = 0; i < server.driver.gpu_count; i++)
		if (!ckt_gpu_health_of(&server, i))
			return false;
	return true;
}

static bool first_is_lost(void *data)
{
	(void)data;
	return ckt_gpu_health_of(&server, 0)->lost;
}

static bool first_is_back(void *data)
{
	return !first_is_lost(data);
}

static bool first_is_silent(void *data)
{
	(void)data;
	return ckt_gpu_health_of(&server, 0)->silent_ms;
}

static uint64_t value(unsigned gpu, enum ckt_reader_value which)
{
	const struct ckt_gpu_sample *sample = ckt_gpu_health_of(&server, gpu);
	uint64_t found = ~UINT64_C(0);
	return ckt_gpu_health_value(sample, sample->when_ms, which, &found) ? found : 7777777;
}

static void test_samples(void)
{
	begin(3);
	CU_ASSERT_PTR_NULL(ckt_gpu_health_of(&server, 0));
	ckt_gpu_health_begin(&server);
	CU_ASSERT_PTR_NULL(ckt_gpu_health_of(&server, 0));
	MUST(run_until(all_found, NULL), true);
	IS(value(0, CKT_HEALTH_FREE_BYTES), 700ull << 20);
	IS(value(0, CKT_HEALTH_USED_BYTES), (1ull << 40) - (700ull << 20));
	IS(value(0, CKT_HEALTH_BUSY_PERCENT), 73);
	IS(value(0, CKT_HEALTH_CELSIUS), 40);
	IS(value(0, CKT_HEALTH_MILLIWATTS), 1000);
	IS(value(2, CKT_HEALTH_MILLIWATTS), 1002);
	IS(value(0, CKT_HEALTH_THROTTLED), 0x45);
	IS(value(1, CKT_HEALTH_THROTTLED), 0);
	IS(value(0, CKT_HEALTH_CORRECTED), 30);
	IS(value(0, CKT_HEALTH_UNCORRECTED), 31);
	/* One falls off; it is told by its own state alone. */
	write_file(path_in("lost"), "", 0600);
	MUST(run_until(first_is_lost, NULL), true);
	NO(ckt_gpu_health_is_up(ckt_gpu_health_of(&server, 0), ckt_net_now_ms()));
	YES(ckt_gpu_health_is_up(ckt_gpu_health_of(&server, 1), ckt_net_now_ms()));
	unlink(path_in("lost"));
	MUST(run_until(first_is_back, NULL), true);
	YES(ckt_gpu_health_is_up(ckt_gpu_health_of(&server, 0), ckt_net_now_ms()));
	end();
}

/* By the time alone. */
static void test_ages(void)
{
	struct ckt_gpu_sample sample = {
		.found = true, .when_ms = 1000, .known = 1u << CKT_HEALTH_CELSIUS};
	uint64_t degrees = 1;
	YES(ckt_gpu_health_value(&sample, 1000 + CKT_GPU_OLD_MS, CKT_HEALTH_CELSIUS, &degrees));
	IS(degrees, 0);
	NO(ckt_gpu_health_value(&sample, 1001 + CKT_GPU_OLD_MS, CKT_HEALTH_CELSIUS, &degrees));
	NO(ckt_gpu_health_value(&sample, 1000, CKT_HEALTH_MILLIWATTS, &degrees));
	YES(ckt_gpu_health_is_up(&sample, 1000 + 100 * CKT_GPU_OLD_MS));
	sample.silent_ms = 2000;
	YES(ckt_gpu_health_is_up(&sample, 1999 + CKT_GPU_SILENT_MS));
	NO(ckt_gpu_health_is_up(&sample, 2000 + CKT_GPU_SILENT_MS));
	sample.silent_ms = 0;
	sample.lost = true;
	NO(ckt_gpu_health_is_up(&sample, 1000));
}

/* The reader's process; 0: none. */
static pid_t reader_pid(void)
{
	pid_t found = 0;
	DIR *list = opendir("/proc");
	for (struct dirent *entry; list && (entry = readdir(list));) {
		char path[300], name[64] = "";
		int parent = 0;
		snprintf(path, sizeof path, "/proc/%s/stat", entry->d_name);
		FILE *file = fopen(path, "re");
		if (file && fscanf(file, "%*d (%63[^)]) %*c %d", name, &parent) == 2 &&
			parent == getpid() && strcmp(name, "cricket-nvml") == 0)
			found = atoi(entry->d_name);
		if (file)
			fclose(file);
	}
	if (list)
		closedir(list);
	return found;
}

static void test_reader_dies(void)
{
	begin(2);
	ckt_gpu_health_begin(&server);
	MUST(run_until(all_found, NULL), true);
	/* Silent at once, and down where that goes on; what it said stays until it is old. */
	kill(reader_pid(), SIGKILL);
	MUST(run_until(first_is_silent, NULL), true);
	const struct ckt_gpu_sample *sample = ckt_gpu_health_of(&server, 0);
	NO(sample->lost);
	YES(ckt_gpu_health_is_up(sample, sample->silent_ms));
	IS(value(0, CKT_HEALTH_CELSIUS), 40);
	end();
	/* None there at all: no sample, and nobody is asked without end. */
	begin(2);
	ckt_nvml_library = "/nowhere";
	ckt_gpu_sample_ms = 1;
	ckt_gpu_health_begin(&server);
	run_for(50);
	CU_ASSERT_PTR_NULL(ckt_gpu_health_of(&server, 0));
	end();
	/* Neither a soft GPU nor a host without one has samples. */
	begin(1);
	server.driver.soft = true;
	ckt_gpu_health_begin(&server);
	CU_ASSERT_PTR_NULL(server.health);
	server.driver.soft = false;
	server.driver.gpu_count = 0;
	ckt_gpu_health_begin(&server);
	CU_ASSERT_PTR_NULL(server.health);
	ckt_gpu_health_want(&server);
	CU_ASSERT_PTR_NULL(server.nvml);
	end();
}

static unsigned heard_count, answered_before;
static int crowd[CROWD];

static unsigned answered(void)
{
	unsigned count = 0;
	for (unsigned i = 0; i < CROWD; i++) {
		struct pollfd poll_fd = {.fd = crowd[i], .events = POLLIN};
		count += poll(&poll_fd, 1, 0) == 1;
	}
	return count;
}

static void heard(struct ckt_server *of, unsigned gpu, const struct ckt_reader_answer *answer)
{
	IS(of == &server && gpu == 0 && answer && !answer->result, true);
	heard_count++;
	answered_before = answered();
}

static bool was_heard(void *data)
{
	(void)data;
	return heard_count;
}

static bool all_answered(void *data)
{
	(void)data;
	return answered() == CROWD;
}

/* Clients ask as much as they like: the server's own question waits for one of theirs at most. */
static void test_crowd(void)
{
	begin(1);
	ckt_control_nvml_args args = {.function = ckt_nvml_number("nvmlDeviceGetPowerUsage")};
	/* No number of a function is the server's question. */
	int fd = control_new();
	ckt_control_nvml_args own = {.function = CKT_READER_HEALTH};
	ckt_control_nvml_res res = {0};
	MUST(control(fd, CKT_CONTROL_NVML, (xdrproc_t)xdr_ckt_control_nvml_args, &own, -1,
		     (xdrproc_t)xdr_ckt_control_nvml_res, &res),
		true);
	IS(res.result, CKT_NVML_NOT_SUPPORTED);
	xdr_free((xdrproc_t)xdr_ckt_control_nvml_res, (char *)&res);
	CU_ASSERT_PTR_NULL(server.nvml);
	MUST(control(fd, CKT_CONTROL_NVML, (xdrproc_t)xdr_ckt_control_nvml_args, &args, -1,
		     (xdrproc_t)xdr_ckt_control_nvml_res, &res),
		true);
	IS(res.result, 0);
	xdr_free((xdrproc_t)xdr_ckt_control_nvml_res, (char *)&res);
	for (unsigned i = 0; i < CROWD; i++)
		crowd[i] = control_new();
	/* 0 is this whole group of processes. */
	CU_ASSERT_FATAL(reader_pid() > 0);
	kill(reader_pid(), SIGSTOP);
	for (unsigned i = 0; i < CROWD; i++) {
		uint8_t *data;
		size_t size;
		MUST(ckt_net_encode_call(9, CRICKET_CONTROL_PROG, CKT_CONTROL_NVML,
			     (xdrproc_t)xdr_ckt_control_nvml_args, &args, &data, &size),
			0);
		send_bytes(crowd[i], data, size, -1);
		free(data);
	}
	run_for(50);
	IS(answered(), 0);
	MUST(ckt_nvml_ask_health(&server, 0, heard), true);
	kill(reader_pid(), SIGCONT);
	MUST(run_until(was_heard, NULL), true);
	CU_ASSERT_TRUE(answered_before <= 1);
	MUST(run_until(all_answered, NULL), true);
	IS(heard_count, 1);
	for (unsigned i = 0; i < CROWD; i++)
		close(crowd[i]);
	close(fd);
	run_for(3);
	/* An end while it is asked: nobody is told who is not there any more. */
	ckt_gpu_health_begin(&server);
	run_for(1);
	ckt_gpu_health_end(&server);
	end();
}

UNIT_SUITE(gpu_health, {"samples", test_samples}, {"ages", test_ages},
	{"reader dies", test_reader_dies}, {"crowd", test_crowd})
