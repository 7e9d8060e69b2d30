/* SPDX-License-Identifier: Apache-2.0 */
/* Which major of the library a copy of a shim is: that of its SONAME. */
#pragma once

#include <stdint.h>

extern const uint32_t ckt_lib_major;
