/* SPDX-License-Identifier: Apache-2.0 */
/* An image of the session inside the test's own process, in memory: written, read, looked into. */
#pragma once

#include "checkpoint/format/store.h"
#include "checkpoint/save/save.h"
#include "tests/unit/worker/inside.h"

extern int image_fds[CKT_IMAGE_MEMORY_FILES];
/* What the last of these calls said. */
extern char image_message[CKT_MESSAGE_MAX];

void image_files_new(void);
void image_files_close(void);
/* ckt_checkpoint_save's result. */
int image_save(struct ckt_save *save);
/* Ends the test where it cannot be read; image_free() it. */
ckt_image *image_read(void);
void image_free(ckt_image *image);
/* A word of device memory as the image has it; -1 where no chunk holds it. */
int64_t image_word(const ckt_image *image, uint64_t address);
