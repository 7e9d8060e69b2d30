/* SPDX-License-Identifier: Apache-2.0 */
/* server/daemon/audit/audit_calls.c: a name for each procedure, and what calls and answers say. */
#include <string.h>

#include "inside.h"
#include "server/daemon/audit/audit_calls.h"

static void test_names(void)
{
	/* Without a gap, and each once. */
	unsigned count = 0;
	while (ckt_audit_call_name(count))
		count++;
	YES(count > CKT_CONTROL_NCCL_IDS);
	for (unsigned i = 0; i < count; i++)
		for (unsigned other = 0; other < i; other++)
			IS(strcmp(ckt_audit_call_name(i), ckt_audit_call_name(other)) == 0, 0);
	CU_ASSERT_PTR_NULL(ckt_audit_call_name(count + 1000));
	TEXT(ckt_audit_call_name(CKT_CONTROL_RESTORE2), "restore2");
}

static void test_arguments(void)
{
	struct ckt_audit_record record = {0};
	ckt_control_save_args save = {.session = (char *)"0123", .stage = (char *)"mine"};
	ckt_audit_call_arguments(CKT_CONTROL_SAVE, &save, &record);
	TEXT(record.session, "0123");
	TEXT(record.object, "mine");
	ckt_control_job_args job = {.job = (char *)"training"};
	ckt_audit_call_arguments(CKT_CONTROL_JOB_HOLD, &job, &record);
	TEXT(record.object, "training");
	CU_ASSERT_PTR_NULL(record.session);
	ckt_audit_call_arguments(CKT_CONTROL_INFO, NULL, &record);
	CU_ASSERT_PTR_NULL(record.object);
}

static void test_answers(void)
{
	struct ckt_audit_record record = {.session = "0123"};
	ckt_control_save_res save = {.session = (char *)"0123456789ab"};
	ckt_audit_call_answer(CKT_CONTROL_SAVE, &save, &record);
	TEXT(record.session, "0123456789ab");
	TEXT(record.result, "ok");
	CU_ASSERT_PTR_NULL(record.reason);
	/* An answer that names none leaves what was asked for. */
	record.session = "0123";
	save = (ckt_control_save_res){
		.result = {CKT_CONTROL_NO_SESSION, (char *)"there is none"}, .session = (char *)""};
	ckt_audit_call_answer(CKT_CONTROL_SAVE, &save, &record);
	TEXT(record.session, "0123");
	TEXT(record.result, "refused");
	TEXT(record.reason, "there is none");
	record = (struct ckt_audit_record){0};
	ckt_audit_call_answer(CKT_CONTROL_NULL, NULL, &record);
	TEXT(record.result, "ok");
	ckt_control_nvml_res nvml = {.result = 3};
	ckt_audit_call_answer(CKT_CONTROL_NVML, &nvml, &record);
	TEXT(record.result, "failed");
	nvml.result = 0;
	ckt_audit_call_answer(CKT_CONTROL_NVML, &nvml, &record);
	TEXT(record.result, "ok");
}

UNIT_SUITE(audit_calls, {"names", test_names}, {"arguments", test_arguments},
	{"answers", test_answers})
