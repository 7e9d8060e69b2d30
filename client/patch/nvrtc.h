/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NVRTC on the soft GPU: a program that asks it for machine code gets PTX, which is all that the
 * soft GPU runs.  Where a real architecture was asked for, NVRTC keeps the PTX from which it made
 * the machine code.
 *
 * nvJitLink gives nothing but machine code for PTX.  cuda-core and with it Numba look whether it
 * has nvJitLinkVersion, and link with the driver where it has not, as old ones did; so that name is
 * taken away.
 *
 * Threading and errors: as redirect.h.
 */
#pragma once

#include "client/patch/loaded_object.h"

/*
 * Whether cricket-run --soft started this process.  Takes the environment, since getenv may not
 * work yet.
 */
bool ckt_nvrtc_wanted(char *const *environment);
/*
 * True where the object is libnvrtc.so, whose nvrtcGetCUBIN and nvrtcGetCUBINSize then lead to
 * nvrtcGetPTX and nvrtcGetPTXSize, or libnvJitLink.so, in which nobody finds nvJitLinkVersion any
 * more.
 */
bool ckt_nvrtc_redirect(const struct ckt_loaded_object *object);
