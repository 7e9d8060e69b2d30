/* SPDX-License-Identifier: Apache-2.0 */
/* Who opens the files of images for workers. */
#pragma once

struct ckt_broker;
struct ckt_ctl_server;

/*
 * Who opens the files of images for workers, we, with our user's rights
 * (checkpoint/format/broker.h).  The directories go to the server as a chain, for the RESTORE2 or
 * PRELOAD that follows; the broker ends with ckt_broker_stop, after that call's answer.
 */
int ckt_ctl_chain_pass(struct ckt_ctl_server *server, const int *directories, unsigned count,
	struct ckt_broker **ret_broker);
