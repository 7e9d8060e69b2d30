/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NVIDIA's own library where a program has brought it in before anyone could give it the shim (it
 * was linked with it, and there is no audit module): every function it exports is overwritten with
 * a jump, and the first call of one opens the shim.
 *
 *	libcublas.so.13 (NVIDIA's)	  near it					  libcublas.so.13 (ours)
 *	cublasSgemm_v2: jmp stub ------>  lea slot, %r11; jmp *target ------------------> cublasSgemm_v2
 *			    until the first call: -> ckt_takeover_entry -> dlopen, dlsym
 *
 * Threading: taking over happens inside the dynamic loader, before the object's constructors; the
 * first calls may come from any thread. Errors: said on stderr, once an object; its calls then run
 * in NVIDIA's code, over our runtime.
 */
#pragma once

#include "client/patch/loaded_object.h"

/*
 * False where it could not be done, which is said.  Precondition: there is a shim for the object's
 * SONAME, and it is not the shim.
 */
bool ckt_takeover_object(const struct ckt_loaded_object *object);
