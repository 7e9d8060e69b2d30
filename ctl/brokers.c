/* SPDX-License-Identifier: Apache-2.0 */
/* Files of images, opened for workers with the rights of our user; see brokers.h. */
#include "ctl/brokers.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "checkpoint/format/broker.h"
#include "ctl/command.h"
#include "ctl/files.h"
#include "ctl/server.h"
#include "rpc/control.h"

enum { ANSWER_MS = 30000 };

int ckt_ctl_chain_pass(struct ckt_ctl_server *server, const int *directories, unsigned count,
	struct ckt_broker **ret_broker)
{
	struct ckt_broker *broker = NULL;
	int fd = -1, status = CKT_EXIT_DONE,
	    result = ckt_broker_start(directories, count, CKT_BROKER_READ, &broker, &fd);
	if (result)
		return ckt_ctl_refuse("restore", strerror(-result));
	/* The server counts the images; one broker opens the files of all of them. */
	for (unsigned i = 0; i < count && status == CKT_EXIT_DONE; i++) {
		ckt_control_image_args call = {.index = i};
		ckt_control_result answer = {0};
		status = ckt_ctl_call(server, CKT_CONTROL_IMAGE,
			(xdrproc_t)xdr_ckt_control_image_args, &call,
			(xdrproc_t)xdr_ckt_control_result, &answer, ANSWER_MS, fd);
		if (status == CKT_EXIT_DONE)
			status = ckt_ctl_result(&answer);
		xdr_free((xdrproc_t)xdr_ckt_control_result, (char *)&answer);
	}
	close(fd);
	if (status == CKT_EXIT_DONE)
		*ret_broker = broker;
	else
		ckt_broker_stop(broker);
	return status;
}
