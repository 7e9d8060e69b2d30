/* SPDX-License-Identifier: Apache-2.0 */
/* Who a session is, in an image. */
#include <stdio.h>
#include <string.h>

#include "checkpoint/load/image_load.h"
#include "checkpoint/save/image_save.h"
#include "server/worker/objects/object_kinds.h"
#include "server/worker/session/automatic.h"
#include "server/worker/worker.h"

static int save_table(struct ckt_saving *s)
{
	struct ckt_worker *worker = s->worker;
	ckt_image *image = &s->image;
	image->session = ckt_save_string(s, worker->session);
	memcpy(image->secret_hash, worker->secret_hash, sizeof image->secret_hash);
	image->generation = worker->generation;
	image->program_name = ckt_save_string(s, worker->program_name);
	image->client = ckt_save_string(s, worker->client);
	image->client_pid = worker->client_pid;
	image->uid = worker->uid;
	memcpy(image->key, worker->owner.key, sizeof image->key);
	memcpy(image->seal, worker->owner.seal, sizeof image->seal);
	image->owner_name = ckt_save_string(s, worker->owner_name);
	image->owner_project = ckt_save_string(s, worker->owner_project);
	image->copy = worker->copy;
	image->started = worker->started;
	image->window_base = worker->window_base;
	image->window_bytes = worker->window_size;
	image->slice_bytes = worker->slice_size;
	image->memory_limit_bytes = worker->memory_limit;
	return ckt_save_has_memory(s);
}

static int load(struct ckt_loading *l)
{
	struct ckt_worker *worker = l->worker;
	ckt_image *image = &l->image;
	snprintf(worker->session, sizeof worker->session, "%s", image->session);
	memcpy(worker->secret_hash, image->secret_hash, sizeof worker->secret_hash);
	worker->has_owner = true;
	/* A client that has seen this one refuses any older copy. */
	worker->generation = image->generation + 1;
	snprintf(worker->program_name, sizeof worker->program_name, "%s", image->program_name);
	snprintf(worker->client, sizeof worker->client, "%s", image->client);
	worker->client_pid = image->client_pid;
	worker->origin.uid = image->uid;
	worker->origin.generation = image->generation;
	memcpy(worker->origin.secret_hash, image->secret_hash, sizeof worker->origin.secret_hash);
	memcpy(worker->origin.key, image->key, sizeof worker->origin.key);
	memcpy(worker->origin.seal, image->seal, sizeof worker->origin.seal);
	worker->copy_before = image->copy;
	ckt_automatic_restored(worker);
	worker->started = image->started;
	return 0;
}

const struct ckt_object_kind ckt_identity_kind = {
	.name = "identity",
	.save_table = save_table,
	.stage = CKT_LOAD_IDENTITY,
	.load_rest = load,
};
