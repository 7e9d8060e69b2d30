/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attributes of streams: set on the driver's stream and kept with its object, or with the context
 * of a legacy default stream, so that an image has them.
 */
#pragma once

#include <cuda.h>
#include <stdint.h>

struct ckt_object;
struct ckt_worker;

enum { CKT_STREAM_ATTRIBUTE_IDS = 16 };

struct ckt_stream_attributes {
	uint32_t set; /* a bit for each that was */
	CUstreamAttrValue values[CKT_STREAM_ATTRIBUTE_IDS];
};

/*
 * Precondition: the context of the stream is current.  stream: an id; 0 and 1 mean the current
 * context's legacy default stream.
 */
CUresult ckt_worker_stream_attribute_set(struct ckt_worker *worker, uint64_t stream,
	CUstreamAttrID attribute, const CUstreamAttrValue *value);
/* The attributes that were set on a stream's or a context's object; NULL if none were. */
const struct ckt_stream_attributes *ckt_worker_stream_attributes_of(
	const struct ckt_object *object);

/*
 * stream_image.c.  Adds the attributes of a stream or a context to the image's list, which has
 * room.
 */
struct ckt_saving;
void ckt_worker_stream_attributes_save(struct ckt_saving *s, const struct ckt_object *object);
