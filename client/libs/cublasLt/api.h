/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuBLASLt's API as the shim exports it: descriptors here (descriptor.c), work on streams batched
 * (matmul.c), questions asked once for each content (ask.c, algo.c).
 *
 * Functions named cublasLt* follow NVIDIA's documentation of cuBLAS 13.1 and what that library
 * answers; they return a cublasStatus_t, write outputs only on success and may be called from any
 * thread.
 */
#pragma once

/* The functions stay visible: so this comes before any other header that includes cublasLt.h. */
#pragma GCC visibility push(default)
#include "rpc/cublasLt_exported.h"
#pragma GCC visibility pop
