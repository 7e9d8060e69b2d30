/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the suites of restores share: a module with a variable that nobody can ask for, and a look
 * into an image.
 */
#pragma once

#include "checkpoint/format/image.h"
#include "tests/unit/worker/wire_session.h"

/* The same PTX for any GPU, and for the newest alone. */
extern const char common[], newer[];
/*
 * add(step) to `hidden`, read(out) of it, point(out): its address, keep(): its address in another
 * variable.
 */
enum { ADD, READ, POINT, KEEP, KERNELS };

/* MODULE(n) and its kernels FUNCTION(10 n + kernel). */
void load(struct wire *w, unsigned n, const char *ptx);
void launch(struct wire *w, unsigned n, unsigned kernel, const void *params, uint32_t size);
/* The address of a variable, as the program asks for it. */
uint64_t ask(struct wire *w, unsigned n, const char *name);
/* The variable's value, by way of memory. */
uint32_t hidden(struct wire *w, unsigned n, uint64_t scratch);
/* Whether the session's note holds the words. */
bool noted(struct wire *w, const char *words);
/* Executed when it returns. */
void make_streams(struct wire *w, unsigned from, unsigned count);
/* xdr_free() it. */
void read_image(const char *directory, ckt_image *ret_image);
