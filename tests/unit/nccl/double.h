/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A double of the genuine NCCL: it writes down what it is called with, and answers as it is told.
 * A communicator is a struct of its own, whose number stands for it in what is written.
 */
#pragma once

#include "server/worker/libs/nccl/nccl.h"
#include "tests/unit/suite.h"

/* Puts it where the worker has the genuine library, and forgets what was written. */
void double_begin(void);
/* What was called since it was asked last, a line each; valid until then. */
const char *double_said(void);
/* What a function answers from now on, by its name; ncclSuccess: what it should. */
void double_answer(const char *function, ncclResult_t status);
/* Calls of that function wait; NULL: those that wait go on. */
void double_hold(const char *function);
/* Until that many wait there. */
void double_await(unsigned count);
/* How many communicators there are, and how many calls were made on one that had ended. */
unsigned double_living(void), double_astray(void);
/*
 * The config that the last communicator was made with; size 0: none was given.  Its names are
 * copies.
 */
extern struct ckt_nccl_config double_config;
/* Communicators made so far whose config says that they do not block. */
extern _Atomic unsigned double_without_blocking;
extern char double_net[64], double_name[64];
/* What ncclCommGetAsyncError says of a communicator. */
extern _Atomic int double_state;
