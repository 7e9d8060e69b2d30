/* SPDX-License-Identifier: Apache-2.0 */
/* Where the attributes of cuBLASLt's descriptors lie; see cublaslt.h. */
#include "rpc/cublaslt.h"

#include <string.h>

#define ALL UINT64_MAX
#define TYPE_UNSET 0xffffffff

/* Bytes 0 to 3 are the form. */
static const struct ckt_lt_attribute matmul[] = {
	{0, 4, 4, 1, false, 0},   /* COMPUTE_TYPE, of the creation */
	{1, 8, 4, 1, false, 0},   /* SCALE_TYPE, of the creation */
	{2, 12, 4, 1, false, 0},  /* POINTER_MODE */
	{3, 16, 4, 1, false, 0},  /* TRANSA */
	{4, 20, 4, 1, false, 0},  /* TRANSB */
	{5, 24, 4, 1, false, 0},  /* TRANSC */
	{6, 28, 4, 1, false, 2},  /* FILL_MODE: full */
	{7, 32, 4, 1, false, 1},  /* EPILOGUE: default */
	{16, 36, 4, 1, false, 0}, /* not declared, but known to the genuine library in every form */
	{8, 40, 8, 1, true, 0},   /* BIAS_POINTER */
	{10, 48, 8, 1, false, 0}, /* BIAS_BATCH_STRIDE */
	{11, 56, 8, 2, true, 0},  /* EPILOGUE_AUX_POINTER */
	{12, 64, 8, 2, false, 0}, /* EPILOGUE_AUX_LD */
	{13, 72, 8, 2, false, 0}, /* EPILOGUE_AUX_BATCH_STRIDE */
	{14, 80, 8, 2, false, 0}, /* ALPHA_VECTOR_BATCH_STRIDE */
	{15, 88, 4, 3, false, 0}, /* SM_COUNT_TARGET */
	{25, 92, 1, 4, false, 0}, /* FAST_ACCUM */
	{17, 96, 8, 4, true, 0},  /* A_SCALE_POINTER */
	{18, 104, 8, 4, true, 0}, /* B_SCALE_POINTER */
	{19, 112, 8, 4, true, 0}, /* C_SCALE_POINTER */
	{20, 120, 8, 4, true, 0}, /* D_SCALE_POINTER */
	{21, 128, 8, 4, true, 0}, /* AMAX_D_POINTER */
	{23, 136, 8, 4, true, 0}, /* EPILOGUE_AUX_SCALE_POINTER */
	{24, 144, 8, 4, true, 0}, /* EPILOGUE_AUX_AMAX_POINTER */
	{22, 152, 4, 4, false, TYPE_UNSET}, /* EPILOGUE_AUX_DATA_TYPE */
	{26, 156, 4, 4, false, TYPE_UNSET}, /* BIAS_DATA_TYPE */
	{31, 160, 4, 5, false, 0},          /* A_SCALE_MODE */
	{32, 164, 4, 5, false, 0},          /* B_SCALE_MODE */
	{33, 168, 4, 5, false, 0},          /* C_SCALE_MODE */
	{34, 172, 4, 5, false, 0},          /* D_SCALE_MODE */
	{35, 176, 4, 5, false, 0},          /* EPILOGUE_AUX_SCALE_MODE */
	{37, 180, 4, 5, false, 0},          /* D_OUT_SCALE_MODE */
	{36, 184, 8, 5, true, 0},           /* D_OUT_SCALE_POINTER */
	{38, 192, 8, 5, true, 0},           /* EMULATION_DESCRIPTOR */
	{39, 200, 8, 6, false,
		0}, /* ALPHA_BATCH_STRIDE, of CUDA 13.2 and later as are the next two */
	{40, 208, 8, 6, false, 0},      /* BETA_BATCH_STRIDE */
	{41, 216, 4, 6, false, 0x8000}, /* BATCH_INVARIANCE_FLAGS: unset */
};

static const struct ckt_lt_attribute layout[] = {
	{0, 0, 4, 1, false,
		0}, /* TYPE, of the creation, as are rows, columns and the leading dimension */
	{1, 4, 4, 1, false, 0},     /* ORDER: columns */
	{2, 8, 8, 1, false, 0},     /* ROWS */
	{3, 16, 8, 1, false, 0},    /* COLS */
	{4, 24, 8, 1, false, 0},    /* LD */
	{5, 32, 4, 1, false, 1},    /* BATCH_COUNT */
	{8, 36, 4, 1, false, 0, 2}, /* BATCH_MODE */
	{6, 40, 8, 1, false, 0},    /* STRIDED_BATCH_OFFSET */
	{7, 48, 8, 1, false, 0},    /* PLANE_OFFSET */
	{9, 56, 8, 2, true, 0},     /* ROWS_ARRAY, of CUDA 13.2 and later as are the rest */
	{10, 64, 8, 2, true, 0},    /* COLS_ARRAY */
	{11, 72, 8, 2, true, 0},    /* LD_ARRAY */
	{12, 80, 4, 2, false, 0},   /* ROWS_COLS_ARRAY_INTEGER_WIDTH */
	{13, 84, 4, 2, false, 0},   /* LD_ARRAY_INTEGER_WIDTH */
};

static const struct ckt_lt_attribute transform[] = {
	{0, 0, 4, 1, false, 0},  /* SCALE_TYPE, of the creation */
	{1, 4, 4, 1, false, 0},  /* POINTER_MODE */
	{2, 8, 4, 1, false, 0},  /* TRANSA */
	{3, 12, 4, 1, false, 0}, /* TRANSB */
};

static const struct ckt_lt_attribute preference[] = {
	{0, 0, 4, 1, false, 0},     /* SEARCH_MODE */
	{3, 4, 4, 1, false, 7},     /* REDUCTION_SCHEME_MASK: all */
	{1, 8, 8, 1, false, 0},     /* MAX_WORKSPACE_BYTES */
	{5, 16, 4, 1, false, 256},  /* MIN_ALIGNMENT_A_BYTES */
	{6, 20, 4, 1, false, 256},  /* MIN_ALIGNMENT_B_BYTES */
	{7, 24, 4, 1, false, 256},  /* MIN_ALIGNMENT_C_BYTES */
	{8, 28, 4, 1, false, 256},  /* MIN_ALIGNMENT_D_BYTES */
	{9, 32, 4, 1, false, 0},    /* MAX_WAVES_COUNT, a float */
	{12, 40, 8, 1, false, ALL}, /* IMPL_MASK */
	/*
	 * Of CUDA 13.2 and later.  The header says 32 bits; the library takes 64 and nothing else.
	 */
	{13, 48, 8, 2, false, 0}, /* GROUPED_AVERAGE_REDUCTION_DIM */
	{14, 56, 8, 2, false, 0}, /* GROUPED_DESC_D_AVERAGE_ROWS */
	{15, 64, 8, 2, false, 0}, /* GROUPED_DESC_D_AVERAGE_COLS */
};

static const struct ckt_lt_attribute emulation[] = {
	{0, 0, 4, 1, false, 0},      /* STRATEGY */
	{1, 4, 4, 1, false, 0xffff}, /* SPECIAL_VALUES_SUPPORT */
	{2, 8, 4, 1, false, 0},      /* FIXEDPOINT_MANTISSA_CONTROL */
	{3, 12, 4, 1, false, 0},     /* FIXEDPOINT_MAX_MANTISSA_BIT_COUNT */
	{4, 16, 4, 1, false, 0},     /* FIXEDPOINT_MANTISSA_BIT_OFFSET */
	{5, 24, 8, 1, true, 0},      /* FIXEDPOINT_MANTISSA_BIT_COUNT_POINTER */
};

/*
 * least_bytes: the smallest struct of the form in any release's cublasLt.h; bytes: the part that we
 * use.  CUDA 13.2 gave the matmul descriptor more attributes without a longer struct; the form
 * before it comes from older clients and images alone.
 */
struct form {
	uint16_t least_bytes, bytes;
};
enum { FORMS_MAX = 6, LAYOUT_FORM = 38, PREFERENCE_FORM = 36 };
static const struct form forms[CKT_LT_KINDS][FORMS_MAX] = {
	[CKT_LT_MATMUL] = {{56, 56}, {88, 88}, {96, 96}, {184, 160}, {256, 200},
		{256, CKT_LT_MATMUL_BYTES}},
	[CKT_LT_LAYOUT] = {{64, 56}, {112, CKT_LT_LAYOUT_BYTES}},
	[CKT_LT_TRANSFORM] = {{64, CKT_LT_TRANSFORM_BYTES}},
	[CKT_LT_PREFERENCE] = {{64, 48}, {96, CKT_LT_PREFERENCE_BYTES}},
	[CKT_LT_EMULATION] = {{64, CKT_LT_EMULATION_BYTES}},
};

#define TABLE(kind)                              \
	{                                        \
		kind, sizeof kind / sizeof *kind \
	}

const struct ckt_lt_attribute *ckt_lt_attributes(enum ckt_lt_kind kind, unsigned *ret_count)
{
	static const struct {
		const struct ckt_lt_attribute *all;
		unsigned count;
	} tables[CKT_LT_KINDS] = {[CKT_LT_MATMUL] = TABLE(matmul),
		[CKT_LT_LAYOUT] = TABLE(layout),
		[CKT_LT_TRANSFORM] = TABLE(transform),
		[CKT_LT_PREFERENCE] = TABLE(preference),
		[CKT_LT_EMULATION] = TABLE(emulation)};
	*ret_count = tables[kind].count;
	return tables[kind].all;
}

unsigned ckt_lt_form(enum ckt_lt_kind kind, size_t size_bytes)
{
	unsigned form = 0;
	while (form < FORMS_MAX && forms[kind][form].bytes &&
		size_bytes >= forms[kind][form].least_bytes)
		form++;
	return form;
}

size_t ckt_lt_form_bytes(enum ckt_lt_kind kind, unsigned form)
{
	return form && form <= FORMS_MAX ? forms[kind][form - 1].bytes : 0;
}

static unsigned form_of(enum ckt_lt_kind kind, const void *descriptor)
{
	uint32_t word;
	uint16_t half;
	switch (kind) {
	case CKT_LT_MATMUL:
		memcpy(&word, descriptor, sizeof word);
		return word;
	case CKT_LT_LAYOUT:
		memcpy(&half, (const uint8_t *)descriptor + LAYOUT_FORM, sizeof half);
		return half + 1u;
	case CKT_LT_PREFERENCE:
		memcpy(&half, (const uint8_t *)descriptor + PREFERENCE_FORM, sizeof half);
		return half + 1u;
	default:
		return 1;
	}
}

static void put_form(enum ckt_lt_kind kind, void *descriptor, unsigned form)
{
	uint16_t after = (uint16_t)(form - 1);
	if (kind == CKT_LT_MATMUL)
		memcpy(descriptor, &form, sizeof form);
	else if (kind == CKT_LT_LAYOUT)
		memcpy((uint8_t *)descriptor + LAYOUT_FORM, &after, sizeof after);
	else if (kind == CKT_LT_PREFERENCE)
		memcpy((uint8_t *)descriptor + PREFERENCE_FORM, &after, sizeof after);
}

static size_t kept_bytes(const struct ckt_lt_attribute *attribute)
{
	return attribute->kept ? attribute->kept : attribute->size;
}

size_t ckt_lt_bytes(enum ckt_lt_kind kind, const void *descriptor)
{
	return ckt_lt_form_bytes(kind, form_of(kind, descriptor));
}

bool ckt_lt_is_descriptor(enum ckt_lt_kind kind, const void *bytes, size_t size_bytes)
{
	return size_bytes >= forms[kind][0].bytes && size_bytes == ckt_lt_bytes(kind, bytes);
}

int ckt_lt_init(enum ckt_lt_kind kind, void *descriptor, size_t size_bytes)
{
	unsigned form = ckt_lt_form(kind, size_bytes);
	unsigned count;
	const struct ckt_lt_attribute *all = ckt_lt_attributes(kind, &count);
	if (!descriptor)
		return CKT_LT_INVALID_VALUE;
	if (!form)
		return CKT_LT_ALLOC_FAILED;
	/* Clears gaps too, because the bytes are compared. */
	memset(descriptor, 0, ckt_lt_form_bytes(kind, form));
	for (unsigned i = 0; i < count; i++)
		if (all[i].form <= form)
			memcpy((uint8_t *)descriptor + all[i].offset, &all[i].fresh,
				kept_bytes(&all[i]));
	put_form(kind, descriptor, form);
	return CKT_LT_SUCCESS;
}

static const struct ckt_lt_attribute *find(
	enum ckt_lt_kind kind, const void *descriptor, int attribute)
{
	unsigned count, form = form_of(kind, descriptor);
	const struct ckt_lt_attribute *all = ckt_lt_attributes(kind, &count);
	for (unsigned i = 0; i < count; i++)
		if (all[i].number == attribute)
			return all[i].form <= form ? &all[i] : NULL;
	return NULL;
}

int ckt_lt_set(enum ckt_lt_kind kind, void *descriptor, int attribute, const void *value,
	size_t size_bytes)
{
	const struct ckt_lt_attribute *found =
		descriptor && value ? find(kind, descriptor, attribute) : NULL;
	if (!found || found->size != size_bytes)
		return CKT_LT_INVALID_VALUE;
	memcpy((uint8_t *)descriptor + found->offset, value, kept_bytes(found));
	return CKT_LT_SUCCESS;
}

int ckt_lt_get(enum ckt_lt_kind kind, const void *descriptor, int attribute, void *ret_value,
	size_t size_bytes, size_t *ret_written)
{
	const struct ckt_lt_attribute *found =
		descriptor ? find(kind, descriptor, attribute) : NULL;
	if (!found || (size_bytes ? !ret_value || found->size != size_bytes : !ret_written))
		return CKT_LT_INVALID_VALUE;
	const uint8_t *place = (const uint8_t *)descriptor + found->offset;
	if (size_bytes) {
		memcpy(ret_value, place, kept_bytes(found));
		/* With its sign, as in the genuine library. */
		memset((uint8_t *)ret_value + kept_bytes(found),
			place[kept_bytes(found) - 1] & 0x80 ? 0xff : 0,
			found->size - kept_bytes(found));
	}
	if (ret_written)
		*ret_written = found->size;
	return CKT_LT_SUCCESS;
}

uint32_t ckt_lt_word(enum ckt_lt_kind kind, const void *descriptor, int attribute)
{
	uint32_t value = 0;
	ckt_lt_get(kind, descriptor, attribute, &value, sizeof value, NULL);
	return value;
}

unsigned ckt_lt_scalar_bytes(uint32_t type)
{
	/*
	 * By cudaDataType_t (library_types.h).  Of four-bit types the byte that holds one, or a
	 * pair.
	 */
	static const uint8_t bytes[] = {[0] = 4,
		[1] = 8,
		[2] = 2,
		[3] = 1,
		[4] = 8,
		[5] = 16,
		[6] = 4,
		[7] = 2,
		[8] = 1,
		[9] = 2,
		[10] = 4,
		[11] = 8,
		[12] = 4,
		[13] = 8,
		[14] = 2,
		[15] = 4,
		[16] = 1,
		[17] = 1,
		[18] = 1,
		[19] = 1,
		[20] = 2,
		[21] = 4,
		[22] = 2,
		[23] = 4,
		[24] = 8,
		[25] = 16,
		[26] = 8,
		[27] = 16,
		[28] = 1,
		[29] = 1,
		[30] = 1,
		[31] = 1,
		[32] = 1,
		[33] = 1};
	return type < sizeof bytes ? bytes[type] : 0;
}

void ckt_lt_reduce_pointers(enum ckt_lt_kind kind, void *descriptor)
{
	unsigned count, form = form_of(kind, descriptor);
	const struct ckt_lt_attribute *all = ckt_lt_attributes(kind, &count);
	for (unsigned i = 0; i < count; i++) {
		uint64_t address;
		uint8_t *place = (uint8_t *)descriptor + all[i].offset;
		if (!all[i].pointer || all[i].form > form ||
			(kind == CKT_LT_MATMUL && all[i].number == CKT_LT_MATMUL_EMULATION))
			continue;
		memcpy(&address, place, sizeof address);
		address &= -address;
		if (address > CKT_LT_ALIGNMENT_MAX)
			address = CKT_LT_ALIGNMENT_MAX;
		memcpy(place, &address, sizeof address);
	}
}

bool ckt_lt_strides_on_host(const void *descriptor)
{
	uint32_t mode = ckt_lt_word(CKT_LT_MATMUL, descriptor, CKT_LT_MATMUL_POINTER_MODE);
	uint64_t alpha = 0, beta = 0;
	ckt_lt_get(CKT_LT_MATMUL, descriptor, CKT_LT_MATMUL_ALPHA_BATCH_STRIDE, &alpha,
		sizeof alpha, NULL);
	ckt_lt_get(CKT_LT_MATMUL, descriptor, CKT_LT_MATMUL_BETA_BATCH_STRIDE, &beta, sizeof beta,
		NULL);
	return (alpha && mode == CKT_LT_POINTER_HOST) ||
		(beta &&
			(mode == CKT_LT_POINTER_HOST ||
				mode == CKT_LT_POINTER_ALPHA_VECTOR_BETA_HOST));
}

/* Words are mixed as in MurmurHash's last step. */
uint64_t ckt_lt_hash(uint64_t hash, const uint8_t *bytes, size_t size)
{
	for (size_t i = 0; i < size; i += 8) {
		uint64_t word = 0;
		memcpy(&word, bytes + i, size - i < 8 ? size - i : 8);
		hash = (hash ^ word) * 0xff51afd7ed558ccd;
		hash ^= hash >> 33;
	}
	return hash;
}
