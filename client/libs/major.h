/* SPDX-License-Identifier: Apache-2.0 */
/* The major version of this copy of a shim, as in its SONAME. */
#pragma once

#include <stdint.h>

extern const uint32_t ckt_lib_major;
