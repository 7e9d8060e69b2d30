/*
 * The name of a job: sessions of one user that are saved together (docs/control.md, "Jobs").
 *
 * It travels in a hello as a capability of this name, behind the colon the job's.
 */
#pragma once

#include <stdbool.h>

/* What fits into a capability's name; a UUID, which torchrun may choose, has 36. */
enum { CKT_JOB_NAME_MAX = 48 };
#define CKT_JOB_CAPABILITY "job:"

/*
 * At least one letter, digit or one of . _ : - and no more than CKT_JOB_NAME_MAX of them, the first
 * a letter or digit.
 */
bool ckt_job_name_good(const char *name);
/* The job that this capability names; NULL where it names none, or none that is good. */
const char *ckt_job_of_capability(const char *name);
