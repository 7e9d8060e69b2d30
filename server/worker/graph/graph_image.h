/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs in a checkpoint image.  Precondition: the session is frozen or not started. */
#pragma once

#include <cuda.h>

#include "checkpoint/format/image.h"

struct ckt_object;
struct ckt_worker;

/* 0 or -ENOMEM. */
int ckt_worker_graph_save(const struct ckt_object *object, ckt_image_graph *ret_saved);
/* Precondition: the graph's context is current. */
CUresult ckt_worker_graph_load(struct ckt_worker *worker, const ckt_image_graph *saved);
/*
 * Appends what the worker holds of the program's pageable memory for an executable graph.  A launch
 * that is over may have results there that the client has not fetched.  0 or -ENOMEM.
 */
int ckt_worker_graph_save_bytes(const struct ckt_object *object, ckt_image *image);
/* Of a graph that was loaded; what it does not touch any more is left out. */
CUresult ckt_worker_graph_load_bytes(struct ckt_worker *worker, const ckt_image_graph_bytes *saved);
