/* SPDX-License-Identifier: Apache-2.0 */
/* Which major of the library a copy of a shim is: the same objects are linked once for each. */
#include "client/libs/major.h"

const uint32_t ckt_lib_major = CKT_LIB_MAJOR;
