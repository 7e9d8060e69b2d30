/* SPDX-License-Identifier: Apache-2.0 */
/* The variables of a loaded module; see module_variables.h. */
#include "server/worker/module/module_variables.h"

#include <stdlib.h>
#include <string.h>

#include "rpc/gen/cuda_driver.h"
#include "server/worker/module/blob.h"
#include "server/worker/module/variable_names.h"
#include "server/worker/objects/object.h"
#include "server/worker/session/host_budget.h"

void ckt_module_variables_destroy(struct ckt_module_variables *variables)
{
	if (!variables)
		return;
	for (size_t i = 0; i < variables->count; i++)
		free(variables->list[i].name);
	free(variables->list);
	ckt_budget_uncharge(variables->bytes);
	free(variables);
}

/* Moves the names that are variables out of `names`. */
static void ask_driver(
	struct ckt_module_variables *variables, struct ckt_variable_names *names, CUmodule module)
{
	for (size_t i = 0; i < names->count; i++) {
		CUdeviceptr address;
		size_t size;
		if (ckt_driver.cuModuleGetGlobal_v2(&address, &size, module, names->list[i]) ||
			!size)
			continue;
		variables->list[variables->count++] = (struct ckt_module_variable){
			.name = names->list[i], .address = address, .size = size};
		variables->bytes += sizeof *variables->list + strlen(names->list[i]) + 1;
		names->list[i] = NULL;
	}
}

/* Takes the names that are variables out of `names`; NULL: as ckt_module_variables_of. */
static struct ckt_module_variables *make(struct ckt_variable_names *names, CUmodule module)
{
	struct ckt_module_variables *variables = calloc(1, sizeof *variables);
	if (!variables)
		return NULL;
	variables->list = calloc(names->count + 1, sizeof *variables->list);
	if (variables->list) {
		ask_driver(variables, names, module);
		if (ckt_budget_charge(variables->bytes, "names of variables"))
			return variables;
	}
	variables->bytes = 0;
	ckt_module_variables_destroy(variables);
	return NULL;
}

const struct ckt_module_variables *ckt_module_variables_of(
	struct ckt_object *module, const struct ckt_blob *blob)
{
	struct ckt_variable_names names;
	if (module->module.variables)
		return module->module.variables;
	if (ckt_variable_names_collect(blob->data, blob->size, &names))
		return NULL;
	module->module.variables = make(&names, module->real);
	ckt_variable_names_fini(&names);
	return module->module.variables;
}
