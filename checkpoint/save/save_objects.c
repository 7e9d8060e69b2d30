/* SPDX-License-Identifier: Apache-2.0 */
/* Saves the objects of a session in an image: a walk over the tables of their kinds. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "checkpoint/object_kind.h"
#include "checkpoint/save/image_save.h"
#include "checkpoint/session.h"
#include "rpc/handle.h"

static int prepare(struct ckt_saving *s, struct ckt_object *const *objects, size_t count)
{
	int error = 0;
	for (const struct ckt_object_kind *const *kind = ckt_object_kinds; *kind && !error; kind++)
		if ((*kind)->prepare)
			error = (*kind)->prepare(s, objects, count);
	return error ? error : ckt_save_has_memory(s);
}

static int save(struct ckt_saving *s, struct ckt_object *object)
{
	const uint64_t id = ckt_session_operations.object_id(object);
	const struct ckt_object_kind *kind = ckt_object_kind_of(ckt_handle_kind(id));
	if (kind)
		return kind->save ? kind->save(s, object) : 0;
	snprintf(s->message, s->message_size,
		"object 0x%llx is of a kind (%d) that cannot be saved yet", (unsigned long long)id,
		ckt_handle_kind(id));
	return -EOPNOTSUPP;
}

static int save_rest(struct ckt_saving *s)
{
	int error = 0;
	for (const struct ckt_object_kind *const *kind = ckt_object_kinds; *kind && !error; kind++)
		if ((*kind)->save_rest)
			error = (*kind)->save_rest(s);
	return error;
}

int ckt_save_objects(struct ckt_saving *s)
{
	size_t count;
	struct ckt_object **objects = ckt_session_operations.objects_in_order(s->worker, &count);
	s->no_memory |= !objects;
	int error = objects ? prepare(s, objects, count) : ckt_save_has_memory(s);
	for (size_t i = 0; i < count && !error; i++)
		error = save(s, objects[i]);
	free(objects);
	return error ? error : save_rest(s);
}

void ckt_save_give_back(struct ckt_saving *s)
{
	for (const struct ckt_object_kind *const *kind = ckt_object_kinds; *kind; kind++)
		if ((*kind)->give_back)
			(*kind)->give_back(s);
}

void ckt_save_free_objects(struct ckt_saving *s)
{
	for (const struct ckt_object_kind *const *kind = ckt_object_kinds; *kind; kind++)
		if ((*kind)->free)
			(*kind)->free(s);
}
