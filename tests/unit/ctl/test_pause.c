/* SPDX-License-Identifier: Apache-2.0 */
/* ctl/pause.c: cricketctl pause and resume: durations, times of day, and what is asked. */
#include <rpc/rpc.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "ctl/command.h"
#include "ctl/pause.h"
#include "ctl/subcommands.h"
#include "inside.h"
#include "rpc/control.h"

static void test_durations(void)
{
	static const struct {
		const char *text;
		int64_t seconds; /* 0: not valid */
	} cases[] = {{"1", 1}, {"90", 90}, {"90s", 90}, {"30m", 1800}, {"2h", 7200}, {"1d", 86400},
		{"366d", 366 * 86400}, {"367d", 0}, {"0", 0}, {"", 0}, {"-5", 0}, {"+5", 0},
		{" 5", 0}, {"5x", 0}, {"5mm", 0}, {"5 m", 0}, {"1.5h", 0}, {"m", 0},
		{"99999999999999999999", 0}, {"31622400", 31622400}, {"31622401", 0},
		{"9999999h", 0}};
	for (size_t i = 0; i < COUNT(cases); i++) {
		int64_t seconds = 0;
		bool good = ckt_ctl_parse_duration(cases[i].text, &seconds);
		if (!IS(good ? seconds : 0, cases[i].seconds))
			fprintf(stderr, "'%s'\n", cases[i].text);
	}
}

static ckt_control_bytes_res res = {.result = {CKT_CONTROL_OK, (char *)""},
	.session = (char *)"0123456789ab",
	.bytes = 2 << 20};

static int64_t until(void)
{
	ckt_control_pause_args asked = {0};
	YES(decode(seen_count - 1, (xdrproc_t)xdr_ckt_control_pause_args, &asked));
	int64_t value = asked.until;
	IS(asked.deadline_ms, 60000);
	xdr_free((xdrproc_t)xdr_ckt_control_pause_args, (char *)&asked);
	return value;
}

static void test_pause(void)
{
	static const char *const bad_clocks[] = {
		"", "18", "24:00", "12:60", "12:5x", "ab:cd", "123:00", "-1:00"};
	char clock[16];
	time_t now = time(NULL);
	begin();
	replies[CKT_CONTROL_PAUSE] =
		(struct reply){(xdrproc_t)xdr_ckt_control_bytes_res, &res, NULL};
	IS(run(ckt_ctl_pause, (struct ckt_ctl_args){0}, "0123", NULL), CKT_EXIT_DONE);
	IS(until(), 0);
	TEXT(out, "session 0123456789ab paused, 2.0 MiB\n");
	IS(run(ckt_ctl_pause, (struct ckt_ctl_args){.pause_for = "30m"}, "0123", NULL),
		CKT_EXIT_DONE);
	YES(until() >= now + 1800 && until() <= now + 1900);
	HAS(out, ", until ");
	/* Any time of day is within a day. */
	for (int hour = 0; hour < 24; hour += 5) {
		snprintf(clock, sizeof clock, "%02d:30", hour);
		IS(run(ckt_ctl_pause, (struct ckt_ctl_args){.until = clock, .json = true}, "0123",
			   NULL),
			CKT_EXIT_DONE);
		YES(until() > now && until() <= now + 90000);
		IS(until() % 60, 0);
		HAS(out, "\"state\": \"paused\"");
		HAS(out, "\"until\": \"");
	}
	unsigned before = seen_count;
	for (size_t i = 0; i < COUNT(bad_clocks); i++)
		IS(run(ckt_ctl_pause, (struct ckt_ctl_args){.until = bad_clocks[i]}, "0123", NULL),
			CKT_EXIT_USAGE);
	IS(run(ckt_ctl_pause, (struct ckt_ctl_args){.until = "10:00", .pause_for = "1m"}, "0123",
		   NULL),
		CKT_EXIT_USAGE);
	HAS(err, "exclude each other");
	IS(run(ckt_ctl_pause, (struct ckt_ctl_args){.pause_for = "soon"}, "0123", NULL),
		CKT_EXIT_USAGE);
	IS(run(ckt_ctl_pause, (struct ckt_ctl_args){.deadline = "0"}, "0123", NULL),
		CKT_EXIT_USAGE);
	IS(seen_count, before); /* nobody was asked */
}

static void test_resume(void)
{
	begin();
	replies[CKT_CONTROL_UNPAUSE] =
		(struct reply){(xdrproc_t)xdr_ckt_control_bytes_res, &res, NULL};
	IS(run(ckt_ctl_resume, (struct ckt_ctl_args){.json = true}, "0123", NULL), CKT_EXIT_DONE);
	HAS(out, "\"state\": \"resumed\"");
	HAS(out, "\"bytes\": 2097152");
	CU_ASSERT_PTR_NULL(strstr(out, "until"));
	res.result = (ckt_control_result){CKT_CONTROL_REFUSED, (char *)"memory is missing"};
	IS(run(ckt_ctl_resume, (struct ckt_ctl_args){0}, "0123", NULL), CKT_EXIT_REFUSED);
	HAS(err, "memory is missing");
	res.result = (ckt_control_result){CKT_CONTROL_OK, (char *)""};
}

UNIT_SUITE(pause, {"durations", test_durations}, {"pause", test_pause}, {"resume", test_resume})
