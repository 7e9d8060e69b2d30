/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Candidate names of a module's variables, found in its image.
 *
 * The driver can look a variable up but cannot list variables, and device code has variables that
 * the host never asks for.  So every identifier in the image is a candidate, and the driver says
 * which of them are variables.  Identifiers come from PTX text or from the string table of machine
 * code; a fat binary may compress both.
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
