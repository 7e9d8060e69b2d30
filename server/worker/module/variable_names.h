/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Candidate names of a module's variables, found in its image.
 *
 * The driver can look a variable up but cannot list variables, and device code has variables that
 * the host never asks for.  So the image gives candidates, and the driver says which of them are
 * variables:
 *
 *	machine code	the objects of its symbol tables
 *	PTX		identifiers behind the word .global or .const, up to the end of the statement
 *	anything else	every identifier: bytes without a symbol table, kinds that are not known
 *
 * A fat binary may compress each.  The candidates must be few, because a session stands still while
 * the driver looks them up.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct ckt_variable_names {
	char **list; /* sorted, without duplicates; owned */
	size_t count, room;
};

int ckt_variable_names_collect(
	const uint8_t *image, size_t size, struct ckt_variable_names *ret_names);
void ckt_variable_names_fini(struct ckt_variable_names *names);
