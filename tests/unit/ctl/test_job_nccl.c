/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ctl/job/job_nccl.c: which sessions of a job share communicators, and the new ids that they are
 * told of before they are restored.
 */
#include <fcntl.h>
#include <rpc/rpc.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "checkpoint/format/store.h"
#include "ctl/command.h"
#include "ctl/job/job.h"
#include "ctl/subcommands.h"
#include "inside.h"
#include "rpc/control.h"
#include "rpc/net.h"
#include "rpc/session.h"
#include "rpc/wire.h"

enum { COMM_BYTES = 172 };

/* A communicator of a session, as its image has it. */
struct comm {
	uint8_t identity;
	int ranks, rank;
	unsigned life, kind;
};

static void put_comm(uint8_t *bytes, const struct comm *comm)
{
	uint8_t *p = ckt_put_u64(ckt_put_u64(bytes, 7), 0);
	p = ckt_put_u32(ckt_put_u32(ckt_put_u32(p, (uint32_t)comm->ranks), (uint32_t)comm->rank),
		comm->kind);
	for (int i = 0; i < 3; i++)
		p = ckt_put_u32(p, 0);
	p = ckt_put_u32(p, CKT_NCCL_ID_BYTES);
	memset(p, comm->identity, CKT_NCCL_ID_BYTES);
}

static void image_of(const char *session, const struct comm *comms, u_int count)
{
	static uint8_t args[8][COMM_BYTES];
	static ckt_image_library_step steps[8];
	static ckt_image_device device = {.name = (char *)"GPU"};
	static ckt_image_library library = {
		.name = (char *)"nccl", .number = CKT_LIB_NCCL, .major = 2, .file = (char *)"x"};
	char path[128], message[256];
	snprintf(path, sizeof path, "%s/%s", path_in("shares"), session);
	mkdir(path, 0700);
	memset(steps, 0, sizeof steps);
	for (u_int i = 0; i < count; i++) {
		put_comm(args[i], &comms[i]);
		steps[i] = (ckt_image_library_step){.kind = 1,
			.proc = CKT_NCCL_COMM_PROC,
			.id = i + 1,
			.number = i + 1,
			.life = comms[i].life,
			.args = {COMM_BYTES, (char *)args[i]}};
	}
	ckt_image image = {.session = (char *)session,
		.program_name = (char *)"p",
		.client = (char *)"",
		.build = (char *)"test",
		.owner_name = (char *)"",
		.owner_project = (char *)"",
		.window_base = (uint64_t)2 << 44,
		.window_bytes = (uint64_t)4 << 40,
		.slice_bytes = (uint64_t)4 << 40,
		.devices = {1, &device},
		.libraries = {1, &library},
		.library_steps = {count, steps}};
	memset(image.id, session[0], sizeof image.id);
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	unlinkat(fd, "manifest", 0);
	IS(ckt_image_write(fd, &image, message, sizeof message), 0);
	close(fd);
}

static const char *const names[] = {"0123456789ab", "ba9876543210"};

/* Both sessions' communicators, read and checked. */
static int check(const struct comm *first, u_int first_count, const struct comm *second,
	u_int second_count, struct ckt_ctl_members *ret_members)
{
	char message[256];
	mkdir(path_in("shares"), 0700);
	image_of(names[0], first, first_count);
	image_of(names[1], second, second_count);
	*ret_members = (struct ckt_ctl_members){0};
	for (unsigned i = 0; i < 2; i++) {
		char path[128];
		snprintf(path, sizeof path, "%s/%s", path_in("shares"), names[i]);
		int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		IS(ckt_ctl_members_read(ret_members, fd, i, message, sizeof message), 0);
		close(fd);
	}
	return ckt_ctl_members_check(ret_members, "mine", names);
}

static struct ckt_ctl_members checked;

/* `run` keeps what is said on stderr. */
static const struct comm *given[2];
static u_int counts[2];
static int check_command(const struct ckt_ctl_args *args)
{
	(void)args;
	int status = check(given[0], counts[0], given[1], counts[1], &checked);
	ckt_ctl_members_free(&checked);
	return status;
}

static int judge(
	const struct comm *first, u_int first_count, const struct comm *second, u_int second_count)
{
	given[0] = first;
	given[1] = second;
	counts[0] = first_count;
	counts[1] = second_count;
	return run(check_command, (struct ckt_ctl_args){0}, NULL);
}

static void test_check(void)
{
	const struct comm world[] = {{1, 2, 0, 0, 0}, {1, 2, 1, 0, 0}},
			  own[] = {{2, 2, 1, 0, 0}, {2, 2, 0, 0, 0}};
	const struct comm none[] = {{3, 2, 0, 2, 0}, {4, -1, -1, 0, CKT_NCCL_NONE}};
	begin();
	IS(check(&world[0], 1, &world[1], 1, &checked), CKT_EXIT_DONE);
	IS(checked.count, 2);
	YES(ckt_ctl_members_shared(&checked));
	ckt_ctl_members_free(&checked);
	/* Both ranks in one session, or none came of it, or it has ended. */
	IS(check(own, 2, none, 2, &checked), CKT_EXIT_DONE);
	IS(checked.count, 2);
	NO(ckt_ctl_members_shared(&checked));
	ckt_ctl_members_free(&checked);
	IS(check(NULL, 0, NULL, 0, &checked), CKT_EXIT_DONE);
	NO(ckt_ctl_members_shared(&checked));
	ckt_ctl_members_free(&checked);
	/* A rank that is nowhere. */
	IS(judge(&world[1], 1, own, 2), CKT_EXIT_REFUSED);
	HAS(err,
		"session 0123456789ab is rank 1 of an NCCL communicator with 2 ranks, but no session of the job is rank 0");
	HAS(err, "CRICKET_JOB=mine");
	IS(judge(own, 2, &world[0], 1), CKT_EXIT_REFUSED);
	HAS(err,
		"session ba9876543210 is rank 0 of an NCCL communicator with 2 ranks, but no session of the job is rank 1");
	/* Images that lie. */
	const struct comm three = {1, 3, 1, 0, 0};
	IS(judge(&world[0], 1, &three, 1), CKT_EXIT_REFUSED);
	HAS(err, "has different numbers of ranks");
	IS(judge(&world[1], 1, &world[1], 1), CKT_EXIT_REFUSED);
	HAS(err, "no session of the job is rank 0");
	IS(judge(world, 2, &world[1], 1), CKT_EXIT_REFUSED);
	HAS(err, "has two members with one rank");
}

/* ---- The restore: everything is asked for in its order */

static unsigned preloads[2], tells, ids_made;
static char told_first[2], told_copies[2][16];
static unsigned told_pairs[2];

static bool preload(struct ckt_cursor *args, int fd, xdrproc_t *ret_xdr, void **ret_res)
{
	static ckt_control_restore_res res;
	ckt_control_preload_args asked = {0};
	static _Atomic unsigned copies;
	static char text[16][CKT_SESSION_ID_SIZE + 1];
	(void)fd;
	YES(ckt_net_decode(args, (xdrproc_t)xdr_ckt_control_preload_args, &asked) == 0);
	YES(asked.last ? *asked.copy != 0 : !*asked.copy);
	/* Nobody's last image comes before all have been told. */
	if (asked.last)
		IS(tells, 2);
	preloads[asked.last]++;
	char *name = text[copies++ % 16];
	snprintf(name, CKT_SESSION_ID_SIZE + 1, "%s",
		asked.last               ? asked.copy
			: asked.gpu == 4 ? "0000000000c4"
					 : "0000000000c5");
	res = (ckt_control_restore_res){.result = {CKT_CONTROL_OK, (char *)""}, .session = name};
	xdr_free((xdrproc_t)xdr_ckt_control_preload_args, (char *)&asked);
	*ret_xdr = (xdrproc_t)xdr_ckt_control_restore_res;
	*ret_res = &res;
	return true;
}

static unsigned answer_ids;
static bool make(struct ckt_cursor *args, int fd, xdrproc_t *ret_xdr, void **ret_res)
{
	static ckt_control_nccl_make_res res;
	static ckt_control_nccl_id ids[CKT_CONTROL_NCCL_IDS_MAX];
	ckt_control_nccl_make_args asked = {0};
	(void)fd;
	YES(ckt_net_decode(args, (xdrproc_t)xdr_ckt_control_nccl_make_args, &asked) == 0);
	/* Rank 0 of the world is the first session, on GPU 4. */
	TEXT(asked.copy, "0000000000c4");
	IS(asked.count, 1);
	ids_made += asked.count;
	memset(ids, 0x42, sizeof ids);
	res = (ckt_control_nccl_make_res){
		.result = {CKT_CONTROL_OK, (char *)""}, .ids = {answer_ids, ids}};
	xdr_free((xdrproc_t)xdr_ckt_control_nccl_make_args, (char *)&asked);
	*ret_xdr = (xdrproc_t)xdr_ckt_control_nccl_make_res;
	*ret_res = &res;
	return true;
}

static bool tell(struct ckt_cursor *args, int fd, xdrproc_t *ret_xdr, void **ret_res)
{
	static ckt_control_result res = {CKT_CONTROL_OK, (char *)""};
	ckt_control_nccl_ids_args asked = {0};
	(void)fd;
	YES(ckt_net_decode(args, (xdrproc_t)xdr_ckt_control_nccl_ids_args, &asked) == 0);
	if (tells < 2) {
		snprintf(told_copies[tells], sizeof told_copies[tells], "%s", asked.copy);
		told_pairs[tells] = asked.pairs.pairs_len;
		told_first[tells] = asked.pairs.pairs_len ? asked.pairs.pairs_val[0].id[0] : 0;
		IS(asked.pairs.pairs_val[0].identity[0], 1);
	}
	tells++;
	xdr_free((xdrproc_t)xdr_ckt_control_nccl_ids_args, (char *)&asked);
	*ret_xdr = (xdrproc_t)xdr_ckt_control_result;
	*ret_res = &res;
	return true;
}

static void start(void)
{
	const struct comm world[] = {{1, 2, 0, 0, 0}, {1, 2, 1, 0, 0}};
	begin();
	mkdir(path_in("shares"), 0700);
	image_of(names[0], &world[0], 1);
	image_of(names[1], &world[1], 1);
	write_file(path_in("shares/job.json"),
		"{\"format\":1,\"job\":\"mine\",\"sessions\":[{\"session\":\"0123456789ab\",\"server\":0,\"gpu\":4},"
		"{\"session\":\"ba9876543210\",\"server\":0,\"gpu\":5}]}");
	preloads[0] = preloads[1] = tells = ids_made = 0;
	answer_ids = 1;
	replies[CKT_CONTROL_PRELOAD].answer = preload;
	replies[CKT_CONTROL_NCCL_MAKE].answer = make;
	replies[CKT_CONTROL_NCCL_IDS].answer = tell;
}

static void test_restore(void)
{
	char path[128];
	start();
	snprintf(path, sizeof path, "%s", path_in("shares"));
	IS(run(ckt_ctl_restore, (struct ckt_ctl_args){.job = path}, NULL), CKT_EXIT_DONE);
	IS(preloads[0], 2);
	IS(preloads[1], 2);
	IS(ids_made, 1);
	IS(tells, 2);
	TEXT(told_copies[0], "0000000000c4");
	TEXT(told_copies[1], "0000000000c5");
	YES(told_pairs[0] == 1 && told_pairs[1] == 1);
	YES(told_first[0] == 0x42 && told_first[1] == 0x42);
	/* A server that gives another number of ids. */
	for (unsigned wrong = 0; wrong < 3; wrong += 2) {
		start();
		answer_ids = wrong;
		IS(run(ckt_ctl_restore, (struct ckt_ctl_args){.job = path}, NULL),
			CKT_EXIT_REFUSED);
		HAS(err, "returned another number of IDs for communicators than requested");
		IS(tells, 0);
		IS(preloads[1], 0);
	}
	/* The images do not fit: no server is asked. */
	const struct comm liar = {1, 3, 1, 0, 0};
	start();
	image_of(names[1], &liar, 1);
	IS(run(ckt_ctl_restore, (struct ckt_ctl_args){.job = path}, NULL), CKT_EXIT_REFUSED);
	HAS(err, "do not match: an NCCL communicator");
	IS(preloads[0], 0);
	start();
	image_of(names[1], NULL, 0);
	IS(run(ckt_ctl_restore, (struct ckt_ctl_args){.job = path}, NULL), CKT_EXIT_REFUSED);
	HAS(err, "no session of the job is rank 1");
	IS(preloads[0], 0);
}

/* Memory of other sessions: whose, and at which server that one goes on. */
static const char *places[2], *owner;

static int place_command(const struct ckt_ctl_args *args)
{
	char path[128], message[256];
	struct ckt_ctl_members members = {0};
	ckt_image_device device = {.name = (char *)"GPU"};
	ckt_image_import imports[3] = {0};
	ckt_image image = {.session = (char *)names[1],
		.program_name = (char *)"p",
		.client = (char *)"",
		.build = (char *)"test",
		.owner_name = (char *)"",
		.owner_project = (char *)"",
		.window_base = (uint64_t)2 << 44,
		.window_bytes = (uint64_t)4 << 40,
		.slice_bytes = (uint64_t)4 << 40,
		.devices = {1, &device},
		.shared_imports = {3, imports}};
	(void)args;
	for (unsigned i = 0; i < 3; i++)
		memcpy(imports[i].handle + 8, owner, strlen(owner));
	mkdir(path_in("shares"), 0700);
	snprintf(path, sizeof path, "%s/%s", path_in("shares"), names[1]);
	mkdir(path, 0700);
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	unlinkat(fd, "manifest", 0);
	IS(ckt_image_write(fd, &image, message, sizeof message), 0);
	IS(ckt_ctl_members_read(&members, fd, 1, message, sizeof message), 0);
	close(fd);
	IS(members.need_count, 1); /* each owner once */
	YES(ckt_ctl_members_shared(&members));
	int status = ckt_ctl_members_check(&members, "mine", names);
	if (status == CKT_EXIT_DONE)
		status = ckt_ctl_members_place(&members, "mine", names, places, 2);
	ckt_ctl_members_free(&members);
	IS(members.need_count, 0);
	return status;
}

static void test_place(void)
{
	owner = names[0];
	places[0] = places[1] = NULL;
	IS(run(place_command, (struct ckt_ctl_args){0}, NULL), CKT_EXIT_DONE);
	places[0] = places[1] = "here:1";
	IS(run(place_command, (struct ckt_ctl_args){0}, NULL), CKT_EXIT_DONE);
	places[1] = "there:1";
	YES(run(place_command, (struct ckt_ctl_args){0}, NULL) != CKT_EXIT_DONE);
	HAS(err,
		"share memory or events, which works within one host only, but there:1 and here:1 are two servers");
	owner = "0123456789ac";
	YES(run(place_command, (struct ckt_ctl_args){0}, NULL) != CKT_EXIT_DONE);
	HAS(err, "session 0123456789ac, which the job's images do not include");
}

UNIT_SUITE(job_nccl, {"which fit together", test_check}, {"where memory is shared", test_place},
	{"told before the last image", test_restore})
