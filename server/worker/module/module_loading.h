/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The time when the driver loads a module's code and variables: all at once (eager), or each
 * function at its first use (lazy).
 *
 * The address of a variable depends on everything that was loaded before it, so a restore must load
 * the same things in the same order.  The program's own modules are loaded whole in either mode:
 * each is one step of the journal (module.c).  The modules of libraries are large and mostly
 * unused.  Lazy loading loads only the used parts, and each first use is a step (libs/code.h).
 *
 * CKT_MODULE_LOADING_DEFAULT (rpc/module_loading.h) is the mode of new sessions.  An operator's
 * CUDA_MODULE_LOADING overrides it, and the mode of an image overrides both.
 */
#pragma once

#include <cuda.h>
#include <stdbool.h>

#define CKT_LOADING_LAZY "LAZY"

/*
 * Sets the environment that the driver will read.  lazy: the mode of an image, or NULL.
 * Precondition: the driver is not open.
 */
void ckt_loading_prepare(const bool *lazy);
/* The driver's present mode.  Precondition: the driver is open. */
bool ckt_loading_is_lazy(void);
/*
 * Loads all of a module in the current context; an eager driver has done so already.  Returns the
 * driver's result.
 */
CUresult ckt_loading_whole(CUmodule module);
