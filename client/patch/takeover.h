/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Takes over NVIDIA's own library if the loader has mapped it already (the program was linked with
 * it, and there is no audit module).  Every exported function is overwritten with a jump.  The
 * first call of a function opens the shim.
 *
 *	libcublas.so.13 (NVIDIA's)	  near it					  libcublas.so.13 (ours)
 *	cublasSgemm_v2: jmp stub ------>  lea slot, %r11; jmp *target ------------------> cublasSgemm_v2
 *			    until the first call: -> ckt_takeover_entry -> dlopen, dlsym
 *
 * Threading: taking over happens inside the dynamic loader, before the object's constructors; the
 * first calls may come from any thread.  Errors: one line on stderr for each object.  Calls of that
 * object then run in NVIDIA's code, over our runtime.
 */
#pragma once

#include "client/patch/loaded_object.h"

/*
 * False if it failed, after one line on stderr.  Precondition: there is a shim for the object's
 * SONAME, and the object is not the shim.
 */
bool ckt_takeover_object(const struct ckt_loaded_object *object);
