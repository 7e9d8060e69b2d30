/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a program's logger hears: failures, and each call where it wants the trace of the API.
 */
#pragma once

#include "client/libs/cublasLt/api.h"

/* Gives back status. */
cublasStatus_t ckt_lt_log(const char *function, cublasStatus_t status);
