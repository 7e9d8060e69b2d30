/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Conditions of executable graphs.  Kernels name a condition by a number, so one list holds all
 * conditions.  A condition lives as long as an executable graph or a running launch holds it.  One
 * lock protects the list; it is taken after all other locks.
 */
#include <stdlib.h>

#include "softgpu/stream/condition.h"
#include "cudacommon/graph.h"

struct condition {
	struct condition *next;
	uint64_t handle;
	uint32_t value;
	unsigned holders;
};

struct held {
	struct condition *condition;
	uint32_t initial;
	bool assigned; /* a value at the beginning of each launch */
};

struct ckt_soft_conditions {
	atomic_uint refs;
	size_t n;
	struct held held[];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct condition *all;

/* Precondition: the lock is held. */
static struct condition *find(uint64_t handle)
{
	struct condition *c = all;
	while (c && c->handle != handle)
		c = c->next;
	return c;
}

/* A condition may be held more than once, for example while a graph is updated. */
static struct condition *hold(uint64_t handle, uint32_t initial)
{
	pthread_mutex_lock(&lock);
	struct condition *c = find(handle);
	if (!c && (c = calloc(1, sizeof(*c)))) {
		*c = (struct condition){.next = all, .handle = handle, .value = initial};
		all = c;
	}
	if (c)
		c->holders++;
	pthread_mutex_unlock(&lock);
	return c;
}

static void let_go(struct condition *condition)
{
	pthread_mutex_lock(&lock);
	if (--condition->holders == 0) {
		struct condition **place = &all;
		while (*place != condition)
			place = &(*place)->next;
		*place = condition->next;
		free(condition);
	}
	pthread_mutex_unlock(&lock);
}

/* Counts the conditions, and holds them if there is room.  False if there is no memory. */
static bool each(const struct ckt_graph *graph, size_t *n, struct held *held)
{
	bool good = true;
	for (size_t i = 0; i < graph->count && good; i++) {
		const struct ckt_node *node = graph->nodes[i];
		const struct ckt_conditional_node *c = &node->conditional;
		size_t inner;
		struct ckt_graph *const *graphs = ckt_node_graphs(node, &inner);
		if (node->type == CU_GRAPH_NODE_TYPE_CONDITIONAL && held) {
			held[*n] = (struct held){.condition = hold(c->handle, c->value),
				.initial = c->value,
				.assigned = c->flags & CU_GRAPH_COND_ASSIGN_DEFAULT};
			good = held[*n].condition != NULL;
		}
		*n += good && node->type == CU_GRAPH_NODE_TYPE_CONDITIONAL;
		for (size_t k = 0; k < inner && good; k++)
			good = each(graphs[k], n, held);
	}
	return good;
}

struct ckt_soft_conditions *ckt_soft_conditions_make(const struct ckt_graph *graph)
{
	size_t n = 0;
	each(graph, &n, NULL);
	struct ckt_soft_conditions *conditions =
		calloc(1, sizeof(*conditions) + n * sizeof(*conditions->held));
	if (!conditions)
		return NULL;
	atomic_store(&conditions->refs, 1);
	if (each(graph, &conditions->n, conditions->held))
		return conditions;
	ckt_soft_conditions_put(conditions);
	return NULL;
}

void ckt_soft_conditions_ref(struct ckt_soft_conditions *conditions)
{
	atomic_fetch_add(&conditions->refs, 1);
}

void ckt_soft_conditions_put(struct ckt_soft_conditions *conditions)
{
	if (!conditions || atomic_fetch_sub(&conditions->refs, 1) != 1)
		return;
	for (size_t i = 0; i < conditions->n; i++)
		let_go(conditions->held[i].condition);
	free(conditions);
}

bool ckt_soft_conditions_any(const struct ckt_soft_conditions *conditions)
{
	return conditions && conditions->n > 0;
}

void ckt_soft_conditions_assign(struct ckt_soft_conditions *conditions)
{
	pthread_mutex_lock(&lock);
	for (size_t i = 0; i < conditions->n; i++)
		if (conditions->held[i].assigned)
			conditions->held[i].condition->value = conditions->held[i].initial;
	pthread_mutex_unlock(&lock);
}

uint32_t ckt_soft_condition_value(uint64_t handle)
{
	pthread_mutex_lock(&lock);
	const struct condition *c = find(handle);
	uint32_t value = c ? c->value : 0;
	pthread_mutex_unlock(&lock);
	return value;
}

bool ckt_soft_condition_set(void *data, uint64_t handle, uint32_t value)
{
	(void)data;
	pthread_mutex_lock(&lock);
	struct condition *c = find(handle);
	if (c)
		c->value = value;
	pthread_mutex_unlock(&lock);
	return c != NULL;
}
