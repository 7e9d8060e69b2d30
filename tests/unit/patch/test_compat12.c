/* SPDX-License-Identifier: Apache-2.0 */
/*
 * client/patch/compat12.h: what of CUDA 13's device properties a program of CUDA 12 finds, at that
 * ABI's places.
 */
#include <stdint.h>
#include <string.h>

#include "client/patch/compat12.h"
#include "tests/unit/suite.h"

static struct cudaDeviceProp wide;
static struct ckt_device_properties_12 narrow;

/* Every byte of the wide one has a value of its own, as far as bytes go. */
static void fill(void)
{
	for (size_t i = 0; i < sizeof wide; i++)
		((uint8_t *)&wide)[i] = (uint8_t)(1 + i % 251);
	memset(&narrow, 0xee, sizeof narrow);
	ckt_patch_device_properties_narrow(&narrow, &wide);
}

#define ROW(field, offset)                                                                \
	{                                                                                 \
#field, offset, offsetof(struct cudaDeviceProp, field), sizeof wide.field \
	}

static void test_places(void)
{
	static const struct {
		const char *name;
		size_t offset_12, offset_13, size;
	} rows[] = {
		ROW(name, 0),
		ROW(uuid, 256),
		ROW(luid, 272),
		ROW(totalGlobalMem, 288),
		ROW(sharedMemPerBlock, 296),
		ROW(warpSize, 308),
		ROW(memPitch, 312),
		ROW(maxThreadsDim, 324),
		ROW(maxGridSize, 336),
		ROW(totalConstMem, 352),
		ROW(major, 360),
		ROW(minor, 364),
		ROW(multiProcessorCount, 388),
		ROW(clusterLaunch, 772),
		ROW(unifiedFunctionPointers, 776),
	};
	fill();
	for (size_t i = 0; i < COUNT(rows); i++)
		unit_is(memcmp((uint8_t *)&narrow + rows[i].offset_12,
				(uint8_t *)&wide + rows[i].offset_13, rows[i].size),
			0, rows[i].name, __FILE__, __LINE__, false);
}

/* What CUDA 13 has no longer is zero, never what stood there. */
static void test_gone(void)
{
	fill();
	IS(narrow.clockRate, 0);
	IS(narrow.deviceOverlap, 0);
	IS(narrow.kernelExecTimeoutEnabled, 0);
	IS(narrow.computeMode, 0);
	IS(narrow.maxTexture1DLinear, 0);
	IS(narrow.memoryClockRate, 0);
	IS(narrow.singleToDoublePrecisionPerfRatio, 0);
	IS(narrow.cooperativeMultiDeviceLaunch, 0);
	for (size_t i = 0; i < COUNT(narrow.reserved); i++)
		IS(narrow.reserved[i], 0);
}

/*
 * No byte of another field is zero, as none is in what is copied; what lies behind
 * luidDeviceNodeMask is.
 */
static void test_all_others(void)
{
	enum { GONE = 8 * sizeof(int) + sizeof narrow.reserved, BETWEEN = sizeof(int) };
	size_t zeros = 0;
	fill();
	for (size_t i = 0; i < sizeof narrow; i++)
		zeros += !((uint8_t *)&narrow)[i];
	IS(zeros, GONE + BETWEEN);
}

UNIT_SUITE(compat12, {"places", test_places}, {"gone", test_gone}, {"all others", test_all_others})
