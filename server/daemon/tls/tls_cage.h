/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a child that carries a TLS connection may still do: read, write and poll its two sockets,
 * take memory, and end.  Any other system call ends it.
 */
#pragma once

#include <sys/types.h>

/*
 * uid and gid: to become, 0: stay who we are.  There is no way back.  0 or -errno, and then the
 * process must end.
 */
int ckt_tls_cage_enter(uid_t uid, gid_t gid);
