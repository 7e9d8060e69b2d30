/*
 * CUDA_VISIBLE_DEVICES: which of the GPUs there are a program is to see, and in which order.
 *
 * Entries are separated by commas: the number of a GPU, or GPU- and the beginning of its UUID, as
 * long as only one GPU's begins so; all of the first one's kind.  The first entry that names none
 * ends the list.  A GPU that is named twice is an error.  So two H200s have it.
 */
#pragma once

#include <stdint.h>

#include "base/bounds.h"

enum { CKT_VISIBLE_UUID = 16 };

/*
 * The text of a variable in a hello, in pieces: capabilities of this name, value the number of the
 * piece, behind the colon the text.
 */
#define CKT_VISIBLE_CAPABILITY "visible:"
enum { CKT_VISIBLE_PIECE = 56, CKT_VISIBLE_TEXT_MAX = 2016 };

/*
 * uuids: of `count` GPUs; ret: room for that many indices into them.  Gives how many are visible,
 * -EINVAL where one is named twice.
 */
int ckt_visible_select(
	const char *text, const uint8_t (*uuids)[CKT_VISIBLE_UUID], unsigned count, unsigned *ret);
