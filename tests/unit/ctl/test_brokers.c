/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ctl/brokers.c: a chain goes to the server as brokers, which open the files of its directories,
 * each by its number.
 */
#include <errno.h>
#include <fcntl.h>
#include <rpc/rpc.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <unistd.h>

#include "checkpoint/format/broker.h"
#include "ctl/brokers.h"
#include "ctl/command.h"
#include "ctl/server.h"
#include "inside.h"
#include "rpc/control.h"
#include "rpc/net.h"
#include "rpc/wire.h"

static ckt_control_result answer = {CKT_CONTROL_OK, (char *)""};
static unsigned asked, refuse_at;

/* What a worker would do with it. */
static bool image(struct ckt_cursor *args, int fd, xdrproc_t *ret_xdr, void **ret_res)
{
	ckt_control_image_args call = {0};
	YES(ckt_net_decode(args, (xdrproc_t)xdr_ckt_control_image_args, &call) == 0);
	IS(call.index, asked);
	YES(ckt_broker_is(fd));
	int manifest = ckt_broker_open(fd, CKT_BROKER_READ, call.index, CKT_BROKER_MANIFEST);
	YES(manifest >= 0);
	char byte = 0;
	IS(read(manifest, &byte, 1), 1);
	IS(byte, 'a' + (int)call.index);
	close(manifest);
	IS(ckt_broker_open(fd, CKT_BROKER_MAKE, call.index, 0), -EPERM);
	answer.status = ++asked == refuse_at ? CKT_CONTROL_REFUSED : CKT_CONTROL_OK;
	*ret_xdr = (xdrproc_t)xdr_ckt_control_result;
	*ret_res = &answer;
	return true;
}

static void test_chain_pass(void)
{
	int dirs[2];
	struct ckt_ctl_args args = {.server = address};
	struct ckt_ctl_server server;
	begin();
	IS(mkdir(path_in("broker-one"), 0700) || mkdir(path_in("broker-two"), 0700), 0);
	write_file(path_in("broker-one/manifest"), "a");
	write_file(path_in("broker-two/manifest"), "b");
	dirs[0] = open(path_in("broker-one"), O_RDONLY | O_DIRECTORY);
	dirs[1] = open(path_in("broker-two"), O_RDONLY | O_DIRECTORY);
	replies[CKT_CONTROL_IMAGE].answer = image;
	for (refuse_at = 0; refuse_at < 3; refuse_at++) {
		struct ckt_broker *broker = NULL;
		asked = 0;
		MUST(ckt_ctl_connect(&args, &server), CKT_EXIT_DONE);
		IS(ckt_ctl_chain_pass(&server, dirs, 2, &broker),
			refuse_at ? CKT_EXIT_REFUSED : CKT_EXIT_DONE);
		IS(asked, refuse_at ? refuse_at : 2);
		IS(broker != NULL, !refuse_at);
		ckt_broker_stop(broker);
		ckt_ctl_disconnect(&server);
	}
	close(dirs[0]);
	close(dirs[1]);
}

UNIT_SUITE(brokers, {"chain pass", test_chain_pass})
