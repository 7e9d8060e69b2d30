/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The variables of the program's environment that the libraries in the worker see: only those that
 * set how a library computes.  Variables that name files, load code or name network interfaces stay
 * on the program's machine; cricket(7) lists both.  The client asks which of its own to send, the
 * worker which to accept.  Threading: any.
 */
#pragma once

#include <stdbool.h>

enum { CKT_LIBRARY_VALUE_MAX = 255 };

/* The name with that number; NULL after the last one. */
const char *ckt_library_environment_name(unsigned number);
/* Whether the name is in the list and the value is a word or a list of words: no path, no blank. */
bool ckt_library_environment_allows(const char *name, const char *value);
