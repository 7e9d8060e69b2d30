/* SPDX-License-Identifier: Apache-2.0 */
/* The subcommands of cricketctl; see command.h.  Each has a file of its name. */
#pragma once

struct ckt_ctl_args;

int ckt_ctl_place(const struct ckt_ctl_args *args);
int ckt_ctl_ps(const struct ckt_ctl_args *args);
int ckt_ctl_info(const struct ckt_ctl_args *args);
int ckt_ctl_kill(const struct ckt_ctl_args *args);
int ckt_ctl_stats(const struct ckt_ctl_args *args);
int ckt_ctl_top(const struct ckt_ctl_args *args);
int ckt_ctl_trace(const struct ckt_ctl_args *args);
int ckt_ctl_doctor(const struct ckt_ctl_args *args);
int ckt_ctl_checkpoint(const struct ckt_ctl_args *args);
int ckt_ctl_restore(const struct ckt_ctl_args *args);
int ckt_ctl_redirect(const struct ckt_ctl_args *args);
int ckt_ctl_pause(const struct ckt_ctl_args *args);
int ckt_ctl_swap(const struct ckt_ctl_args *args);
int ckt_ctl_resume(const struct ckt_ctl_args *args);
int ckt_ctl_decide(const struct ckt_ctl_args *args);
int ckt_ctl_events(const struct ckt_ctl_args *args);
int ckt_ctl_migrate(const struct ckt_ctl_args *args);
int ckt_ctl_drain(const struct ckt_ctl_args *args);
int ckt_ctl_image(const struct ckt_ctl_args *args);
int ckt_ctl_image_key(const struct ckt_ctl_args *args);
int ckt_ctl_limit(const struct ckt_ctl_args *args);
int ckt_ctl_cdi(const struct ckt_ctl_args *args);
int ckt_ctl_token(const struct ckt_ctl_args *args);
int ckt_ctl_certificate(const struct ckt_ctl_args *args);
