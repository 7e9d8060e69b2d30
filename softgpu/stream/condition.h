/* SPDX-License-Identifier: Apache-2.0 */
/* The conditions of executable graphs, by their handles. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct ckt_graph;
struct ckt_soft_conditions;

/*
 * Holds the conditions of the graph's conditional nodes, including nodes in bodies.  Counted; NULL
 * if there is no memory.
 */
struct ckt_soft_conditions *ckt_soft_conditions_make(const struct ckt_graph *graph);
void ckt_soft_conditions_ref(struct ckt_soft_conditions *conditions);
void ckt_soft_conditions_put(struct ckt_soft_conditions *conditions);
bool ckt_soft_conditions_any(const struct ckt_soft_conditions *conditions);
/* Sets the defaults, as the beginning of a launch does. */
void ckt_soft_conditions_assign(struct ckt_soft_conditions *conditions);
/* The condition's value; 0 if the handle is not valid. */
uint32_t ckt_soft_condition_value(uint64_t handle);
/* Sets the value for a kernel.  False if the handle is not valid.  data: unused. */
bool ckt_soft_condition_set(void *data, uint64_t handle, uint32_t value);
