/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A recording double of the genuine cuBLASLt: each call's name and every parameter become a line,
 * descriptors with all that was set of them.
 *
 *	cublasLtMatmul handle=H op={0=68 1=0 7=4 8=0x1000} alpha=host:3f800000 a=0x10 ...
 *
 * Descriptors are the double's own, so that one that was destroyed and is used again is found
 * (AddressSanitizer).
 */
#pragma once

#include <cublasLt.h>
#include <stddef.h>

/* Puts the double into the worker's table of functions and opens the library. */
void double_install(void);
/* The same of a library as new as CUDA 13.5's. */
void double_install_newer(void);
/* What was called since the last time, a line each, descriptors apart. */
const char *double_calls(void);
/* Descriptors that were made and not ended; how many were made at all. */
int double_descriptors(void);
int double_made(void);
/* What the next calls give instead of success, once each but for descriptors' attributes. */
extern cublasStatus_t double_status;
/* How many results a heuristic and ids in a list there are. */
extern int double_results;
/* An attribute that the library does not know; -1. */
extern int double_unknown;
