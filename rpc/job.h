/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The name of a job: sessions of one user that are saved together (docs/control.md, "Jobs").  A
 * hello carries it in a capability with this prefix; the name follows the colon.
 */
#pragma once

#include <stdbool.h>

/* The most that fits into a capability's name; a UUID, which torchrun may choose, has 36. */
enum { CKT_JOB_NAME_MAX = 48 };
#define CKT_JOB_CAPABILITY "job:"

/*
 * Whether the name has 1 to CKT_JOB_NAME_MAX letters, digits or . _ : -, the first a letter or
 * digit.
 */
bool ckt_job_name_good(const char *name);
/* The job that this capability names; NULL if it names none, or an invalid one. */
const char *ckt_job_of_capability(const char *name);
