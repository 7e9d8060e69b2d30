/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The findings of cricketctl doctor.  doctor.c looks at the host and the server, doctor_program.c
 * at the program.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

enum ckt_finding { CKT_FINDING_OK, CKT_FINDING_WARNING, CKT_FINDING_FAIL };

struct ckt_doctor {
	bool json;
	json_t *checks;
	unsigned failures;
};

/* name: stable, for scripts.  remedy: NULL if there is nothing to do. */
void ckt_ctl_doctor_note(struct ckt_doctor *doctor, enum ckt_finding finding, const char *name,
	const char *remedy, const char *format, ...) __attribute__((format(printf, 5, 6)));
/*
 * The path of libcricket-client.so, without links: of CRICKET_LIBDIR if it is set, else beside this
 * program as installed or built.  False: there is none.
 */
bool ckt_ctl_doctor_find_library(char ret_path[4096]);
void ckt_ctl_doctor_program(struct ckt_doctor *doctor, const char *command);
