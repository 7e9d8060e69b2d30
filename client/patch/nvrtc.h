/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NVRTC on the soft GPU: a program that asks for machine code gets PTX, because the soft GPU runs
 * only PTX.  If the program names a real architecture, NVRTC still keeps the PTX from which it made
 * the machine code.
 *
 * nvJitLink makes only machine code from PTX. cuda-core, and Numba through it, check for
 * nvJitLinkVersion.  Without that function they link with the driver, as for old versions of
 * nvJitLink.  So this module hides the name.
 *
 * Threading and errors: as redirect.h.
 */
#pragma once

#include "client/patch/loaded_object.h"

/*
 * Whether cricket-run --soft started this process.  The environment is an argument because getenv
 * may not work yet.
 */
bool ckt_nvrtc_wanted(char *const *environment);
/*
 * True if the object is libnvrtc.so or libnvJitLink.so.  In libnvrtc.so, nvrtcGetCUBIN and
 * nvrtcGetCUBINSize now jump to nvrtcGetPTX and nvrtcGetPTXSize.  In libnvJitLink.so,
 * nvJitLinkVersion is now hidden.
 */
bool ckt_nvrtc_redirect(const struct ckt_loaded_object *object);
