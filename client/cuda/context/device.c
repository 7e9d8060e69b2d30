/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Initialisation and devices.  The client answers most calls from what the worker sent with HELLO.
 */
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "client/cuda/context/device.h"
#include "client/conn/conn.h"
#include "client/cuda/call.h"
#include "client/cuda/context/context.h"
#include "client/cuda/context/driver_log.h"
#include "client/cuda/context/route.h"
#include "cudacommon/interface.h"

unsigned ckt_client_device_count(void)
{
	const struct ckt_devices_res *all = ckt_conn_devices();
	return all ? all->devices.devices_len : 0;
}

const struct ckt_device *ckt_client_device_get(CUdevice device, CUresult *ret_result)
{
	const struct ckt_devices_res *all = ckt_conn_devices();
	CUresult result = CUDA_SUCCESS;
	if (!all || atomic_load(&ckt_conn.state) == CKT_CONN_FORKED)
		result = CUDA_ERROR_NOT_INITIALIZED;
	else if (device < 0 || (unsigned)device >= all->devices.devices_len)
		result = CUDA_ERROR_INVALID_DEVICE;
	if (ret_result)
		*ret_result = result;
	return result ? NULL : &all->devices.devices_val[device];
}

int ckt_client_device_attribute(CUdevice device, CUdevice_attribute attribute)
{
	int value = 0;
	return cuDeviceGetAttribute(&value, attribute, device) ? 0 : value;
}

CKT_EXPORT CUresult cuInit(unsigned int flags)
{
	if (flags)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = ckt_conn_open();
	if (!result) {
		ckt_client_context_init();
		ckt_client_driver_log_init();
	}
	return result;
}

CKT_EXPORT CUresult cuDriverGetVersion(int *version)
{
	if (!version)
		return CUDA_ERROR_INVALID_VALUE;
	const struct ckt_devices_res *all = ckt_conn_devices();
	/*
	 * Programs check before cuInit that the driver is new enough.  The result is at most the
	 * version that this library was built with.
	 */
	int newest = CUDA_VERSION;
	*version = all && all->driver_version < newest ? all->driver_version : newest;
	return CUDA_SUCCESS;
}

CKT_EXPORT CUresult cuDeviceGet(CUdevice *device, int ordinal)
{
	CUresult result;
	if (!device)
		return CUDA_ERROR_INVALID_VALUE;
	if (ckt_client_device_get(ordinal, &result))
		*device = ordinal;
	return result;
}

CKT_EXPORT CUresult cuDeviceGetCount(int *count)
{
	if (!count)
		return CUDA_ERROR_INVALID_VALUE;
	if (!ckt_conn_devices())
		return CUDA_ERROR_NOT_INITIALIZED;
	*count = (int)ckt_client_device_count();
	return CUDA_SUCCESS;
}

CKT_EXPORT CUresult cuDeviceGetName(char *name, int length, CUdevice device)
{
	CUresult result;
	if (!name || length <= 0)
		return CUDA_ERROR_INVALID_VALUE;
	const struct ckt_device *d = ckt_client_device_get(device, &result);
	if (d)
		snprintf(name, (size_t)length, "%s", d->name);
	return result;
}

CKT_EXPORT CUresult cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice device)
{
	CUresult result;
	if (!uuid)
		return CUDA_ERROR_INVALID_VALUE;
	const struct ckt_device *d = ckt_client_device_get(device, &result);
	if (d)
		memcpy(uuid->bytes, d->uuid, sizeof uuid->bytes);
	return result;
}

CKT_EXPORT CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice device)
{
	CUresult result;
	if (!bytes)
		return CUDA_ERROR_INVALID_VALUE;
	const struct ckt_device *d = ckt_client_device_get(device, &result);
	*bytes = d ? d->total_bytes : 0;
	return result;
}

CKT_EXPORT CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice device)
{
	CUresult result;
	if (!value)
		return CUDA_ERROR_INVALID_VALUE;
	const struct ckt_device *d = ckt_client_device_get(device, &result);
	if (!d)
		return result;
	if ((unsigned)attribute == 0 || (unsigned)attribute >= d->attributes.attributes_len)
		return CUDA_ERROR_INVALID_VALUE;
	const struct ckt_attribute *a = &d->attributes.attributes_val[attribute];
	if (a->result == CUDA_SUCCESS)
		*value = a->value;
	return (CUresult)a->result;
}

CKT_EXPORT CUresult cuDeviceComputeCapability(int *major, int *minor, CUdevice device)
{
	if (!major || !minor)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result =
		cuDeviceGetAttribute(major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device);
	return result
		? result
		: cuDeviceGetAttribute(minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device);
}

CKT_EXPORT CUresult cuDeviceGetProperties(CUdevprop *prop, CUdevice device)
{
	CUresult result;
	if (!prop)
		return CUDA_ERROR_INVALID_VALUE;
	if (!ckt_client_device_get(device, &result))
		return result;
	*prop = (CUdevprop){
		.maxThreadsPerBlock = ckt_client_device_attribute(
			device, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK),
		.maxThreadsDim = {ckt_client_device_attribute(
					  device, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X),
			ckt_client_device_attribute(device, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y),
			ckt_client_device_attribute(device, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z)},
		.maxGridSize = {ckt_client_device_attribute(
					device, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X),
			ckt_client_device_attribute(device, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y),
			ckt_client_device_attribute(device, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z)},
		.sharedMemPerBlock = ckt_client_device_attribute(
			device, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK),
		.totalConstantMemory = ckt_client_device_attribute(
			device, CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY),
		.SIMDWidth = ckt_client_device_attribute(device, CU_DEVICE_ATTRIBUTE_WARP_SIZE),
		.memPitch = ckt_client_device_attribute(device, CU_DEVICE_ATTRIBUTE_MAX_PITCH),
		.regsPerBlock = ckt_client_device_attribute(
			device, CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK),
		.clockRate = ckt_client_device_attribute(device, CU_DEVICE_ATTRIBUTE_CLOCK_RATE),
		.textureAlign =
			ckt_client_device_attribute(device, CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT),
	};
	return CUDA_SUCCESS;
}

CKT_EXPORT CUresult cuDeviceGetPCIBusId(char *bus_id, int length, CUdevice device)
{
	CUresult result;
	if (!bus_id || length <= 0)
		return CUDA_ERROR_INVALID_VALUE;
	const struct ckt_device *d = ckt_client_device_get(device, &result);
	if (!d)
		return result;
	if ((size_t)length <= strlen(d->pci_bus_id))
		return CUDA_ERROR_INVALID_VALUE;
	strcpy(bus_id, d->pci_bus_id);
	return CUDA_SUCCESS;
}

/* domain:bus:device.function; the domain and the function may be omitted. */
static bool parse_bus_id(const char *text, unsigned parts[4])
{
	char rest;
	parts[0] = parts[3] = 0;
	return sscanf(text, "%x:%x:%x.%x%c", &parts[0], &parts[1], &parts[2], &parts[3], &rest) ==
		4 ||
		sscanf(text, "%x:%x:%x%c", &parts[0], &parts[1], &parts[2], &rest) == 3 ||
		(parts[0] = 0,
			sscanf(text, "%x:%x.%x%c", &parts[1], &parts[2], &parts[3], &rest) == 3);
}

CKT_EXPORT CUresult cuDeviceGetByPCIBusId(CUdevice *device, const char *bus_id)
{
	unsigned wanted[4], have[4];
	if (!device || !bus_id || !parse_bus_id(bus_id, wanted))
		return CUDA_ERROR_INVALID_VALUE;
	if (!ckt_conn_devices())
		return CUDA_ERROR_NOT_INITIALIZED;
	for (unsigned i = 0; i < ckt_client_device_count(); i++) {
		const struct ckt_device *d = ckt_client_device_get((CUdevice)i, NULL);
		if (parse_bus_id(d->pci_bus_id, have) && memcmp(wanted, have, sizeof wanted) == 0) {
			*device = (CUdevice)i;
			return CUDA_SUCCESS;
		}
	}
	return CUDA_ERROR_INVALID_DEVICE;
}

CKT_EXPORT CUresult cuDeviceCanAccessPeer(int *can, CUdevice device, CUdevice peer)
{
	CUresult result;
	if (!can)
		return CUDA_ERROR_INVALID_VALUE;
	const struct ckt_device *d = ckt_client_device_get(device, &result);
	if (!d || !ckt_client_device_get(peer, &result))
		return result;
	*can = device != peer && (d->can_access_peer >> peer & 1);
	return CUDA_SUCCESS;
}

CKT_EXPORT CUresult cuDeviceGetP2PAttribute(
	int *value, CUdevice_P2PAttribute attribute, CUdevice device, CUdevice peer)
{
	int can;
	struct ckt_reply reply;
	struct ckt_device_p2p_attribute_res res;
	if (!value)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = cuDeviceCanAccessPeer(&can, device, peer);
	if (result)
		return result;
	if (device == peer)
		return CUDA_ERROR_INVALID_DEVICE;
	/* Devices of two servers have no link. */
	if (ckt_conn_count > 1 &&
		ckt_call_conn_of((unsigned)device) != ckt_call_conn_of((unsigned)peer)) {
		if (attribute < CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK ||
			attribute > CU_DEVICE_P2P_ATTRIBUTE_ONLY_PARTIAL_NATIVE_ATOMIC_SUPPORTED)
			return CUDA_ERROR_INVALID_VALUE;
		*value = 0;
		return CUDA_SUCCESS;
	}
	CKT_ROUTE_DEVICE(device);
	result = CKT_WAITED(device_p2p_attribute, DEVICE_P2P_ATTRIBUTE, CKT_CALL_F_ANYWAY, &reply,
		.attribute = attribute, .device = ckt_call_device((unsigned)device),
		.peer = ckt_call_device((unsigned)peer));
	if (result)
		return result;
	if (ckt_device_p2p_attribute_res_get(&reply.results, &res))
		*value = res.value;
	else
		result = CUDA_ERROR_UNKNOWN;
	ckt_call_reply_release(&reply);
	return result;
}
