/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When the driver loads a module's code and variables: at once (eager), or function by function as
 * they are first used (lazy).
 *
 * Where a variable lies depends on all that was loaded before it, so a restore has to load the same
 * in the same order.  The program's own modules are loaded whole in either mode: each is one step
 * of the journal (module.c).  Of libraries, whose modules are large and mostly never used, lazy
 * loading loads what is used, and each first use is a step (libs/code.h).
 *
 * CKT_MODULE_LOADING_DEFAULT (rpc/module_loading.h) decides for new sessions; an operator's
 * CUDA_MODULE_LOADING goes before it, and the mode that an image was written in before both.
 */
#pragma once

#include <cuda.h>
#include <stdbool.h>

#define CKT_LOADING_LAZY "LAZY"

/*
 * The environment that the driver will read; lazy: what an image says, else NULL.  Precondition:
 * the driver is not open.
 */
void ckt_loading_prepare(const bool *lazy);
/* What the driver does.  Precondition: it is open. */
bool ckt_loading_is_lazy(void);
/*
 * Loads all of a module in the current context, which an eager driver has done.  The driver's
 * result.
 */
CUresult ckt_loading_whole(CUmodule module);
