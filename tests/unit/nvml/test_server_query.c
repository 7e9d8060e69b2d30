/* SPDX-License-Identifier: Apache-2.0 */
/*
 * client/nvml/server_query.c: one question, one connection; servers that do not answer, or not what
 * was asked.  The file is included.
 */
#include "client/nvml/server_query.c"

#include <stdlib.h>

#include "answers.h"
#include "client/nvml/server_query.h"
#include "rpc/control.h"

void answers_forget(void)
{
	for (size_t i = 0; i < COUNT(failed_ms); i++)
		failed_ms[i] = 0;
	atomic_flag_clear(&told);
}

static int ask_devices(ckt_control_devices_res *res)
{
	*res = (ckt_control_devices_res){0};
	return ckt_nvml_call(
		0, CKT_CONTROL_DEVICES, NULL, NULL, (xdrproc_t)xdr_ckt_control_devices_res, res);
}

static void test_asks(void)
{
	ckt_control_devices_res res;
	answers_reset();
	for (unsigned i = 1; i <= 3; i++) {
		errno = 5;
		MUST(ask_devices(&res), CKT_NVML_SUCCESS);
		IS(errno, 5);
		IS(res.devices.devices_len, 2);
		TEXT(res.devices.devices_val[1].name, "Sooner");
		IS(answers.connections, i);
		xdr_free((xdrproc_t)xdr_ckt_control_devices_res, (char *)&res);
	}
}

static void test_failures(void)
{
	static const struct {
		enum how how;
		const char *says;
	} rows[] = {{HANGS_UP, "the server may be older than this client"},
		{CUTS_SHORT, "does not answer"}, {SAYS_NONSENSE, "does not answer"},
		{REFUSES, "not you"}};
	ckt_control_devices_res res;
	for (size_t i = 0; i < COUNT(rows); i++) {
		answers_reset();
		answers.how = rows[i].how;
		stderr_begin();
		IS(ask_devices(&res), CKT_NVML_DRIVER_NOT_LOADED);
		HAS(stderr_end(), rows[i].says);
		/* Remembered: nobody is asked, nothing is said. */
		unsigned connections = answers.connections;
		answers.how = ANSWERS;
		stderr_begin();
		IS(ask_devices(&res), CKT_NVML_DRIVER_NOT_LOADED);
		TEXT(stderr_end(), "");
		IS(answers.connections, connections);
	}
	answers_reset();
	IS(ask_devices(&res), CKT_NVML_SUCCESS);
	xdr_free((xdrproc_t)xdr_ckt_control_devices_res, (char *)&res);
}

/* The whole of it has one deadline. */
static void test_mute(void)
{
	ckt_control_devices_res res;
	int kept = ckt_settings.connect_timeout_ms;
	answers_reset();
	answers.how = SAYS_NOTHING;
	ckt_settings.connect_timeout_ms = 50;
	stderr_begin();
	IS(ask_devices(&res), CKT_NVML_DRIVER_NOT_LOADED);
	HAS(stderr_end(), "check that this is a cricket-server's port");
	ckt_settings.connect_timeout_ms = kept;
}

static void test_address(void)
{
	char kept[sizeof ckt_settings.address];
	ckt_control_devices_res res;
	snprintf(kept, sizeof kept, "%s", ckt_settings.address);
	static const struct {
		const char *address;
		bool given;
		const char *says;
	} rows[] = {{"unix:/nowhere/socket", true, "NVML: no server at unix:/nowhere/socket: "},
		{"unix:/nowhere/socket", false,
			"; set REMOTE_GPU_ADDRESS to a host that runs cricket-server"},
		{"a:b:c", true, "NVML: "}};
	for (size_t i = 0; i < COUNT(rows); i++) {
		answers_reset();
		snprintf(ckt_settings.address, sizeof ckt_settings.address, "%s", rows[i].address);
		ckt_settings.address_given = rows[i].given;
		stderr_begin();
		IS(ask_devices(&res), CKT_NVML_DRIVER_NOT_LOADED);
		HAS(stderr_end(), rows[i].says);
		IS(answers.connections, 0);
	}
	ckt_settings.address_given = true;
	snprintf(ckt_settings.address, sizeof ckt_settings.address, "%s", kept);
}

UNIT_SUITE(ask, {"a connection a question", test_asks}, {"bad servers", test_failures},
	{"a mute server", test_mute}, {"no server", test_address})
