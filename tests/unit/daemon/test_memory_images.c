/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server/daemon/image/memory_images.c: images in memory: names, whose they are, limits, sealed once
 * written, replaced by the same session alone.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "inside.h"
#include "server/daemon/image/memory_images.h"

static char message[CKT_MESSAGE_MAX];

static void test_names(void)
{
	struct ckt_session *session = session_new("0000000000c1");
	int fd = control_new();
	struct ckt_peer *peer = peer_last();
	static const struct {
		const char *name;
		bool good;
	} cases[] = {{"a", true}, {"image-7", true}, {"", false}, {"A", false}, {"a/b", false},
		{"..", false}, {"a.b", false},
		{"012345678901234567890123456789012345678901234567890123456", true},
		{"0123456789012345678901234567890123456789012345678901234567", false}};
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct ckt_memory_image *kept =
			ckt_memory_image_make(peer, cases[i].name, session, 1000, message);
		IS(kept != NULL, cases[i].good);
		if (!kept)
			HAS(message, "a-z, 0-9 and -");
		ckt_memory_image_free(kept);
	}
	TEXT(ckt_memory_image_name("memory:x"), "x");
	TEXT(ckt_memory_image_name("memory:"), "");
	CU_ASSERT_PTR_NULL(ckt_memory_image_name("memories"));
	CU_ASSERT_PTR_NULL(ckt_memory_image_name(""));
	ckt_memory_image_free(NULL);
	CU_ASSERT_PTR_NULL(server.kept);
	close(fd);
	run_for(3);
	session_drop(session);
}

static void test_life(void)
{
	struct ckt_session *session = session_new("0000000000c2"),
			   *other = session_new("0000000000c3");
	int fd = control_new();
	struct ckt_peer *peer = peer_last();
	char id[CKT_CONTROL_IMAGE_ID] = "0123456789abcde";
	struct ckt_memory_image *kept = ckt_memory_image_make(peer, "one", session, 1000, message),
				*second;
	CU_ASSERT_PTR_NOT_NULL_FATAL(kept);
	CU_ASSERT_PTR_NULL(ckt_memory_image_find(peer, "one")); /* not written yet */
	IS(ckt_memory_image_send(kept, session), 0);
	run_for(30);
	IS(worker.calls[CKT_WORKER_MEMORY], CKT_IMAGE_MEMORY_FILES);
	IS(worker.descriptors, CKT_IMAGE_MEMORY_FILES);
	ckt_memory_image_commit(kept, id);
	YES(ckt_memory_image_find(peer, "one") == kept);
	/* The same session writes it anew, another one may not. */
	CU_ASSERT_PTR_NULL(ckt_memory_image_make(peer, "one", other, 1000, message));
	HAS(message, "of another session");
	second = ckt_memory_image_make(peer, "one", session, 1000, message);
	CU_ASSERT_PTR_NOT_NULL_FATAL(second);
	YES(ckt_memory_image_find(peer, "one") ==
		kept); /* the old one until the new one is there */
	ckt_memory_image_commit(second, id);
	YES(ckt_memory_image_find(peer, "one") == second);
	/* Whose it is. */
	uint32_t uid = peer->who.uid;
	peer->who.uid = 4242;
	IS(ckt_memory_image_find(peer, "one") == NULL, true);
	peer->who.uid = uid;
	/* Listed and removed by calls. */
	ckt_control_kept_res list = {0};
	ckt_control_result result = {0};
	ckt_control_stage_args args = {.stage = (char *)"one"};
	YES(control(fd, CKT_CONTROL_KEPT_LIST, NULL, NULL, -1, (xdrproc_t)xdr_ckt_control_kept_res,
		&list));
	IS(list.images.images_len, 1);
	TEXT(list.images.images_val[0].name, "one");
	TEXT(list.images.images_val[0].session, "0000000000c2");
	IS(memcmp(list.images.images_val[0].image, id, sizeof id), 0);
	xdr_free((xdrproc_t)xdr_ckt_control_kept_res, (char *)&list);
	for (int i = 0; i < 2; i++) {
		YES(control(fd, CKT_CONTROL_KEPT_REMOVE, (xdrproc_t)xdr_ckt_control_stage_args,
			&args, -1, (xdrproc_t)xdr_ckt_control_result, &result));
		IS(result.status, i ? CKT_CONTROL_REFUSED : CKT_CONTROL_OK);
		xdr_free((xdrproc_t)xdr_ckt_control_result, (char *)&result);
		memset(&result, 0, sizeof result);
	}
	CU_ASSERT_PTR_NULL(server.kept);
	close(fd);
	run_for(3);
	session_drop(session);
	session_drop(other);
}

static void test_limits(void)
{
	struct ckt_session *session = session_new("0000000000c4");
	int fd = control_new();
	struct ckt_peer *peer = peer_last();
	server.options.image_memory = 10 << 20;
	CU_ASSERT_PTR_NULL(ckt_memory_image_make(peer, "a", session, (10 << 20) + 1, message));
	HAS(message, "--image-memory");
	struct ckt_memory_image *kept = ckt_memory_image_make(peer, "a", session, 6 << 20, message);
	CU_ASSERT_PTR_NOT_NULL_FATAL(kept);
	/* What is being written counts already. */
	CU_ASSERT_PTR_NULL(ckt_memory_image_make(peer, "b", session, 5 << 20, message));
	HAS(message, "take 6 of 10 MiB");
	CU_ASSERT_PTR_NULL(ckt_memory_image_make(peer, "b", session, UINT64_MAX, message));
	ckt_memory_image_free(kept);
	kept = ckt_memory_image_make(peer, "b", session, 10 << 20, message);
	CU_ASSERT_PTR_NOT_NULL(kept);
	ckt_memory_image_free(kept);
	server.options.image_memory = UINT64_MAX;
	CU_ASSERT_PTR_NULL(ckt_memory_image_make(peer, "a", session, (uint64_t)1 << 60, message));
	HAS(message, "save it in a directory");
	server.options.image_memory = 0;
	kept = ckt_memory_image_make(peer, "c", session, 1, message);
	ckt_memory_image_fini(&server);
	CU_ASSERT_PTR_NULL(server.kept);
	close(fd);
	run_for(3);
	session_drop(session);
}

UNIT_SUITE(kept, {"names", test_names}, {"life", test_life}, {"limits", test_limits})
