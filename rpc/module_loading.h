/*
 * How the driver of a new session's worker loads modules, EAGER or LAZY, where the operator's
 * CUDA_MODULE_LOADING does not say it; what that means is in server/worker/module/module_loading.h.
 */
#pragma once

#define CKT_MODULE_LOADING_DEFAULT "LAZY"
