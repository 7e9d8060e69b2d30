/* SPDX-License-Identifier: Apache-2.0 */
/* The major version of this copy of a shim: the same objects are linked once for each version. */
#include "client/libs/major.h"

const uint32_t ckt_lib_major = CKT_LIB_MAJOR;
