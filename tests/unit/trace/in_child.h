/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A process records its calls from start to end once: each test records in a child, and looks at
 * what the child wrote.
 */
#pragma once

#include "client/trace/recorder.h"

/* A function of the program: number 0 and up. */
struct ckt_trace_site *site(unsigned number);
/*
 * Runs the function in a child with these two variables (NULL: unset), with stderr in a file.
 * Returns the child's exit status; 128 and the number of the signal that killed it.
 */
int in_child(const char *trace, const char *stats, void (*function)(void));
/* The text of the last child's stderr, and of a file; valid until the next call. */
const char *child_said(void);
const char *file_text(const char *path);
/* The name of a file in the test's own directory. */
const char *own_path(const char *name);
/* How often the part occurs in the text. */
unsigned occurs(const char *text, const char *part);
