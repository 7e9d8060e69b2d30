/* SPDX-License-Identifier: Apache-2.0 */
/*
 * softgpu/module/kernel_output.c: text of kernels in its order, at a synchronisation or when the
 * FIFO is full, to either descriptor.
 */
#include <fcntl.h>
#include <unistd.h>

#include "files.h"
#include "softgpu/context/context.h"
#include "softgpu/module/kernel_output.h"

/* What has come so far. */
static size_t come(int fd, char *ret_text, size_t size)
{
	ssize_t n = read(fd, ret_text, size - 1);
	ret_text[n > 0 ? n : 0] = '\0';
	return n > 0 ? (size_t)n : 0;
}

static void test_order(void)
{
	int one[2], two[2];
	char text[16384];
	test_context();
	struct ckt_soft_context *c = files_context();
	IS(pipe2(one, O_NONBLOCK), 0);
	IS(pipe2(two, O_NONBLOCK), 0);
	ckt_soft_output_write(c, one[1], "a", 1);
	ckt_soft_output_write(c, one[1], "bc", 2);
	ckt_soft_output_write(c, two[1], "other", 5);
	ckt_soft_output_write(c, one[1], "\0d", 2);
	IS(come(one[0], text, sizeof(text)), 0);
	ckt_soft_output_flush(c);
	IS(come(one[0], text, sizeof(text)), 5);
	IS(memcmp(text, "abc\0d", 5), 0);
	come(two[0], text, sizeof(text));
	TEXT(text, "other");
	ckt_soft_output_flush(c);
	IS(come(one[0], text, sizeof(text)), 0);
	/* A text larger than a piece, and one that would not fit behind another. */
	static char large[9000], rest[4090];
	memset(large, 'l', sizeof(large));
	memset(rest, 'r', sizeof(rest));
	ckt_soft_output_write(c, one[1], rest, sizeof(rest));
	ckt_soft_output_write(c, one[1], "0123456789", 10);
	ckt_soft_output_write(c, one[1], large, sizeof(large));
	OK(cuCtxSynchronize());
	IS(come(one[0], text, sizeof(text)), sizeof(rest) + 10 + sizeof(large));
	IS(memcmp(text + sizeof(rest), "0123456789l", 11), 0);
	/* Full: written at once, nothing is lost. */
	OK(cuCtxSetLimit(CU_LIMIT_PRINTF_FIFO_SIZE, 8));
	ckt_soft_output_write(c, one[1], "12345678", 8);
	IS(come(one[0], text, sizeof(text)), 0);
	ckt_soft_output_write(c, one[1], "9", 1);
	come(one[0], text, sizeof(text));
	TEXT(text, "123456789");
	/* A descriptor that cannot be written to loses its text and does no harm. */
	ckt_soft_output_write(c, one[0], "lost", 4);
	ckt_soft_output_write(c, one[1], "kept", 4);
	ckt_soft_output_flush(c);
	come(one[0], text, sizeof(text));
	TEXT(text, "kept");
	for (int i = 0; i < 2; i++) {
		close(one[i]);
		close(two[i]);
	}
}

/* Every kind of wait brings it. */
static void test_waits(void)
{
	int fds[2];
	char text[64];
	CUevent event;
	CUdeviceptr p;
	test_context();
	struct ckt_soft_context *c = files_context();
	IS(pipe2(fds, O_NONBLOCK), 0);
	OK(cuEventCreate(&event, 0));
	OK(cuMemAlloc(&p, 4));
	for (int i = 0; i < 5; i++) {
		ckt_soft_output_write(c, fds[1], "x", 1);
		switch (i) {
		case 0:
			OK(cuCtxSynchronize());
			break;
		case 1:
			OK(cuStreamSynchronize(NULL));
			break;
		case 2:
			OK(cuEventSynchronize(event));
			break;
		case 3:
			files_word(p);
			break;
		case 4:
			test_context();
			break; /* the context's end */
		}
		IS(come(fds[0], text, sizeof(text)), 1);
	}
	close(fds[0]);
	close(fds[1]);
}

UNIT_SUITE(softgpu / module / kernel_output, {"order", test_order}, {"waits", test_waits})
