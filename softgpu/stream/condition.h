/* SPDX-License-Identifier: Apache-2.0 */
/* The conditions of executable graphs, by their handles. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct ckt_graph;
struct ckt_soft_conditions;

/*
 * Those of the graph's conditional nodes, of nodes in bodies too; NULL where there is no memory.
 * Counted.
 */
struct ckt_soft_conditions *ckt_soft_conditions_make(const struct ckt_graph *graph);
void ckt_soft_conditions_ref(struct ckt_soft_conditions *conditions);
void ckt_soft_conditions_put(struct ckt_soft_conditions *conditions);
bool ckt_soft_conditions_any(const struct ckt_soft_conditions *conditions);
/* Defaults, as at the beginning of a launch. */
void ckt_soft_conditions_assign(struct ckt_soft_conditions *conditions);
/* 0 where the handle is none. */
uint32_t ckt_soft_condition_value(uint64_t handle);
/* What a kernel says; false where the handle is none.  data: unused. */
bool ckt_soft_condition_set(void *data, uint64_t handle, uint32_t value);
