/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server/worker/memory/hostmem_image.c: the client's pinned memory in images: what it holds, where
 * the client does not bring that along.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "checkpoint/load/image_load.h"
#include "checkpoint/save/image_save.h"
#include "checkpoint/save/save.h"
#include "rpc/hostmem.h"
#include "server/worker/memory/window.h"
#include "server/worker/objects/object_kinds.h"
#include "tests/unit/worker/inside.h"

#define GRAIN CKT_HOST_GRAIN

static struct ckt_hostmem *host = &ckt_worker.host;

static void test_image(void)
{
	struct ckt_save save = {0};
	char message[CKT_MESSAGE_MAX] = "";
	ckt_image_host h;
	struct ckt_saving s = {.worker = &ckt_worker,
		.save = &save,
		.message = message,
		.message_size = sizeof message};
	h.size = 2 * GRAIN;
	MUST(ckt_hostmem_restore(&ckt_worker, CKT_HOST_BASE, h.size, false), CUDA_SUCCESS);
	inside_fill(CKT_HOST_BASE, 6, 64);
	MUST(ckt_hostmem_kind.save_rest(&s), 0);
	IS(s.image.host.host_len, 1);
	h = s.image.host.host_val[0];
	IS(h.address, CKT_HOST_BASE);
	IS(h.size, 2 * GRAIN);
	NO(h.shared);
	IS(s.piece_count, 1);
	IS(s.pieces[0].size, 2 * GRAIN);
	IS(((const uint32_t *)s.pieces[0].data)[0], 6);
	/* A copy: the program goes on. */
	inside_fill(CKT_HOST_BASE, 9, 4);
	IS(((const uint32_t *)s.pieces[0].data)[0], 6);
	ckt_hostmem_kind.free(&s);
	free(s.pieces);
	free(s.image.host.host_val);
	/* Made again: once, where nothing lies. */
	struct ckt_loading l = {
		.worker = &ckt_worker, .message = message, .message_size = sizeof message};
	l.image.host.host_val = &h;
	l.image.host.host_len = 1;
	YES(ckt_hostmem_kind.load(&l, 0) != 0);
	HAS(message, "host memory at");
	MUST(ASK(host_unmap, .address = CKT_HOST_BASE, .size = 2 * GRAIN), CUDA_SUCCESS);
	h.address += 1;
	YES(ckt_hostmem_kind.load(&l, 0) != 0);
	h.address -= 1;
	IS(ckt_hostmem_kind.load(&l, 0), 0);
	NO(host->unfilled);
	IS(inside_word(CKT_HOST_BASE), 0);
	/* Where it was shared its contents are the client's: not in the image. */
	MUST(ASK(host_unmap, .address = CKT_HOST_BASE, .size = 2 * GRAIN), CUDA_SUCCESS);
	h.shared = true;
	IS(ckt_hostmem_kind.load(&l, 0), 0);
	YES(host->unfilled);
	s = (struct ckt_saving){.worker = &ckt_worker,
		.save = &save,
		.message = message,
		.message_size = sizeof message};
	IS(ckt_hostmem_kind.save_rest(&s), 0);
	YES(s.image.host.host_len == 1 && s.image.host.host_val[0].shared);
	IS(s.piece_count, 0);
	ckt_hostmem_kind.free(&s);
	free(s.image.host.host_val);
	/* The client comes with its file. */
	int fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	uint32_t word = 21;
	CU_ASSERT_FATAL(fd >= 0 && ftruncate(fd, 2 * GRAIN) == 0 &&
		fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK) == 0);
	IS(pwrite(fd, &word, sizeof word, GRAIN), sizeof word);
	ckt_hostmem_attach(&ckt_worker, fd);
	YES(host->shared && !host->unfilled);
	IS(inside_word(CKT_HOST_BASE + GRAIN), 21);
	IS(ASK(host_unmap, .address = CKT_HOST_BASE, .size = 2 * GRAIN), CUDA_SUCCESS);
	ckt_hostmem_attach(&ckt_worker, -1);
}

UNIT_SUITE(hostmem_image, {"image", test_image})
