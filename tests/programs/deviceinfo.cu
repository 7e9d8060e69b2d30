/* SPDX-License-Identifier: Apache-2.0 */
/* Everything a program can ask about a device that does not change: properties and attributes, printed to be compared with native's. */
#include "phase.h"

int main(void)
{
	int count, value, device;
	char bus_id[32];

	CHECK(cudaGetDeviceCount(&count));
	for (int d = 0; d < count; d++) {
		struct cudaDeviceProp p;

		CHECK(cudaGetDeviceProperties(&p, d));
		printf("%s %d.%d, %d processors, warp %d, %zu bytes\n", p.name, p.major, p.minor, p.multiProcessorCount, p.warpSize, p.totalGlobalMem);
		printf("block %d (%d, %d, %d) grid (%d, %d, %d)\n", p.maxThreadsPerBlock, p.maxThreadsDim[0], p.maxThreadsDim[1], p.maxThreadsDim[2],
		       p.maxGridSize[0], p.maxGridSize[1], p.maxGridSize[2]);
		printf("shared %zu %zu %zu reserved %zu registers %d %d constant %zu l2 %d\n", p.sharedMemPerBlock, p.sharedMemPerBlockOptin,
		       p.sharedMemPerMultiprocessor, p.reservedSharedMemPerBlock, p.regsPerBlock, p.regsPerMultiprocessor, p.totalConstMem, p.l2CacheSize);
		printf("bus %d memory bus %d threads %d blocks %d unified %d\n", p.pciBusID, p.memoryBusWidth, p.maxThreadsPerMultiProcessor,
		       p.maxBlocksPerMultiProcessor, p.unifiedAddressing);
		print_checksum("uuid", &p.uuid, sizeof(p.uuid));
		EXPECT(p.warpSize == 32 && p.maxThreadsPerBlock == 1024 && p.major >= 7 && p.totalGlobalMem > 0);
		for (int a = 1; a < 150; a++)
			if (cudaDeviceGetAttribute(&value, (cudaDeviceAttr)a, d) == cudaSuccess)
				printf("attribute %d = %d\n", a, value);
		cudaGetLastError();
		CHECK(cudaDeviceGetPCIBusId(bus_id, sizeof(bus_id), d));
		CHECK(cudaDeviceGetByPCIBusId(&device, bus_id));
		EXPECT(device == d);
	}
	phase();
	CHECK(cudaGetDevice(&device));
	EXPECT(device == 0);
	CHECK(cudaFree(NULL));
	return finish();
}
