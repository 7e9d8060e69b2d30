/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CUDA_VISIBLE_DEVICES: which of the GPUs a program sees, and in which order.  Entries are
 * separated by commas: the number of a GPU, or GPU- and a unique prefix of its UUID; all have the
 * first entry's kind. The first entry that names no GPU ends the list.  Naming a GPU twice is an
 * error.  Two H200s behave in this way.
 */
#pragma once

#include <stdint.h>

#include "base/bounds.h"

enum { CKT_VISIBLE_UUID = 16 };

/*
 * The text of the variable in a hello, in pieces: capabilities of this name; value: the number of
 * the piece; the text follows the colon.
 */
#define CKT_VISIBLE_CAPABILITY "visible:"
enum { CKT_VISIBLE_PIECE = 56, CKT_VISIBLE_TEXT_MAX = 2016 };

/*
 * uuids: of `count` GPUs; ret: room for that many indices into them.  Returns how many are visible,
 * -EINVAL if one is named twice.
 */
int ckt_visible_select(
	const char *text, const uint8_t (*uuids)[CKT_VISIBLE_UUID], unsigned count, unsigned *ret);
