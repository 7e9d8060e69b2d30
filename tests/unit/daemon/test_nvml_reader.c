/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server/daemon/nvml/nvml_reader.h: every shape of a question to an NVML that is made up
 * (fake_nvml.c), and the process that asks it.
 */
#include "server/daemon/nvml/nvml_reader.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "inside.h"

static struct ckt_reader_question ask(const char *name)
{
	return (struct ckt_reader_question){.function = name ? ckt_nvml_number(name) : 0,
		.gpu = {.uuid = "GPU-1"},
		.other = {.uuid = "GPU-2"}};
}

static struct ckt_reader_answer answer_to(struct ckt_reader_question question)
{
	static struct ckt_reader_answer answer;
	memset(&answer, 0xee, sizeof answer);
	ckt_daemon_nvml_reader_answer(&question, &answer);
	return answer;
}

static uint32_t word(const struct ckt_reader_answer *answer, unsigned at)
{
	uint32_t value;
	memcpy(&value, answer->data + at, sizeof value);
	return value;
}

static void test_shapes(void)
{
	struct ckt_reader_answer answer = answer_to(ask("nvmlDeviceGetPowerUsage"));
	IS(answer.result, CKT_NVML_LIBRARY_NOT_FOUND);
	NO(ckt_daemon_nvml_reader_open("/nowhere/libnvidia-ml.so.1"));
	setenv("FAKE_NVML_INIT", "9", 1);
	NO(ckt_daemon_nvml_reader_open(fake_nvml));
	unsetenv("FAKE_NVML_INIT");
	NO(ckt_daemon_nvml_reader_open(soft_driver)); /* no NVML */
	MUST(ckt_daemon_nvml_reader_open(fake_nvml), true);
	static const struct {
		const char *name;
		uint32_t selectors[3];
		unsigned bytes, at, value;
	} rows[] = {
		{"nvmlDeviceGetTemperature", {0}, 4, 0, 40},
		{"nvmlDeviceGetEccMode", {0}, 12, 0, 1},
		{"nvmlDeviceGetEccMode", {0}, 12, 8, 0},
		{"nvmlDeviceGetRemappedRows", {0}, 28, 0, 11},
		{"nvmlDeviceGetRemappedRows", {0}, 28, 24, 14},
		{"nvmlDeviceGetUtilizationRates", {0}, 8, 4, 21},
		{"nvmlDeviceGetMemoryErrorCounter", {1, 2, 3}, 8, 0, (uint32_t)5000000123},
		{"nvmlDeviceGetP2PStatus", {4}, 4, 0, 4},
		{"nvmlDeviceGetGpuFabricInfoV", {48 | 3u << 24}, 48, 44, 0x77000000},
		{"nvmlDeviceGetFieldValues", {8, 2}, 40, 32, 8002},
		{"nvmlDeviceGetFieldValues", {9, 0}, 40, 28, CKT_NVML_NOT_SUPPORTED},
	};
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct ckt_reader_question question = ask(rows[i].name);
		memcpy(question.selectors, rows[i].selectors, sizeof question.selectors);
		answer = answer_to(question);
		IS(answer.result, 0);
		IS(answer.data_bytes, rows[i].bytes);
		IS(word(&answer, rows[i].at), rows[i].value);
	}
	answer = answer_to(ask("nvmlDeviceGetSerial"));
	IS(answer.result, 0);
	IS(answer.data_bytes, 0);
	TEXT(answer.text, "SERIAL-1234");
	answer = answer_to(ask("nvmlSystemGetDriverVersion"));
	TEXT(answer.text, "999.88.255");
}

static void test_health(void)
{
	struct ckt_reader_question question = {
		.function = CKT_READER_HEALTH, .gpu = {.uuid = "GPU-1"}};
	setenv("FAKE_NVML_LOST", path_in("lost"), 1);
	struct ckt_reader_answer answer = answer_to(question);
	IS(answer.result, 0);
	IS(answer.known, (1u << CKT_HEALTH_VALUES) - 1);
	IS(answer.values[CKT_HEALTH_BUSY_PERCENT], 73);
	IS(answer.values[CKT_HEALTH_UNCORRECTED], 31);
	write_file(path_in("lost"), "", 0600);
	answer = answer_to(question);
	IS(answer.result, CKT_NVML_GPU_IS_LOST);
	IS(answer.known >> CKT_HEALTH_USED_BYTES & 1, 0);
	unlink(path_in("lost"));
	unsetenv("FAKE_NVML_LOST");
	strcpy(question.gpu.uuid, "GPU-dead");
	IS(answer_to(question).result, CKT_NVML_NOT_FOUND);
}

static void test_refused(void)
{
	IS(ckt_nvml_number("nvmlInit_v2"), 0);
	struct ckt_reader_question question = ask("nvmlDeviceGetGpuFabricInfoV");
	static const uint32_t versions[] = {0, 48, 1u << 24 | 2, 1u << 24 | 0xfff, ~0u};
	for (size_t i = 0; i < COUNT(versions); i++) {
		question.selectors[0] = versions[i];
		IS(answer_to(question).result, CKT_NVML_ARGUMENT_VERSION_MISMATCH);
	}
	/* The library's own no brings no data. */
	question = ask("nvmlDeviceGetTemperature");
	question.selectors[0] = 5;
	struct ckt_reader_answer answer = answer_to(question);
	IS(answer.result, CKT_NVML_INVALID_ARGUMENT);
	IS(answer.data_bytes, 0);
	/* An older library lacks some. */
	IS(answer_to(ask("nvmlDeviceGetBrand")).result, CKT_NVML_FUNCTION_NOT_FOUND);
	question.function = ckt_nvml_functions_count;
	IS(answer_to(question).result, CKT_NVML_INVALID_ARGUMENT);
	question.function = ~0u;
	IS(answer_to(question).result, CKT_NVML_INVALID_ARGUMENT);
	/* GPUs that NVML does not know, or that have no name; without a UUID the place counts. */
	question = ask("nvmlDeviceGetPowerUsage");
	strcpy(question.gpu.uuid, "GPU-dead");
	IS(answer_to(question).result, CKT_NVML_NOT_FOUND);
	question.gpu = (struct ckt_reader_gpu){.pci_bus_id = "0000:01:00.0"};
	IS(answer_to(question).result, 0);
	question.gpu = (struct ckt_reader_gpu){0};
	IS(answer_to(question).result, CKT_NVML_NOT_FOUND);
	question = ask("nvmlDeviceGetP2PStatus");
	strcpy(question.other.uuid, "GPU-dead");
	IS(answer_to(question).result, CKT_NVML_NOT_FOUND);
}

static void test_use(void)
{
	write_file(path_in("processes"), "41 1000\n42 18446744073709551615\n", 0600);
	setenv("FAKE_NVML_PROCESSES", path_in("processes"), 1);
	struct ckt_reader_answer answer = answer_to(ask(NULL));
	IS(answer.result, 0);
	IS(answer.total_bytes, 1ull << 40);
	IS(answer.free_bytes, 700ull << 20);
	MUST(answer.process_count, 2);
	IS(answer.processes[0].pid, 41);
	IS(answer.processes[0].memory_bytes, 1000);
	YES(answer.processes[1].memory_bytes == UINT64_MAX);
	unsetenv("FAKE_NVML_PROCESSES");
	IS(answer_to(ask(NULL)).process_count, 0);
}

static void test_process(void)
{
	static struct ckt_reader_answer answer;
	struct ckt_reader_question question = ask("nvmlDeviceGetPowerUsage");
	int pid, fd, status;
	MUST(ckt_daemon_nvml_reader_start(fake_nvml, &pid, &fd), 0);
	for (unsigned i = 0; i < 3; i++) {
		IS(send(fd, &question, sizeof question, 0), sizeof question);
		IS(recv(fd, &answer, sizeof answer, 0), sizeof answer);
		IS(answer.result, 0);
		IS(word(&answer, 0), 1000);
	}
	/* It holds nothing of ours but the one socket, and ends when that does. */
	char command[128];
	snprintf(command, sizeof command, "test $(ls /proc/%d/fd | wc -l) -le 4", pid);
	IS(system(command), 0);
	close(fd);
	IS(waitpid(pid, &status, 0), pid);
	YES(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	/* Bytes that are no question end it too. */
	MUST(ckt_daemon_nvml_reader_start(fake_nvml, &pid, &fd), 0);
	IS(send(fd, "x", 1, 0), 1);
	IS(recv(fd, &answer, sizeof answer, 0), 0);
	close(fd);
	IS(waitpid(pid, &status, 0), pid);
}

UNIT_SUITE(nvml_reader, {"shapes", test_shapes}, {"health", test_health}, {"refused", test_refused},
	{"use", test_use}, {"process", test_process})
