/* SPDX-License-Identifier: Apache-2.0 */
/*
 * client/nvml/forward.c: every shape of a question, answers that are too short or too long, and
 * what is refused here.
 */
#include <stdio.h>
#include <string.h>

#include "answers.h"
#include "rpc/nvml.h"

int nvmlInit_v2(void);
int nvmlShutdown(void);
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device);
int nvmlDeviceGetPowerUsage(void *device, void *milliwatts);
int nvmlDeviceGetEccMode(void *device, void *current, void *pending);
int nvmlDeviceGetTotalEccErrors(void *device, unsigned type, unsigned counter, void *count);
int nvmlDeviceGetP2PStatus(void *device, void *other, unsigned index, void *status);
int nvmlDeviceGetGpuFabricInfoV(void *device, void *block);
int nvmlDeviceGetSerial(void *device, char *text, unsigned size);
int nvmlSystemGetDriverVersion(char *text, unsigned size);
int nvmlDeviceGetFieldValues(void *device, int count, void *values);
int nvmlDeviceSetPersistenceMode(void);
int nvmlUnitGetCount(void);

static void *devices[2];

static void begin(void)
{
	answers_reset();
	MUST(nvmlInit_v2(), 0);
	for (unsigned i = 0; i < 2; i++)
		MUST(nvmlDeviceGetHandleByIndex_v2(i, &devices[i]), 0);
}

static void put(unsigned at, const void *value, unsigned size)
{
	memcpy(answers.nvml.data.data_val + at, value, size);
	answers.nvml.data.data_len = at + size;
}

static void test_data(void)
{
	unsigned a = 7, b = 7;
	unsigned long long wide = 7;
	begin();
	put(0, &(unsigned){71000}, 4);
	IS(nvmlDeviceGetPowerUsage(devices[1], &a), 0);
	IS(a, 71000);
	IS(answers.nvml_args.gpu, 4);
	TEXT(ckt_nvml_functions[answers.nvml_args.function].name, "nvmlDeviceGetPowerUsage");
	/* Each value lies where its C type wants it. */
	put(8, &(unsigned){2}, 4);
	IS(nvmlDeviceGetEccMode(devices[0], &a, &b), 0);
	IS(a, 71000);
	IS(b, 2);
	IS(answers.nvml_args.gpu, 2);
	put(0, &(unsigned long long){1ull << 40}, 8);
	IS(nvmlDeviceGetTotalEccErrors(devices[0], 1, 2, &wide), 0);
	IS(wide, 1ull << 40);
	IS(answers.nvml_args.selectors[0], 1);
	IS(answers.nvml_args.selectors[1], 2);
	IS(answers.nvml_args.selectors[2], 0);
	put(0, &(unsigned){5}, 4);
	IS(nvmlDeviceGetP2PStatus(devices[0], devices[1], 3, &a), 0);
	IS(a, 5);
	IS(answers.nvml_args.other, 4);
	IS(nvmlShutdown(), 0);
}

static void test_refused(void)
{
	unsigned a = 7, b = 7, calls;
	begin();
	/* By the server. */
	put(0, &(unsigned){5}, 4);
	answers.nvml.result = CKT_NVML_NOT_SUPPORTED;
	IS(nvmlDeviceGetPowerUsage(devices[0], &a), CKT_NVML_NOT_SUPPORTED);
	IS(a, 7);
	/* Not what was asked for. */
	answers.nvml.result = 0;
	for (unsigned length = 0; length <= 16; length++) {
		answers.nvml.data.data_len = length;
		IS(nvmlDeviceGetEccMode(devices[0], &a, &b), length == 12 ? 0 : CKT_NVML_UNKNOWN);
	}
	/* Before anybody is asked. */
	calls = answers.calls;
	IS(nvmlDeviceGetPowerUsage(devices[0], NULL), CKT_NVML_INVALID_ARGUMENT);
	IS(nvmlDeviceGetEccMode(devices[0], &a, NULL), CKT_NVML_INVALID_ARGUMENT);
	IS(nvmlDeviceGetPowerUsage(&a, &a), CKT_NVML_INVALID_ARGUMENT);
	IS(nvmlDeviceGetP2PStatus(devices[0], &a, 0, &a), CKT_NVML_INVALID_ARGUMENT);
	stderr_begin();
	IS(nvmlDeviceSetPersistenceMode(), CKT_NVML_NOT_SUPPORTED);
	IS(nvmlDeviceSetPersistenceMode(), CKT_NVML_NOT_SUPPORTED);
	IS(nvmlUnitGetCount(), CKT_NVML_NOT_SUPPORTED);
	const char *said = stderr_end(),
		   *first = strstr(said, "nvmlDeviceSetPersistenceMode is not supported");
	YES(first && !strstr(first + 1, "nvmlDeviceSetPersistenceMode"));
	HAS(said, "nvmlUnitGetCount is not supported");
	IS(answers.calls, calls);
	IS(nvmlShutdown(), 0);
	IS(nvmlDeviceGetPowerUsage(devices[0], &a), CKT_NVML_UNINITIALIZED);
	IS(nvmlSystemGetDriverVersion((char *)&a, 4), CKT_NVML_UNINITIALIZED);
}

static void test_texts(void)
{
	char text[16] = "-";
	begin();
	answers.nvml.text = (char *)"SERIAL-7";
	IS(nvmlDeviceGetSerial(devices[0], text, 8), CKT_NVML_INSUFFICIENT_SIZE);
	TEXT(text, "-");
	IS(nvmlDeviceGetSerial(devices[0], text, 9), 0);
	TEXT(text, "SERIAL-7");
	IS(nvmlDeviceGetSerial(devices[0], NULL, 9), CKT_NVML_INVALID_ARGUMENT);
	IS(nvmlDeviceGetSerial(devices[0], text, 0), CKT_NVML_INSUFFICIENT_SIZE);
	answers.nvml.text = (char *)"580.1";
	IS(nvmlSystemGetDriverVersion(text, sizeof text), 0);
	TEXT(text, "580.1");
	IS(nvmlShutdown(), 0);
}

static void test_versioned(void)
{
	uint32_t block[8];
	begin();
	static const uint32_t bad[] = {
		0, 32, 3u << 24, 3u << 24 | 3, 3u << 24 | (CKT_NVML_DATA_BYTES + 1), ~0u};
	for (size_t i = 0; i < COUNT(bad); i++) {
		block[0] = bad[i];
		IS(nvmlDeviceGetGpuFabricInfoV(devices[0], block),
			CKT_NVML_ARGUMENT_VERSION_MISMATCH);
	}
	IS(answers.calls, 1);
	IS(nvmlDeviceGetGpuFabricInfoV(devices[0], NULL), CKT_NVML_INVALID_ARGUMENT);
	block[0] = sizeof block | 3u << 24;
	block[7] = 7;
	answers.nvml.data.data_len = sizeof block + 4;
	IS(nvmlDeviceGetGpuFabricInfoV(devices[0], block), CKT_NVML_UNKNOWN);
	IS(block[7], 7);
	put(28, &(uint32_t){99}, 4);
	IS(nvmlDeviceGetGpuFabricInfoV(devices[0], block), 0);
	IS(answers.nvml_args.selectors[0], sizeof block | 3u << 24);
	IS(block[7], 99);
	IS(block[0], sizeof block | 3u << 24); /* the program's own word, whatever came */
	IS(nvmlShutdown(), 0);
}

static void test_fields(void)
{
	uint32_t values[3][CKT_NVML_FIELD_BYTES / 4] = {{11, 1}, {12}, {13}};
	begin();
	IS(nvmlDeviceGetFieldValues(devices[0], 0, values), CKT_NVML_INVALID_ARGUMENT);
	IS(nvmlDeviceGetFieldValues(devices[0], -1, values), CKT_NVML_INVALID_ARGUMENT);
	IS(nvmlDeviceGetFieldValues(devices[0], 1, NULL), CKT_NVML_INVALID_ARGUMENT);
	/* An answer of another size is none. */
	answers.nvml.data.data_len = 8;
	IS(nvmlDeviceGetFieldValues(devices[0], 1, values), 0);
	IS(values[0][7], CKT_NVML_UNKNOWN);
	IS(values[0][0], 11);
	put(36, &(uint32_t){0}, 4);
	memcpy(answers.nvml.data.data_val + 32, &(uint32_t){1234}, 4);
	unsigned calls = answers.calls;
	IS(nvmlDeviceGetFieldValues(devices[0], 3, values), 0);
	IS(answers.calls, calls + 3);
	IS(answers.nvml_args.selectors[0], 13);
	for (unsigned i = 0; i < 3; i++) {
		IS(values[i][8], 1234);
		IS(values[i][0], 11 + i);
		IS(values[i][1], i == 0);
	}
	answers.nvml.result = CKT_NVML_NOT_SUPPORTED;
	IS(nvmlDeviceGetFieldValues(devices[0], 1, values), 0);
	IS(values[0][7], CKT_NVML_NOT_SUPPORTED);
	/* Nobody there: not asked for each. */
	answers.how = HANGS_UP;
	stderr_begin();
	IS(nvmlDeviceGetFieldValues(devices[0], 3, values), CKT_NVML_DRIVER_NOT_LOADED);
	stderr_end();
	IS(nvmlShutdown(), 0);
}

UNIT_SUITE(pass, {"data", test_data}, {"refused", test_refused}, {"texts", test_texts},
	{"versioned", test_versioned}, {"fields", test_fields})
