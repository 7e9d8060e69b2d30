/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TOGETHER: the steps by which sessions that share memory leave the GPU and come back at one time; the
 * server leads them (server/daemon/session/together.h).  Threading: control threads.
 */
#pragma once

struct ckt_request;

int ckt_control_together(struct ckt_request *request);
