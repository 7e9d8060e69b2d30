/* SPDX-License-Identifier: Apache-2.0 */
/* Which boot of which machine this is.  Threads: any. */
#pragma once

#include <stdbool.h>

enum { CKT_BOOT_ID_SIZE = 64 }; /* the kernel's has 36 characters */

/* The kernel's boot id, without the end of its line.  False: it cannot be read, and the text is empty. */
bool ckt_boot_id(char ret_text[CKT_BOOT_ID_SIZE]);
