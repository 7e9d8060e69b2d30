/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of the library that a test's client loads itself; a missing one ends it. */
#pragma once

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

/* What dlopen() gave. */
static void *library;

static void *function(const char *name)
{
	void *found = dlsym(library, name);
	if (!found) {
		printf("no %s\n", name);
		exit(2);
	}
	return found;
}
