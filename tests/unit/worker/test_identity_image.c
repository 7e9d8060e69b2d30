/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server/worker/session/identity_image.c: who the session is goes into an image, and comes back as
 * the next generation.
 */
#include <string.h>

#include "checkpoint/load/image_load.h"
#include "checkpoint/save/image_save.h"
#include "server/worker/objects/object_kinds.h"
#include "tests/unit/worker/inside.h"

static void test_identity(void)
{
	static struct ckt_worker worker, restored;
	struct ckt_saving s = {.worker = &worker};
	struct ckt_loading l = {.worker = &restored};
	strcpy(worker.session, "0123456789ab");
	strcpy(worker.program_name, "program");
	strcpy(worker.client, "10.0.0.1:7");
	memset(worker.secret_hash, 5, sizeof worker.secret_hash);
	memset(worker.owner.seal, 6, sizeof worker.owner.seal);
	worker.generation = 3;
	worker.client_pid = 4711;
	worker.uid = 1001;
	worker.copy = 77;
	strcpy(worker.owner_name, "token:alice");
	strcpy(worker.owner_project, "vision");
	worker.started = 123456;
	worker.slice_size = 1 << 21;
	worker.memory_limit = 9 << 20;
	MUST(ckt_identity_kind.save_table(&s), 0);
	TEXT(s.image.owner_name, "token:alice");
	TEXT(s.image.owner_project, "vision");
	IS(s.image.slice_bytes, 1 << 21);
	IS(s.image.memory_limit_bytes, 9 << 20);
	l.image = s.image;
	IS(ckt_identity_kind.stage, CKT_LOAD_IDENTITY);
	MUST(ckt_identity_kind.load_rest(&l), 0);
	TEXT(restored.session, "0123456789ab");
	TEXT(restored.program_name, "program");
	TEXT(restored.client, "10.0.0.1:7");
	IS(memcmp(restored.secret_hash, worker.secret_hash, sizeof worker.secret_hash), 0);
	IS(memcmp(restored.origin.seal, worker.owner.seal, sizeof worker.owner.seal), 0);
	IS(restored.generation, 4);
	IS(restored.origin.generation, 3);
	IS(restored.origin.uid, 1001);
	IS(restored.client_pid, 4711);
	IS(restored.started, 123456);
	YES(restored.has_owner);
	/* A copy of its own, of which the image's was the one before. */
	IS(restored.copy, 0);
	IS(restored.copy_before, 77);
	/* Limits are the server's of now. */
	IS(restored.memory_limit, 0);
	xdr_free((xdrproc_t)xdr_ckt_image, (char *)&s.image);
}

UNIT_SUITE(identity_image, {"identity", test_identity})
