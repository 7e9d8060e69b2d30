/* SPDX-License-Identifier: Apache-2.0 */
/* A server that saves: writes an image into the directory that comes along. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "inside.h"
#include "rpc/control.h"

/* Of the next image; counts up.  ancestor: of increments. */
extern uint8_t save_id;
extern ckt_control_save_res save_res;
/* What the arguments of the latest saves were. */
extern struct saved {
	bool incremental, hold, keep_hashes, compress, to_memory;
	unsigned deadline_ms;
	char base, id[CKT_CONTROL_IMAGE_ID], stage[65];
} saves[64];
extern unsigned save_count;
/* The next save is refused: its base is not the last image. */
extern bool stale_once;

void saves_begin(void);
