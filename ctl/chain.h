/* An image and those it builds on, open; see chain.c. */
#pragma once

#include <stdbool.h>

#include "checkpoint/format/store.h"
#include "ctl/files.h"

struct ckt_ctl_chain {
	char path[CKT_CTL_PATH_SIZE];
	/* [0]: the image itself, then its ancestors, newest first */
	int fds[1 + CKT_IMAGE_ANCESTORS];
	unsigned count;
	bool read;
	ckt_image image; /* its manifest */
};

/*
 * An exit code, said. To be closed after success.  Without strict a manifest that cannot be read is
 * left for others to judge: the chain is then what the files `base` say.
 */
int ckt_ctl_chain_open(const char *first, bool strict, struct ckt_ctl_chain *chain);
void ckt_ctl_chain_close(struct ckt_ctl_chain *chain);
/* False where that is no image. */
bool ckt_ctl_image_id(const char *path, char ret_id[CKT_IMAGE_ID]);
