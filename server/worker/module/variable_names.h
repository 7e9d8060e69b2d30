/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Candidate names of a module's variables, found in its image.
 *
 * The driver can look a variable up but not list them, and device code has variables that the host
 * never asks for.  So every identifier in the image (PTX text, or the string table of machine code,
 * inside a fat binary compressed or not) is a candidate; the driver says which of them are
 * variables.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct ckt_variable_names {
	char **list; /* sorted, without doubles; owned */
	size_t count, room;
};

int ckt_variable_names_collect(
	const uint8_t *image, size_t size, struct ckt_variable_names *ret_names);
void ckt_variable_names_fini(struct ckt_variable_names *names);
