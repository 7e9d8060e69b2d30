/*
 * Variables of the program's environment that the libraries in the worker see: those that set how a
 * library computes, and no other.  What names files, loads code or names network interfaces of the
 * program's machine stays there; cricket(7) lists both.
 *
 * The client asks which of its own to send, the worker what it may take.  Threading: any.
 */
#pragma once

#include <stdbool.h>

enum { CKT_LIBRARY_VALUE_MAX = 255 };

/* The name of that number; NULL behind the last one. */
const char *ckt_library_environment_name(unsigned number);
/*
 * Whether the name is one of them, and the value nothing but a word or a list of words: no path, no
 * blank.
 */
bool ckt_library_environment_allows(const char *name, const char *value);
