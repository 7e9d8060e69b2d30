/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The session's GPUs as the only ones of the worker's process, in the session's order: a library
 * inside the worker counts devices by itself, begins with device 0 on a thread of its own, and
 * tells the program's calls numbers.  All of that is then the session's, and other sessions' GPUs
 * are out of its reach.
 *
 *	operator's CUDA_VISIBLE_DEVICES (or all) --the server's numbers of the session's GPUs--> CUDA_VISIBLE_DEVICES, read by cuInit
 *
 * A session that has all of the server's GPUs in their order has the environment as it is.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/*
 * gpus: numbers among the `total` GPUs that the operator's variable leaves; total 0: unknown, and
 * nothing is done.  True: the driver numbers the session's GPUs from 0 now.  Precondition: the
 * driver is not open.
 */
bool ckt_worker_devices_narrow(const unsigned *gpus, unsigned count, unsigned total);
