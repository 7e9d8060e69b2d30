/* How many devices one process can have: the bound of every table that has an entry per device. */
#pragma once

/* The same as CKT_DEVICES_MAX of rpc/session.x; peer masks are 64 bits wide.  CUDA allows fewer. */
enum { CKT_CUDA_DEVICES_MAX = 64 };
