/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server/daemon/nvml/nvml.h: which GPUs a client is told of, whom it may ask, readers that end and
 * workers that do not answer.
 */
#include "server/daemon/nvml/nvml.h"

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "inside.h"
#include "server/daemon/nvml/nvml_reader.h"

static struct ckt_driver_info kept;
static int fd;

static void begin(void)
{
	kept = server.driver;
	server.driver.soft = false;
	server.driver.cuda_version = 13000;
	server.driver.gpu_count = 3;
	for (unsigned i = 0; i < 3; i++) {
		struct ckt_driver_gpu *gpu = &server.driver.gpus[i];
		*gpu = (struct ckt_driver_gpu){
			.memory_bytes = 1ull << 30, .major = 9, .minor = (int)i};
		snprintf(gpu->name, sizeof gpu->name, "GPU %u", i);
		snprintf(gpu->pci_bus_id, sizeof gpu->pci_bus_id, "0000:0%u:00.0", i);
		memset(gpu->uuid, 0x11 * (int)(i + 1), sizeof gpu->uuid);
	}
	ckt_nvml_library = fake_nvml;
	fd = control_new();
}

static void end(void)
{
	close(fd);
	run_for(3);
	ckt_daemon_nvml_fini(&server);
	/* Killed, which nobody waits for there. */
	while (waitpid(-1, NULL, 0) > 0)
		;
	ckt_nvml_library = NULL;
	server.driver = kept;
	server.gpu_count = 0;
	server.options.session_memory = 0;
}

static ckt_control_nvml_res ask(const char *name, unsigned gpu, unsigned other, unsigned selector)
{
	ckt_control_nvml_args args = {.function = ckt_nvml_number(name),
		.gpu = gpu,
		.other = other,
		.selectors = {selector}};
	ckt_control_nvml_res res = {.result = -1};
	if (!control(fd, CKT_CONTROL_NVML, (xdrproc_t)xdr_ckt_control_nvml_args, &args, -1,
		    (xdrproc_t)xdr_ckt_control_nvml_res, &res))
		res.result = -2;
	return res;
}

static int result_of(ckt_control_nvml_res res)
{
	int result = res.result;
	xdr_free((xdrproc_t)xdr_ckt_control_nvml_res, (char *)&res);
	return result;
}

static void test_devices(void)
{
	begin();
	/*
	 * Whatever the driver has, in its order; --gpus in that one; no more than a session may
	 * have of memory.
	 */
	for (unsigned round = 0; round < 2; round++) {
		ckt_control_devices_res res = {0};
		MUST(control(fd, CKT_CONTROL_DEVICES, NULL, NULL, -1,
			     (xdrproc_t)xdr_ckt_control_devices_res, &res),
			true);
		IS(res.cuda_version, 13000);
		MUST(res.devices.devices_len, round ? 2 : 3);
		const ckt_control_device *first = res.devices.devices_val;
		IS(first->ordinal, round ? 2 : 0);
		TEXT(first->name, round ? "GPU 2" : "GPU 0");
		IS(first->minor, round ? 2 : 0);
		IS(first->memory_bytes, round ? 1 << 20 : 1 << 30);
		IS((uint8_t)first->uuid[15], round ? 0x33 : 0x11);
		xdr_free((xdrproc_t)xdr_ckt_control_devices_res, (char *)&res);
		server.gpu_count = 2;
		server.gpus[0] = 2;
		server.gpus[1] = 0;
		server.options.session_memory = 1 << 20;
	}
	/* --gpus may name what the driver did not find. */
	server.gpus[1] = 7;
	ckt_control_devices_res res = {0};
	MUST(control(fd, CKT_CONTROL_DEVICES, NULL, NULL, -1,
		     (xdrproc_t)xdr_ckt_control_devices_res, &res),
		true);
	IS(res.devices.devices_len, 1);
	xdr_free((xdrproc_t)xdr_ckt_control_devices_res, (char *)&res);
	CU_ASSERT_PTR_NULL(server.nvml);
	end();
}

static void test_questions(void)
{
	begin();
	ckt_control_nvml_res res = ask("nvmlDeviceGetPowerUsage", 1, 0, 0);
	IS(res.result, 0);
	IS(res.data.data_len, 4);
	xdr_free((xdrproc_t)xdr_ckt_control_nvml_res, (char *)&res);
	res = ask("nvmlSystemGetDriverVersion", 99, 99, 0);
	TEXT(res.text, "999.88.255");
	xdr_free((xdrproc_t)xdr_ckt_control_nvml_res, (char *)&res);
	IS(result_of(ask("nvmlDeviceGetP2PStatus", 0, 2, 3)), 0);
	/* GPUs that no session gets are not told of. */
	server.gpu_count = 1;
	server.gpus[0] = 1;
	IS(result_of(ask("nvmlDeviceGetPowerUsage", 0, 0, 0)), CKT_NVML_INVALID_ARGUMENT);
	IS(result_of(ask("nvmlDeviceGetPowerUsage", ~0u, 0, 0)), CKT_NVML_INVALID_ARGUMENT);
	IS(result_of(ask("nvmlDeviceGetP2PStatus", 1, 0, 3)), CKT_NVML_INVALID_ARGUMENT);
	IS(result_of(ask("nvmlDeviceGetPowerUsage", 1, 0, 0)), 0);
	/* Nor is what is no number of a function, or what that library lacks. */
	IS(result_of(ask("nvmlShutdown", 1, 0, 0)), CKT_NVML_NOT_SUPPORTED);
	IS(result_of(ask("nvmlDeviceGetBrand", 1, 0, 0)), CKT_NVML_NOT_SUPPORTED);
	IS(result_of(ask("nvmlDeviceGetTemperature", 1, 0, 4)), CKT_NVML_INVALID_ARGUMENT);
	end();
}

static void test_reader(void)
{
	begin();
	/* It crashes: said at once, and not started again so soon. */
	IS(result_of(ask("nvmlDeviceGetPowerUsage", 1, 0, 0)), 0);
	CU_ASSERT_PTR_NOT_NULL(server.nvml);
	IS(result_of(ask("nvmlDeviceGetClockInfo", 1, 0, 101)), CKT_NVML_TIMEOUT);
	IS(result_of(ask("nvmlDeviceGetPowerUsage", 1, 0, 0)), CKT_NVML_TIMEOUT);
	ckt_daemon_nvml_fini(&server);
	/* None there, or none wanted: CUDA's version stands for the driver's. */
	for (unsigned round = 0; round < 2; round++) {
		ckt_nvml_library = round ? fake_nvml : "/nowhere";
		server.driver.soft = round;
		for (unsigned i = 0; i < 2; i++) {
			IS(result_of(ask("nvmlDeviceGetPowerUsage", 1, 0, 0)),
				CKT_NVML_NOT_SUPPORTED);
			ckt_control_nvml_res res = ask("nvmlSystemGetDriverVersion", 0, 0, 0);
			IS(res.result, 0);
			TEXT(res.text, "13.0");
			xdr_free((xdrproc_t)xdr_ckt_control_nvml_res, (char *)&res);
		}
		ckt_daemon_nvml_fini(&server);
	}
	/* Who hangs up while it is asked leaves nothing behind. */
	server.driver.soft = false;
	ckt_control_nvml_args args = {.function = ckt_nvml_number("nvmlDeviceGetClockInfo"),
		.gpu = 1,
		.selectors = {100}};
	uint8_t *data;
	size_t size;
	MUST(ckt_net_encode_call(9, CRICKET_CONTROL_PROG, CKT_CONTROL_NVML,
		     (xdrproc_t)xdr_ckt_control_nvml_args, &args, &data, &size),
		0);
	send_bytes(fd, data, size, -1);
	free(data);
	run_for(20);
	CU_ASSERT_PTR_NOT_NULL(server.nvml);
	end();
}

static ckt_control_gpu_use_res use(unsigned gpu)
{
	ckt_control_gpu_args args = {.gpu = gpu};
	ckt_control_gpu_use_res res = {.result = -1};
	if (!control(fd, CKT_CONTROL_GPU_USE, (xdrproc_t)xdr_ckt_control_gpu_args, &args, -1,
		    (xdrproc_t)xdr_ckt_control_gpu_use_res, &res))
		res.result = -2;
	return res;
}

static void test_use(void)
{
	begin();
	struct ckt_session *own = session_new("0000000000e1"), *other = session_new("0000000000e2");
	struct ckt_peer *peer = peer_last();
	own->pid = 41;
	other->pid = 42;
	worker.gpus = 3;
	worker.bytes = 1000;
	/* Of another host: nobody's here. */
	server.driver.soft = true;
	worker.client = "elsewhere";
	worker.client_pid = peer->hello.pid;
	ckt_control_gpu_use_res res = use(1);
	IS(res.result, 0);
	IS(res.total_bytes, 1 << 30);
	IS(res.free_bytes, 1 << 30);
	IS(res.processes.processes_len, 0);
	xdr_free((xdrproc_t)xdr_ckt_control_gpu_use_res, (char *)&res);
	/* Of this one: without NVML each program has what the others leave it: all. */
	worker.client = peer->hello.host;
	worker.client_pid = 77;
	res = use(1);
	IS(res.free_bytes, 1 << 30);
	MUST(res.processes.processes_len, 2);
	IS(res.processes.processes_val[0].pid, 77);
	IS(res.processes.processes_val[1].memory_bytes, 1000);
	xdr_free((xdrproc_t)xdr_ckt_control_gpu_use_res, (char *)&res);
	/* The asking program's own. */
	worker.client_pid = peer->hello.pid;
	res = use(1);
	IS(res.free_bytes, (1 << 30) - 2000);
	IS(res.processes.processes_len, 2);
	xdr_free((xdrproc_t)xdr_ckt_control_gpu_use_res, (char *)&res);
	/* On the first GPU it has a context at least; a further one counts once it is used. */
	worker.bytes = 0;
	res = use(0);
	IS(res.processes.processes_len, 2);
	xdr_free((xdrproc_t)xdr_ckt_control_gpu_use_res, (char *)&res);
	res = use(2);
	IS(res.processes.processes_len, 0);
	xdr_free((xdrproc_t)xdr_ckt_control_gpu_use_res, (char *)&res);
	worker.bytes = 1000;
	/* Of workers that are silent it is what was leased to them. */
	worker.silent = true;
	own->lease.is_holder = true;
	own->lease.holder.leased[1] = 4096;
	own->status.client_pid = peer->hello.pid;
	own->status.client = peer->hello.host;
	res = use(1);
	IS(res.free_bytes, (1 << 30) - 4096);
	MUST(res.processes.processes_len, 1);
	IS(res.processes.processes_val[0].memory_bytes, 4096);
	xdr_free((xdrproc_t)xdr_ckt_control_gpu_use_res, (char *)&res);
	worker.silent = own->lease.is_holder = false;
	own->status.client = (char *)"";
	/*
	 * With it, what is free is what the GPU has, but for a limit; a worker's own count gives
	 * way to NVML's.
	 */
	server.driver.soft = false;
	write_file(path_in("processes"), "41 5000\n42 18446744073709551615\n43 7\n", 0600);
	setenv("FAKE_NVML_PROCESSES", path_in("processes"), 1);
	res = use(2);
	IS(res.free_bytes, 700 << 20);
	MUST(res.processes.processes_len, 2);
	IS(res.processes.processes_val[0].memory_bytes, 5000);
	IS(res.processes.processes_val[1].memory_bytes, 2000);
	xdr_free((xdrproc_t)xdr_ckt_control_gpu_use_res, (char *)&res);
	server.options.session_memory = 1 << 20;
	res = use(2);
	IS(res.total_bytes, 1 << 20);
	IS(res.free_bytes, (1 << 20) - 4000);
	xdr_free((xdrproc_t)xdr_ckt_control_gpu_use_res, (char *)&res);
	/*
	 * Another user's are nobody's business, nor are those that start; a GPU that is not given
	 * has no use.
	 */
	other->uid = 4001;
	peer->who.uid = 4002;
	own->uid = 4002;
	res = use(0);
	MUST(res.processes.processes_len, 1);
	IS(res.processes.processes_val[0].pid, peer->hello.pid);
	xdr_free((xdrproc_t)xdr_ckt_control_gpu_use_res, (char *)&res);
	own->phase = CKT_SESSION_STARTING;
	res = use(0);
	IS(res.processes.processes_len, 0);
	xdr_free((xdrproc_t)xdr_ckt_control_gpu_use_res, (char *)&res);
	own->phase = CKT_SESSION_LIVE;
	res = use(3);
	IS(res.result, CKT_NVML_INVALID_ARGUMENT);
	xdr_free((xdrproc_t)xdr_ckt_control_gpu_use_res, (char *)&res);
	/* An older worker does not know the question, another one lies. */
	worker.accept_stat = 3;
	res = use(0);
	IS(res.result, 0);
	IS(res.processes.processes_len, 0);
	xdr_free((xdrproc_t)xdr_ckt_control_gpu_use_res, (char *)&res);
	worker.accept_stat = 0;
	worker.garbage = true;
	res = use(0);
	IS(res.result, 0);
	IS(res.processes.processes_len, 0);
	xdr_free((xdrproc_t)xdr_ckt_control_gpu_use_res, (char *)&res);
	unsetenv("FAKE_NVML_PROCESSES");
	end();
	session_drop(own);
	session_drop(other);
}

UNIT_SUITE(nvml, {"devices", test_devices}, {"questions", test_questions}, {"reader", test_reader},
	{"use", test_use})
