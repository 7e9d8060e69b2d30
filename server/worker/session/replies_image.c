/* SPDX-License-Identifier: Apache-2.0 */
/* Replies that the client may still ask for, in an image. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "checkpoint/load/image_load.h"
#include "checkpoint/save/image_save.h"
#include "server/worker/objects/object_kinds.h"
#include "server/worker/worker.h"

static int save_table(struct ckt_saving *s)
{
	struct ckt_replies *replies = &s->worker->replies;
	s->image.executed = atomic_load(&replies->executed);
	s->image.acked = replies->acked;
	s->image.deferred = atomic_load(&s->worker->deferred);
	s->image.replies.replies_val = ckt_save_list(s, replies->count, sizeof(ckt_image_reply));
	for (size_t i = 0; i < replies->count && !s->no_memory; i++) {
		struct ckt_stored *stored = &replies->list[replies->first + i];
		ckt_image_reply *reply =
			&s->image.replies.replies_val[s->image.replies.replies_len++];
		reply->seq = stored->seq;
		reply->proc = stored->proc;
		reply->deferred = stored->deferred;
		reply->accept_stat = stored->accept_stat;
		reply->body.body_val = ckt_save_list(s, stored->size, 1);
		if (!reply->body.body_val)
			break;
		reply->body.body_len = (u_int)stored->size;
		/* Of a rejected call there is none. */
		if (stored->size)
			memcpy(reply->body.body_val, stored->body, stored->size);
	}
	return ckt_save_has_memory(s);
}

static int load(struct ckt_loading *l)
{
	struct ckt_worker *worker = l->worker;
	ckt_image *image = &l->image;
	atomic_store(&worker->replies.executed, image->executed);
	worker->replies.acked = image->acked;
	atomic_store(&worker->deferred, image->deferred);
	for (unsigned i = 0; i < image->replies.replies_len; i++) {
		ckt_image_reply *reply = &image->replies.replies_val[i];
		uint8_t *body = malloc(reply->body.body_len + 1);
		if (!body || ckt_replies_expect(&worker->replies, reply->seq, reply->proc, 0, 0)) {
			free(body);
			return ckt_load_refuse(l, -ENOMEM,
				"the worker has no memory for the replies in the image");
		}
		if (reply->body.body_len)
			memcpy(body, reply->body.body_val, reply->body.body_len);
		pthread_mutex_lock(&worker->replies.lock);
		ckt_replies_store(&worker->replies, ckt_replies_find(&worker->replies, reply->seq),
			body, reply->body.body_len, reply->deferred, reply->accept_stat);
		pthread_mutex_unlock(&worker->replies.lock);
	}
	return 0;
}

const struct ckt_object_kind ckt_reply_kind = {
	.name = "replies",
	.save_table = save_table,
	.stage = CKT_LOAD_IDENTITY,
	.load_rest = load,
};
