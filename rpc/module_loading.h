/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How the driver of a new session's worker loads modules, EAGER or LAZY, unless the operator sets
 * CUDA_MODULE_LOADING; server/worker/module/module_loading.h explains both.
 */
#pragma once

#define CKT_MODULE_LOADING_DEFAULT "LAZY"
