/* A server that saves: writes an image into the directory that comes along. */
#pragma once

#include "inside.h"

/* Of the next image; counts up.  ancestor: of increments. */
extern uint8_t save_id;
extern ckt_control_save_res save_res;
/* What the arguments of the latest saves were. */
extern struct saved {
	bool incremental, hold, keep_hashes, compress, to_memory;
	unsigned deadline_ms;
	char base, stage[65];
} saves[64];
extern unsigned save_count;

void saves_begin(void);
