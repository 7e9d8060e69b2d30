/* SPDX-License-Identifier: Apache-2.0 */
/* The calls that the server's NVML answers, and the refused calls; see forward.h. */
#include <stdatomic.h>
#include <string.h>

#include "client/nvml/forward.h"
#include "base/log.h"
#include "client/nvml/device.h"
#include "client/nvml/server_query.h"
#include "rpc/control.h"
#include "rpc/nvml.h"

/* The caller frees *ret_res if the result is SUCCESS. */
static int pass(unsigned number, const void *device, const void *other, const unsigned *selectors,
	ckt_control_nvml_res *ret_res)
{
	const struct ckt_nvml_function *function = &ckt_nvml_functions[number];
	struct ckt_nvml_device *first = NULL, *second = NULL;
	unsigned count;
	int version,
		result = function->system ? ckt_nvml_devices(&first, &count, &version)
					  : ckt_nvml_device(device, &first);
	if (!result && function->device2)
		result = ckt_nvml_device(other, &second);
	/* No NVML can compare GPUs of two servers. */
	if (!result && second && second->server != first->server)
		result = CKT_NVML_NOT_SUPPORTED;
	if (result)
		return result;
	ckt_control_nvml_args args = {.function = number,
		.gpu = function->system ? 0 : first->ordinal,
		.other = second ? second->ordinal : 0};
	memcpy(args.selectors, selectors, sizeof args.selectors);
	*ret_res = (ckt_control_nvml_res){0};
	result =
		ckt_nvml_call(first->server, CKT_CONTROL_NVML, (xdrproc_t)xdr_ckt_control_nvml_args,
			&args, (xdrproc_t)xdr_ckt_control_nvml_res, ret_res);
	if (result || !ret_res->result)
		return result;
	result = ret_res->result;
	ckt_debug("%s: the server returned %d", function->name, result);
	xdr_free((xdrproc_t)xdr_ckt_control_nvml_res, (char *)ret_res);
	return result;
}

static void done(ckt_control_nvml_res *res)
{
	xdr_free((xdrproc_t)xdr_ckt_control_nvml_res, (char *)res);
}

int ckt_nvml_data(unsigned number, const void *device, const void *other, const unsigned *selectors,
	void *const *outs)
{
	const struct ckt_nvml_function *function = &ckt_nvml_functions[number];
	ckt_control_nvml_res res;
	unsigned bytes = 0;
	for (unsigned i = 0; i < function->outs; i++) {
		if (!outs[i])
			return CKT_NVML_INVALID_ARGUMENT;
		bytes = ((bytes + 7) & ~7u) + function->sizes[i];
	}
	int result = pass(number, device, other, selectors, &res);
	if (result)
		return result;
	if (res.data.data_len == bytes) {
		bytes = 0;
		for (unsigned i = 0; i < function->outs; i++) {
			bytes = (bytes + 7) & ~7u;
			memcpy(outs[i], res.data.data_val + bytes, function->sizes[i]);
			bytes += function->sizes[i];
		}
	} else {
		result = CKT_NVML_UNKNOWN;
	}
	done(&res);
	return result;
}

int ckt_nvml_versioned(unsigned number, const void *device, const void *other,
	const unsigned *selectors, void *block)
{
	ckt_control_nvml_res res;
	uint32_t version;
	(void)selectors;
	if (!block)
		return CKT_NVML_INVALID_ARGUMENT;
	memcpy(&version, block, sizeof version);
	unsigned size = ckt_nvml_version_size(version);
	if (!size)
		return CKT_NVML_ARGUMENT_VERSION_MISMATCH;
	int result = pass(
		number, device, other, (const unsigned[CKT_NVML_SELECTORS_MAX]){version}, &res);
	if (result)
		return result;
	/* The program's version field stays as it is. */
	if (res.data.data_len == size)
		memcpy((uint8_t *)block + sizeof version, res.data.data_val + sizeof version,
			size - sizeof version);
	else
		result = CKT_NVML_UNKNOWN;
	done(&res);
	return result;
}

int ckt_nvml_copy_text(const char *from, char *text, unsigned size)
{
	if (!text)
		return CKT_NVML_INVALID_ARGUMENT;
	if (strlen(from) >= size)
		return CKT_NVML_INSUFFICIENT_SIZE;
	strcpy(text, from);
	return CKT_NVML_SUCCESS;
}

int ckt_nvml_text(unsigned number, const void *device, const void *other, const unsigned *selectors,
	char *text, unsigned size)
{
	ckt_control_nvml_res res;
	if (!text)
		return CKT_NVML_INVALID_ARGUMENT;
	int result = pass(number, device, other, selectors, &res);
	if (result)
		return result;
	result = ckt_nvml_copy_text(res.text, text, size);
	done(&res);
	return result;
}

/* Each value has its own result. The program's field ID and scope ID stay as they are. */
int ckt_nvml_fields(unsigned number, const void *device, int count, void *values)
{
	enum { ASKED_BYTES = 2 * sizeof(unsigned), RESULT_OFFSET = 28 };
	struct ckt_nvml_device *known;
	int result = ckt_nvml_device(device, &known);
	if (!result && (count < 1 || !values))
		result = CKT_NVML_INVALID_ARGUMENT;
	for (int i = 0; !result && i < count; i++) {
		uint8_t *value = (uint8_t *)values + (size_t)i * CKT_NVML_FIELD_BYTES;
		unsigned selectors[CKT_NVML_SELECTORS_MAX] = {0};
		ckt_control_nvml_res res;
		memcpy(selectors, value, ASKED_BYTES);
		int one = pass(number, device, NULL, selectors, &res);
		if (!one && res.data.data_len == CKT_NVML_FIELD_BYTES) {
			memcpy(value + ASKED_BYTES, res.data.data_val + ASKED_BYTES,
				CKT_NVML_FIELD_BYTES - ASKED_BYTES);
		} else {
			int32_t shown = one ? one : CKT_NVML_UNKNOWN;
			memcpy(value + RESULT_OFFSET, &shown, sizeof shown);
		}
		if (!one)
			done(&res);
		/* The server is unreachable, so the remaining requests would also fail. */
		if (one == CKT_NVML_DRIVER_NOT_LOADED)
			result = one;
	}
	return result;
}

int ckt_nvml_refuse(const char *name, bool *once)
{
	if (!__atomic_exchange_n(once, true, __ATOMIC_RELAXED))
		ckt_warning("%s is not supported", name);
	return CKT_NVML_NOT_SUPPORTED;
}
