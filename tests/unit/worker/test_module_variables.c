/* SPDX-License-Identifier: Apache-2.0 */
/* The variables of a loaded module: the driver is asked once, and they count. */
#include "server/worker/module/module_variables.h"

#include <string.h>

#include "rpc/gen/cuda_driver.h"
#include "server/worker/module/blob.h"
#include "server/worker/objects/object.h"
#include "server/worker/session/host_budget.h"
#include "tests/unit/suite.h"

static unsigned questions;

/* A driver whose modules have two variables, and one of size 0. */
static CUresult answer(CUdeviceptr *address, size_t *size, CUmodule module, const char *name)
{
	(void)module;
	questions++;
	if (strcmp(name, "first") && strcmp(name, "second") && strcmp(name, "empty"))
		return CUDA_ERROR_NOT_FOUND;
	*address = name[0] == 'f' ? 0x1000 : 0x2000;
	*size = name[0] == 'f' ? 16 : name[0] == 's' ? 8 : 0;
	return CUDA_SUCCESS;
}

static void test_variables(void)
{
	static char text[] = ".global .b8 first[16];\n.const .u64 second;\n.global .b8 empty[];\n"
			     ".extern .global .u32 elsewhere;\n";
	const struct ckt_blob blob = {.data = (uint8_t *)text, .size = sizeof text - 1};
	struct ckt_object module = {0};
	uint64_t before = ckt_budget_used();
	__typeof__(ckt_driver.cuModuleGetGlobal_v2) real = ckt_driver.cuModuleGetGlobal_v2;
	ckt_driver.cuModuleGetGlobal_v2 = answer;
	/* The session may have no more memory: nothing is kept, and it can be asked again. */
	ckt_budget_init(before + 8);
	CU_ASSERT_PTR_NULL(ckt_module_variables_of(&module, &blob));
	CU_ASSERT_EQUAL(ckt_budget_used(), before);
	ckt_budget_init(0);
	questions = 0;
	const struct ckt_module_variables *variables = ckt_module_variables_of(&module, &blob);
	CU_ASSERT_PTR_NOT_NULL_FATAL(variables);
	CU_ASSERT_EQUAL(questions, 4);
	CU_ASSERT_EQUAL_FATAL(variables->count, 2);
	CU_ASSERT_STRING_EQUAL(variables->list[0].name, "first");
	CU_ASSERT_EQUAL(variables->list[0].address, 0x1000);
	CU_ASSERT_EQUAL(variables->list[0].size, 16);
	CU_ASSERT_STRING_EQUAL(variables->list[1].name, "second");
	CU_ASSERT_PTR_EQUAL(ckt_module_variables_of(&module, &blob), variables);
	CU_ASSERT_EQUAL(questions, 4);
	CU_ASSERT_TRUE(ckt_budget_used() > before);
	ckt_module_variables_destroy(module.module.variables);
	CU_ASSERT_EQUAL(ckt_budget_used(), before);
	ckt_module_variables_destroy(NULL);
	ckt_driver.cuModuleGetGlobal_v2 = real;
}

UNIT_SUITE(variables, {"variables", test_variables})
