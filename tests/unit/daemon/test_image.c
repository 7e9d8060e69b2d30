/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server/daemon/image/image.c: images of sessions that are held: by whom, until when, and chains
 * that are restored.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "inside.h"

static char id[] = "0000000000b1", text[CKT_MESSAGE_MAX];

static ckt_control_status save(int fd, const char *stage, int directory_fd, bool hold)
{
	ckt_control_save_args args = {
		.session = id, .stage = (char *)stage, .deadline_ms = 100, .hold = hold};
	ckt_control_save_res res = {0};
	YES(control(fd, CKT_CONTROL_SAVE, (xdrproc_t)xdr_ckt_control_save_args, &args, directory_fd,
		(xdrproc_t)xdr_ckt_control_save_res, &res));
	ckt_control_status status = res.result.status;
	snprintf(text, sizeof text, "%.500s", res.result.message);
	xdr_free((xdrproc_t)xdr_ckt_control_save_res, (char *)&res);
	return status;
}

static ckt_control_status simple(int fd, uint32_t proc, xdrproc_t xdr, void *args, int pass_fd)
{
	ckt_control_result res = {0};
	YES(control(fd, proc, xdr, args, pass_fd, (xdrproc_t)xdr_ckt_control_result, &res));
	ckt_control_status status = res.status;
	snprintf(text, sizeof text, "%.500s", res.message);
	xdr_free((xdrproc_t)xdr_ckt_control_result, (char *)&res);
	return status;
}

static ckt_control_status release(int fd)
{
	ckt_control_release_args args = {.session = id, .moved_to = (char *)""};
	return simple(fd, CKT_CONTROL_RELEASE, (xdrproc_t)xdr_ckt_control_release_args, &args, -1);
}

static ckt_control_status quiesce(int fd)
{
	ckt_control_session_args args = {.session = id};
	return simple(fd, CKT_CONTROL_QUIESCE, (xdrproc_t)xdr_ckt_control_session_args, &args, -1);
}

static void test_hold(void)
{
	struct ckt_session *session = session_new(id);
	int one = control_new(), two = control_new(), dir = open(directory, O_RDONLY | O_DIRECTORY),
	    broker = broker_new();
	IS(save(one, "", -1, true), CKT_CONTROL_REFUSED);
	HAS(text, "without a file broker");
	/* A directory is never taken, whosever it is. */
	IS(save(one, "", dir, true), CKT_CONTROL_REFUSED);
	HAS(text, "without a file broker");
	IS(worker.descriptors, 0);
	IS(save(one, "none", broker, true), CKT_CONTROL_REFUSED);
	HAS(text, "this server has no stage 'none'");
	worker.status = -16;
	worker.message = "a kernel does not finish";
	IS(save(one, "", broker, true), CKT_CONTROL_REFUSED);
	HAS(text, "a kernel does not finish");
	CU_ASSERT_PTR_NULL(session->holder); /* what failed holds nothing */
	worker.status = 0;
	IS(save(one, "", broker, false), CKT_CONTROL_OK);
	CU_ASSERT_PTR_NULL(session->holder);
	IS(release(one), CKT_CONTROL_REFUSED);
	IS(quiesce(one), CKT_CONTROL_REFUSED);
	HAS(text, "this connection does not hold");
	IS(save(one, "", broker, true), CKT_CONTROL_OK);
	YES(session->holder != NULL);
	IS(save(two, "", broker, false), CKT_CONTROL_REFUSED);
	HAS(text, "is held by another checkpoint or migration");
	IS(release(two), CKT_CONTROL_REFUSED);
	IS(quiesce(two), CKT_CONTROL_REFUSED);
	IS(quiesce(one), CKT_CONTROL_OK);
	IS(worker.calls[CKT_WORKER_QUIESCE], 1);
	IS(worker.calls[CKT_WORKER_RELEASE], 0);
	IS(release(one), CKT_CONTROL_OK);
	IS(worker.calls[CKT_WORKER_RELEASE], 1);
	CU_ASSERT_PTR_NULL(session->holder);
	/* Held, and the connection goes: the session goes on. */
	IS(save(two, "", broker, true), CKT_CONTROL_OK);
	close(two);
	run_for(30);
	CU_ASSERT_PTR_NULL(session->holder);
	IS(worker.calls[CKT_WORKER_RELEASE], 2);
	close(dir);
	close(broker);
	close(one);
	run_for(3);
	session_drop(session);
}

static ckt_control_status restore(int fd, uint32_t proc, char *stage, char *copy)
{
	ckt_control_stage_args stages = {.stage = stage};
	ckt_control_restore2_args args = {.gpu = -1, .stages = {stage != NULL, &stages}};
	ckt_control_preload_args ahead = {
		.copy = copy, .gpu = -1, .stages = {stage != NULL, &stages}};
	ckt_control_restore_res res = {0};
	bool preload = proc == CKT_CONTROL_PRELOAD;
	YES(control(fd, proc,
		preload ? (xdrproc_t)xdr_ckt_control_preload_args
			: (xdrproc_t)xdr_ckt_control_restore2_args,
		preload ? (void *)&ahead : (void *)&args, -1,
		(xdrproc_t)xdr_ckt_control_restore_res, &res));
	ckt_control_status status = res.result.status;
	snprintf(text, sizeof text, "%.500s", res.result.message);
	xdr_free((xdrproc_t)xdr_ckt_control_restore_res, (char *)&res);
	return status;
}

static void test_chain(void)
{
	int fd = control_new(), dir = open(directory, O_RDONLY | O_DIRECTORY),
	    broker = broker_new();
	struct ckt_peer *peer = peer_last();
	unsigned before = server.session_count;
	static const struct {
		uint32_t proc;
		const char *stage, *says;
	} wrong[] = {{CKT_CONTROL_RESTORE2, NULL, "without a file broker"},
		{CKT_CONTROL_RESTORE2, "none", "this server has no stage 'none'"},
		{CKT_CONTROL_RESTORE2, "memory:none", "there is no image 'none' in memory on here"},
		{CKT_CONTROL_RESTORE2, "memory:../x", "there is no image '?' in memory"},
		{CKT_CONTROL_PRELOAD, NULL, "without a file broker"},
		{CKT_CONTROL_PRELOAD, "none", "this server has no stage 'none'"}};
	for (size_t i = 0; i < COUNT(wrong); i++) {
		IS(restore(fd, wrong[i].proc, (char *)wrong[i].stage, (char *)""),
			CKT_CONTROL_REFUSED);
		HAS(text, wrong[i].says);
	}
	/* Images one after the other, with a broker each, so many. */
	for (unsigned i = 0; i <= CKT_CONTROL_CHAIN_MAX; i++) {
		ckt_control_image_args args = {.index = i + 1};
		IS(simple(fd, CKT_CONTROL_IMAGE, (xdrproc_t)xdr_ckt_control_image_args, &args,
			   broker),
			CKT_CONTROL_REFUSED);
		args.index = i;
		IS(simple(fd, CKT_CONTROL_IMAGE, (xdrproc_t)xdr_ckt_control_image_args, &args, dir),
			CKT_CONTROL_REFUSED);
		IS(simple(fd, CKT_CONTROL_IMAGE, (xdrproc_t)xdr_ckt_control_image_args, &args, -1),
			CKT_CONTROL_REFUSED);
		IS(simple(fd, CKT_CONTROL_IMAGE, (xdrproc_t)xdr_ckt_control_image_args, &args,
			   broker),
			i < CKT_CONTROL_CHAIN_MAX ? CKT_CONTROL_OK : CKT_CONTROL_REFUSED);
	}
	IS(peer->image_count, CKT_CONTROL_CHAIN_MAX);
	/* A copy that is not there any more, or was never one's own. */
	IS(restore(fd, CKT_CONTROL_PRELOAD, NULL, (char *)"0123456789ab"), CKT_CONTROL_REFUSED);
	HAS(text, "the copy '0123456789ab' no longer exists");
	IS(peer->image_count, 0); /* and the chain with it */
	IS(server.session_count, before);
	close(dir);
	close(broker);
	close(fd);
	run_for(3);
}

UNIT_SUITE(image, {"hold", test_hold}, {"chain", test_chain})
