/* SPDX-License-Identifier: Apache-2.0 */
/* Texture references made by the program: what is set is what is told. */
#include "driver.h"

static CUtexref make(void)
{
	CUtexref r = NULL;
	start();
	QUIET(cuTexRefCreate, &r);
	return r;
}

CASE(life)
{
	CUtexref r = NULL;
	QUIET(cuInit, 0);
	CALL(cuTexRefCreate, &r);
	start();
	CALL(cuTexRefCreate, &r);
	YES("some", r != NULL);
	CALL(cuTexRefDestroy, r);
	CALL(cuTexRefCreate, NULL);
	CALL(cuTexRefDestroy, NULL);
}

CASE(fresh)
{
	CUtexref r = make();
	CUaddress_mode mode = (CUaddress_mode)77;
	CUfilter_mode filter = (CUfilter_mode)77;
	CUarray_format format = (CUarray_format)77;
	CUarray array = (CUarray)8;
	CUmipmappedArray mipmap = (CUmipmappedArray)8;
	CUdeviceptr p = 77;
	int channels = 77, anisotropy = 77;
	unsigned flags = 77;
	float bias = 77, least = 77, most = 77, border[4] = {77, 77, 77, 77};
	CALL(cuTexRefGetAddressMode, &mode, r, 0);
	NUMBER("mode", mode);
	CALL(cuTexRefGetFilterMode, &filter, r);
	NUMBER("filter", filter);
	CALL(cuTexRefGetMipmapFilterMode, &filter, r);
	NUMBER("filter", filter);
	CALL(cuTexRefGetFormat, &format, &channels, r);
	NUMBER("format", format);
	NUMBER("channels", channels);
	CALL(cuTexRefGetMipmapLevelBias, &bias, r);
	FLOAT("bias", bias);
	CALL(cuTexRefGetMipmapLevelClamp, &least, &most, r);
	FLOAT("least", least);
	FLOAT("most", most);
	CALL(cuTexRefGetMaxAnisotropy, &anisotropy, r);
	NUMBER("anisotropy", anisotropy);
	CALL(cuTexRefGetBorderColor, border, r);
	FLOAT("border", border[3]);
	CALL(cuTexRefGetFlags, &flags, r);
	HEX("flags", flags);
	CALL(cuTexRefGetArray, &array, r);
	CALL(cuTexRefGetMipmappedArray, &mipmap, r);
	CALL(cuTexRefGetAddress_v2, &p, r);
}

CASE(settings)
{
	CUtexref r = make();
	CUaddress_mode mode = (CUaddress_mode)77;
	CUfilter_mode filter = (CUfilter_mode)77;
	CUarray_format format = (CUarray_format)77;
	int channels = 77, anisotropy = 77;
	unsigned flags = 77;
	float bias = 77, least = 77, most = 77, color[4] = {1, 2, 3, 4},
	      border[4] = {77, 77, 77, 77};
	CALL(cuTexRefSetAddressMode, r, 1, CU_TR_ADDRESS_MODE_MIRROR);
	CALL(cuTexRefGetAddressMode, &mode, r, 1);
	NUMBER("mode", mode);
	CALL(cuTexRefSetFilterMode, r, CU_TR_FILTER_MODE_LINEAR);
	CALL(cuTexRefGetFilterMode, &filter, r);
	NUMBER("filter", filter);
	CALL(cuTexRefSetMipmapFilterMode, r, CU_TR_FILTER_MODE_LINEAR);
	CALL(cuTexRefGetMipmapFilterMode, &filter, r);
	NUMBER("filter", filter);
	CALL(cuTexRefSetFormat, r, CU_AD_FORMAT_UNSIGNED_INT8, 4);
	CALL(cuTexRefGetFormat, &format, &channels, r);
	NUMBER("format", format);
	NUMBER("channels", channels);
	CALL(cuTexRefSetMipmapLevelBias, r, 1.5f);
	CALL(cuTexRefGetMipmapLevelBias, &bias, r);
	FLOAT("bias", bias);
	CALL(cuTexRefSetMipmapLevelClamp, r, 1.0f, 3.0f);
	CALL(cuTexRefGetMipmapLevelClamp, &least, &most, r);
	FLOAT("least", least);
	FLOAT("most", most);
	CALL(cuTexRefSetMaxAnisotropy, r, 8);
	CALL(cuTexRefGetMaxAnisotropy, &anisotropy, r);
	NUMBER("anisotropy", anisotropy);
	CALL(cuTexRefSetBorderColor, r, color);
	CALL(cuTexRefGetBorderColor, border, r);
	BYTES("border", border, sizeof(border));
	CALL(cuTexRefSetFlags, r, CU_TRSF_NORMALIZED_COORDINATES | CU_TRSF_READ_AS_INTEGER);
	CALL(cuTexRefGetFlags, &flags, r);
	HEX("flags", flags);
}

CASE(bound)
{
	CUtexref r = make();
	CUDA_ARRAY_DESCRIPTOR desc;
	CUDA_ARRAY3D_DESCRIPTOR deep;
	CUarray array = NULL, got = NULL;
	CUmipmappedArray mipmap = NULL, got_mipmap = NULL;
	CUarray_format format = (CUarray_format)77;
	CUdeviceptr p = 0, q = 77;
	size_t offset = 77;
	int channels = 77;
	QUIET(cuMemAlloc_v2, &p, 1 << 16);
	memset(&desc, 0, sizeof(desc));
	desc.Width = 16, desc.Height = 8, desc.Format = CU_AD_FORMAT_FLOAT, desc.NumChannels = 1;
	memset(&deep, 0, sizeof(deep));
	deep.Width = 16, deep.Height = 16, deep.Format = CU_AD_FORMAT_UNSIGNED_INT8,
	deep.NumChannels = 4;
	QUIET(cuArrayCreate_v2, &array, &desc);
	QUIET(cuMipmappedArrayCreate, &mipmap, &deep, 3);
	CALL(cuTexRefSetAddress_v2, &offset, r, p, 1024);
	NUMBER("offset", (long long)offset);
	CALL(cuTexRefGetAddress_v2, &q, r);
	YES("the same", q == p);
	CALL(cuTexRefSetAddress2D_v3, r, &desc, p, 512);
	CALL(cuTexRefGetAddress_v2, &q, r);
	YES("the same", q == p);
	CALL(cuTexRefSetAddress2D_v2, r, &desc, p + 512, 512);
	CALL(cuTexRefSetArray, r, array, CU_TRSA_OVERRIDE_FORMAT);
	CALL(cuTexRefGetArray, &got, r);
	YES("the same", got == array);
	CALL(cuTexRefGetFormat, &format, &channels, r);
	NUMBER("format", format);
	NUMBER("channels", channels);
	CALL(cuTexRefSetMipmappedArray, r, mipmap, CU_TRSA_OVERRIDE_FORMAT);
	CALL(cuTexRefGetMipmappedArray, &got_mipmap, r);
	YES("the same", got_mipmap == mipmap);
	CALL(cuTexRefSetArray, r, array, 0);
}

CASE(wrong)
{
	CUtexref r = make();
	CUarray_format format;
	int channels;
	CALL(cuTexRefSetAddressMode, r, 1, (CUaddress_mode)9);
	CALL(cuTexRefSetFilterMode, r, (CUfilter_mode)9);
	CALL(cuTexRefSetMipmapFilterMode, r, (CUfilter_mode)9);
	CALL(cuTexRefSetFormat, r, CU_AD_FORMAT_UNSIGNED_INT8, 3);
	CALL(cuTexRefSetFlags, r, 0x8000);
	CALL(cuTexRefSetBorderColor, r, NULL);
	CALL(cuTexRefSetFilterMode, NULL, CU_TR_FILTER_MODE_LINEAR);
	CALL(cuTexRefGetFilterMode, NULL, r);
	CALL(cuTexRefGetFormat, &format, &channels, NULL);
}

/* Memory operations on streams in their first version. */
CASE(first_memory_operations)
{
	CUdeviceptr p;
	CUstreamBatchMemOpParams op;
	start();
	p = memory(64);
	memset(&op, 0, sizeof(op));
	op.writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
	op.writeValue.address = p;
	CALL(cuStreamWriteValue32, NULL, p, 1, 0);
	CALL(cuStreamWriteValue64, NULL, p, 1, 0);
	CALL(cuStreamWaitValue32, NULL, p, 0, CU_STREAM_WAIT_VALUE_GEQ);
	CALL(cuStreamWaitValue64, NULL, p, 0, CU_STREAM_WAIT_VALUE_GEQ);
	CALL(cuStreamBatchMemOp, NULL, 1, &op, 0);
	CALL(cuStreamWriteValue32_ptsz, NULL, p, 1, 0);
	CALL(cuStreamWriteValue64_ptsz, NULL, p, 1, 0);
	CALL(cuStreamWaitValue32_ptsz, NULL, p, 0, CU_STREAM_WAIT_VALUE_GEQ);
	CALL(cuStreamWaitValue64_ptsz, NULL, p, 0, CU_STREAM_WAIT_VALUE_GEQ);
	CALL(cuStreamBatchMemOp_ptsz, NULL, 1, &op, 0);
}
