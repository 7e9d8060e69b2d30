/* ctl/job_restore.c: every session to its server and GPU, all or none. */
#include <string.h>
#include <sys/stat.h>

#include "inside.h"
#include "job.h"

static ckt_control_restore_res restored;
static unsigned restores, kills, gpus[8];

static bool restore(struct ckt_cursor *args, int fd, xdrproc_t *ret_xdr, void **ret_res)
{
	ckt_control_restore2_args asked = {0};
	(void)fd;
	YES(ckt_net_decode(args, (xdrproc_t)xdr_ckt_control_restore2_args, &asked) == 0);
	gpus[restores % 8] = (unsigned)asked.gpu;
	xdr_free((xdrproc_t)xdr_ckt_control_restore2_args, (char *)&asked);
	/* The second one fails where the test says so. */
	bool bad = restored.result.status && restores == 1;
	static ckt_control_restore_res good;
	good = (ckt_control_restore_res){.result = {CKT_CONTROL_OK, (char *)""}, .session = (char *)"0123456789ab"};
	restores++;
	*ret_xdr = (xdrproc_t)xdr_ckt_control_restore_res;
	*ret_res = bad ? &restored : &good;
	return true;
}

static bool end_one(struct ckt_cursor *args, int fd, xdrproc_t *ret_xdr, void **ret_res)
{
	static ckt_control_result good = {CKT_CONTROL_OK, (char *)""};
	(void)args, (void)fd;
	kills++;
	*ret_xdr = (xdrproc_t)xdr_ckt_control_result;
	*ret_res = &good;
	return true;
}

static void start(void)
{
	begin();
	mkdir(path_in("job"), 0700);
	write_file(path_in("job/job.json"), "{\"format\":1,\"job\":\"mine\",\"sessions\":[{\"session\":\"0123456789ab\",\"server\":0,\"gpu\":4},"
					    "{\"session\":\"ba9876543210\",\"server\":3,\"gpu\":4}]}");
	if (!exists(path_in("job/0123456789ab"))) {
		image_make(path_in("job/0123456789ab"), 1, "");
		image_make(path_in("job/ba9876543210"), 2, "");
	}
	restored = (ckt_control_restore_res){.session = (char *)""};
	restores = kills = 0;
	replies[CKT_CONTROL_RESTORE2].answer = restore;
	replies[CKT_CONTROL_KILL].answer = end_one;
}

static void test_all(void)
{
	char path[128];
	start();
	snprintf(path, sizeof path, "%s", path_in("job"));
	IS(run(ckt_ctl_restore, (struct ckt_ctl_args){.job = path}, NULL), CKT_EXIT_DONE);
	HAS(out, "job mine: 2 sessions restored from");
	IS(restores, 2);
	IS(gpus[0] + gpus[1], 8);
	start();
	IS(run(ckt_ctl_restore, (struct ckt_ctl_args){.job = path, .gpu = "1,0", .json = true}, NULL), CKT_EXIT_DONE);
	IS(gpus[0] + gpus[1], 1);
	HAS(out, "\"job\": \"mine\"");
}

static void test_none(void)
{
	char path[128];
	start();
	snprintf(path, sizeof path, "%s", path_in("job"));
	restored.result = (ckt_control_result){CKT_CONTROL_REFUSED, (char *)"no such GPU"};
	IS(run(ckt_ctl_restore, (struct ckt_ctl_args){.job = path}, NULL), CKT_EXIT_REFUSED);
	HAS(err, "no such GPU");
	HAS(err, "job mine: 1 of 2 sessions could not be restored, so none is");
	IS(kills, 1);
	YES(exists(path_in("job/job.json")));
	/* Nothing is asked where that is no job, or the line is wrong. */
	start();
	IS(run(ckt_ctl_restore, (struct ckt_ctl_args){.job = directory}, NULL), CKT_EXIT_REFUSED);
	IS(run(ckt_ctl_restore, (struct ckt_ctl_args){.job = path, .gpu = "1,x"}, NULL), CKT_EXIT_USAGE);
	IS(run(ckt_ctl_restore, (struct ckt_ctl_args){.job = path, .with_client = true}, NULL), CKT_EXIT_USAGE);
	IS(restores, 0);
}

UNIT_SUITE(job_restore, {"all", test_all}, {"none", test_none})
