/* cricketctl restore DIR */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ctl.h"

static int parse_gpu(const char *text, int *ret_gpu)
{
	char *end;
	*ret_gpu = -1;
	if (!text)
		return CKT_EXIT_DONE;
	long gpu = strtol(text, &end, 10);
	if (*text < '0' || *text > '9' || *end || gpu >= CKT_DEVICES_MAX) {
		fprintf(stderr, "cricketctl: --gpu: '%s' is not valid: write the driver's number of a GPU, see cricketctl info\n", text);
		return CKT_EXIT_USAGE;
	}
	*ret_gpu = (int)gpu;
	return CKT_EXIT_DONE;
}

int ckt_ctl_restore(const struct ckt_ctl_args *args)
{
	struct ckt_ctl_server server;
	const char *path = args->words[0];
	ckt_control_restore_args call;
	ckt_control_restore_res res = {0};
	int status = parse_gpu(args->gpu, &call.gpu);
	if (status == CKT_EXIT_DONE)
		status = ckt_ctl_connect_unix(args, &server);
	if (status != CKT_EXIT_DONE)
		return status;
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0) {
		fprintf(stderr, "cricketctl: %s: %s\n", path, errno == ENOTDIR ? "is no directory, and an image is one" : strerror(errno));
		ckt_ctl_disconnect(&server);
		return CKT_EXIT_REFUSED;
	}
	status = ckt_ctl_call(&server, CKT_CONTROL_RESTORE, (xdrproc_t)xdr_ckt_control_restore_args, &call,
			      (xdrproc_t)xdr_ckt_control_restore_res, &res, -1, fd);
	close(fd);
	ckt_ctl_disconnect(&server);
	if (status != CKT_EXIT_DONE)
		return status;
	status = ckt_ctl_result(&res.result);
	if (status == CKT_EXIT_DONE && args->json) {
		status = ckt_ctl_json_print(json_pack("{s:o}", "session", ckt_ctl_json_text(res.session)));
	} else if (status == CKT_EXIT_DONE) {
		printf("session %s restored from %s\n", res.session, path);
		status = ckt_ctl_flush();
	}
	xdr_free((xdrproc_t)xdr_ckt_control_restore_res, (char *)&res);
	return status;
}
