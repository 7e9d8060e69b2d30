/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The variables of a loaded module, with their addresses.  They never change while the module is
 * loaded, so the driver is asked once: a session stands still while its image asks for them.
 *
 * Threading: the executor, or who has frozen it.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct ckt_object;
struct ckt_blob;

struct ckt_module_variables {
	struct ckt_module_variable {
		char *name; /* owned */
		uint64_t address, size;
	} * list; /* owned */
	size_t count;
	uint64_t bytes; /* charged to the session's host memory */
};

/*
 * The module's variables; they live as long as the module.  blob: its contents.  NULL: no memory,
 * or the session may not have as much.
 * Precondition: the module's context is current.
 */
const struct ckt_module_variables *ckt_module_variables_of(
	struct ckt_object *module, const struct ckt_blob *blob);
/* NULL: nothing. */
void ckt_module_variables_destroy(struct ckt_module_variables *variables);
