/* SPDX-License-Identifier: Apache-2.0 */
/* client/cudart/memcpy3d.c: three-dimensional copies. */
#include "files.h"

static void test_boxes(void)
{
	uint32_t in[8] = {1, 2, 3, 4, 5, 6, 7, 8};
	uint32_t *memory = files_memory(8, 0);
	struct cudaMemcpy3DParms p = {.srcPtr = {in, 8, 8, 2},
		.dstPtr = {memory, 8, 8, 2},
		.extent = {8, 2, 2},
		.kind = cudaMemcpyHostToDevice};
	IS(cudaMemcpy3D(&p), OK);
	IS(files_word(memory + 7), 8);
	/* Slices of one row each lie apart by the slice, not by the row. */
	uint32_t apart[8] = {10, 11, 12, 13, 14, 15, 16, 17};
	struct cudaMemcpy3DParms slices = {.srcPtr = {apart, 8, 8, 2},
		.dstPtr = {memory, 8, 8, 2},
		.extent = {8, 1, 2},
		.kind = cudaMemcpyHostToDevice};
	IS(cudaMemcpy3D(&slices), OK);
	YES(files_word(memory) == 10 && files_word(memory + 1) == 11 &&
		files_word(memory + 2) == 3 && files_word(memory + 3) == 4);
	YES(files_word(memory + 4) == 14 && files_word(memory + 5) == 15 &&
		files_word(memory + 6) == 7);
	IS(cudaMemcpy3D(NULL), BAD);
	struct {
		struct cudaPitchedPtr from;
		struct cudaExtent extent;
		cudaError_t error;
	} cases[] = {
		{{in, 4, 8, 2}, {8, 2, 2},
			cudaErrorInvalidPitchValue}, /* rows are longer than the pitch */
		{{in, 8, 8, 1}, {8, 2, 2},
			cudaErrorInvalidPitchValue}, /* more rows than a slice has */
		{{in, 8, 8, 2}, {8, 0, 2}, OK},      /* nothing */
		{{NULL, 8, 8, 2}, {8, 2, 2}, BAD},
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		p.srcPtr = cases[i].from;
		p.extent = cases[i].extent;
		IS(cudaMemcpy3D(&p), cases[i].error);
	}
	p.srcPtr = (struct cudaPitchedPtr){in, 8, 8, 2};
	p.kind = (enum cudaMemcpyKind)9;
	IS(cudaMemcpy3DAsync(&p, NULL), cudaErrorInvalidMemcpyDirection);
	struct cudaMemcpy3DPeerParms peer = {.srcDevice = 0,
		.srcPtr = {memory, 8, 8, 2},
		.dstDevice = 9,
		.dstPtr = {memory, 8, 8, 2},
		.extent = {8, 1, 1}};
	IS(cudaMemcpy3DPeer(&peer), cudaErrorInvalidDevice);
	IS(cudaFree(memory), OK);
	cudaGetLastError();
}

UNIT_SUITE(memcpy3d, {"boxes", test_boxes})
