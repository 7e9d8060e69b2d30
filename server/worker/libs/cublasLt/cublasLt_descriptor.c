/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The genuine library's descriptors, made from the client's bytes.
 *
 * Each role has its own table with one place for each hash: a descriptor with other bytes replaces
 * the previous one.  A training step has a few hundred different descriptors at most, and making
 * one costs about as much as a look-up with collisions.
 */
#include <stdlib.h>
#include <string.h>

#include "server/worker/libs/cublasLt/cublasLt.h"

enum { PLACES = 256 };

struct place {
	void *real, *emulation; /* the library's; NULL: the place is free */
	uint8_t length, emulation_length;
	uint8_t bytes[CKT_LT_BYTES_MAX], emulation_bytes[CKT_LT_EMULATION_BYTES];
};

static struct place *tables[CKT_CUBLASLT_ROLES];

static enum ckt_lt_kind kind_of(enum ckt_cublaslt_role role)
{
	switch (role) {
	case CKT_CUBLASLT_OPERATION:
		return CKT_LT_MATMUL;
	case CKT_CUBLASLT_TRANSFORM:
		return CKT_LT_TRANSFORM;
	case CKT_CUBLASLT_PREFERENCE:
		return CKT_LT_PREFERENCE;
	default:
		return CKT_LT_LAYOUT;
	}
}

static void destroy_real(enum ckt_lt_kind kind, void *real)
{
	if (!real)
		return;
	switch (kind) {
	case CKT_LT_MATMUL:
		ckt_cublasLt.cublasLtMatmulDescDestroy(real);
		break;
	case CKT_LT_LAYOUT:
		ckt_cublasLt.cublasLtMatrixLayoutDestroy(real);
		break;
	case CKT_LT_TRANSFORM:
		ckt_cublasLt.cublasLtMatrixTransformDescDestroy(real);
		break;
	case CKT_LT_PREFERENCE:
		ckt_cublasLt.cublasLtMatmulPreferenceDestroy(real);
		break;
	default:
		ckt_cublasLt.cublasLtEmulationDescDestroy(real);
		break;
	}
}

static void empty(enum ckt_lt_kind kind, struct place *place)
{
	destroy_real(kind, place->real);
	destroy_real(CKT_LT_EMULATION, place->emulation);
	place->real = place->emulation = NULL;
}

void ckt_cublaslt_descriptors_end(void)
{
	for (int role = 0; role < CKT_CUBLASLT_ROLES; role++) {
		for (unsigned i = 0; tables[role] && i < PLACES; i++)
			empty(kind_of(role), &tables[role][i]);
		free(tables[role]);
		tables[role] = NULL;
	}
}

static uint64_t long_word(enum ckt_lt_kind kind, const void *bytes, int attribute)
{
	uint64_t value = 0;
	ckt_lt_get(kind, bytes, attribute, &value, sizeof value, NULL);
	return value;
}

static cublasStatus_t create(enum ckt_lt_kind kind, const uint8_t *bytes, void **ret_real)
{
	switch (kind) {
	case CKT_LT_MATMUL:
		return ckt_cublasLt.cublasLtMatmulDescCreate((cublasLtMatmulDesc_t *)ret_real,
			(cublasComputeType_t)ckt_lt_word(
				kind, bytes, CUBLASLT_MATMUL_DESC_COMPUTE_TYPE),
			(cudaDataType_t)ckt_lt_word(kind, bytes, CUBLASLT_MATMUL_DESC_SCALE_TYPE));
	case CKT_LT_LAYOUT:
		return ckt_cublasLt.cublasLtMatrixLayoutCreate((cublasLtMatrixLayout_t *)ret_real,
			(cudaDataType_t)ckt_lt_word(kind, bytes, CUBLASLT_MATRIX_LAYOUT_TYPE),
			long_word(kind, bytes, CUBLASLT_MATRIX_LAYOUT_ROWS),
			long_word(kind, bytes, CUBLASLT_MATRIX_LAYOUT_COLS),
			(int64_t)long_word(kind, bytes, CUBLASLT_MATRIX_LAYOUT_LD));
	case CKT_LT_TRANSFORM:
		return ckt_cublasLt.cublasLtMatrixTransformDescCreate(
			(cublasLtMatrixTransformDesc_t *)ret_real,
			(cudaDataType_t)ckt_lt_word(
				kind, bytes, CUBLASLT_MATRIX_TRANSFORM_DESC_SCALE_TYPE));
	case CKT_LT_PREFERENCE:
		return ckt_cublasLt.cublasLtMatmulPreferenceCreate(
			(cublasLtMatmulPreference_t *)ret_real);
	default:
		/* Older libraries have no emulation descriptors. */
		return ckt_cublasLt.cublasLtEmulationDescCreate
			? ckt_cublasLt.cublasLtEmulationDescCreate(
				  (cublasLtEmulationDesc_t *)ret_real)
			: CUBLAS_STATUS_NOT_SUPPORTED;
	}
}

static cublasStatus_t set_real(
	enum ckt_lt_kind kind, void *real, int attribute, const void *value, size_t size)
{
	switch (kind) {
	case CKT_LT_MATMUL:
		return ckt_cublasLt.cublasLtMatmulDescSetAttribute(
			real, (cublasLtMatmulDescAttributes_t)attribute, value, size);
	case CKT_LT_LAYOUT:
		return ckt_cublasLt.cublasLtMatrixLayoutSetAttribute(
			real, (cublasLtMatrixLayoutAttribute_t)attribute, value, size);
	case CKT_LT_TRANSFORM:
		return ckt_cublasLt.cublasLtMatrixTransformDescSetAttribute(
			real, (cublasLtMatrixTransformDescAttributes_t)attribute, value, size);
	case CKT_LT_PREFERENCE:
		return ckt_cublasLt.cublasLtMatmulPreferenceSetAttribute(
			real, (cublasLtMatmulPreferenceAttributes_t)attribute, value, size);
	default:
		return ckt_cublasLt.cublasLtEmulationDescSetAttribute(
			real, (cublasLtEmulationDescAttributes_t)attribute, value, size);
	}
}

/*
 * An attribute that has the value of a new descriptor is not set: an older library need not know
 * it.
 */
static cublasStatus_t fill(enum ckt_lt_kind kind, const uint8_t *bytes, void *real)
{
	unsigned count;
	const struct ckt_lt_attribute *all = ckt_lt_attributes(kind, &count);
	for (unsigned i = 0; i < count; i++) {
		uint64_t value = 0;
		if (ckt_lt_get(kind, bytes, all[i].number, &value, all[i].size, NULL) ||
			value == all[i].fresh)
			continue;
		/* The value is an address in the client. */
		if (kind == CKT_LT_MATMUL && all[i].number == CKT_LT_MATMUL_EMULATION)
			continue;
		cublasStatus_t status = set_real(kind, real, all[i].number, &value, all[i].size);
		if (status)
			return status;
	}
	return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t make(enum ckt_lt_kind kind, const uint8_t *bytes, void **ret_real)
{
	*ret_real = NULL;
	cublasStatus_t status = create(kind, bytes, ret_real);
	if (!status)
		status = fill(kind, bytes, *ret_real);
	if (!status)
		return status;
	destroy_real(kind, *ret_real);
	*ret_real = NULL;
	return status;
}

static cublasStatus_t build(
	enum ckt_lt_kind kind, const struct ckt_cublaslt_bytes *from, struct place *place)
{
	empty(kind, place);
	cublasStatus_t status = from->emulation_length
		? make(CKT_LT_EMULATION, from->emulation, &place->emulation)
		: CUBLAS_STATUS_SUCCESS;
	if (!status)
		status = make(kind, from->bytes, &place->real);
	if (!status && place->emulation)
		status = set_real(kind, place->real, CKT_LT_MATMUL_EMULATION, &place->emulation,
			sizeof place->emulation);
	if (status) {
		empty(kind, place);
		return status;
	}
	memcpy(place->bytes, from->bytes, from->length);
	place->length = (uint8_t)from->length;
	if (from->emulation_length)
		memcpy(place->emulation_bytes, from->emulation, from->emulation_length);
	place->emulation_length = (uint8_t)from->emulation_length;
	return status;
}

static bool is_descriptor(enum ckt_lt_kind kind, const struct ckt_cublaslt_bytes *from)
{
	if (from->emulation_length &&
		(kind != CKT_LT_MATMUL || from->emulation_length != CKT_LT_EMULATION_BYTES))
		return false;
	return ckt_lt_is_descriptor(kind, from->bytes, from->length);
}

int ckt_cublaslt_descriptor(
	enum ckt_cublaslt_role role, const struct ckt_cublaslt_bytes *from, void **ret_descriptor)
{
	enum ckt_lt_kind kind = kind_of(role);
	*ret_descriptor = NULL;
	if (!from->length && !from->emulation_length)
		return CUBLAS_STATUS_SUCCESS;
	if (!is_descriptor(kind, from))
		return CKT_WCALL_GARBAGE;
	if (!tables[role])
		tables[role] = calloc(PLACES, sizeof *tables[role]);
	if (!tables[role])
		return CUBLAS_STATUS_ALLOC_FAILED;
	uint64_t hash = ckt_lt_hash(
		ckt_lt_hash(0, from->bytes, from->length), from->emulation, from->emulation_length);
	struct place *place = &tables[role][hash % PLACES];
	bool same = place->real && place->length == from->length &&
		!memcmp(place->bytes, from->bytes, from->length) &&
		place->emulation_length == from->emulation_length &&
		(!from->emulation_length ||
			!memcmp(place->emulation_bytes, from->emulation, from->emulation_length));
	if (!same) {
		cublasStatus_t status = build(kind, from, place);
		if (status)
			return (int)status;
	}
	*ret_descriptor = place->real;
	return CUBLAS_STATUS_SUCCESS;
}
