/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cricketctl limit: sets, shows and clears limits of owners.
 *
 * Administrators set all; operators those of sessions and tokens of their projects.  What belongs to
 * nobody in particular (a container, a job, a user of this host) is for administrators: with a limit
 * one can stop others.  So is a share-group=: with it one owner reaches another.  Nobody limits oneself, because
 * then one could also lift one's own limit.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/daemon/peer/control.h"
#include "server/daemon/peer/peer.h"
#include "server/daemon/policy/limit_store.h"
#include "server/daemon/policy/policy.h"
#include "server/daemon/session/session.h"

bool ckt_control_is_administrator(const struct ckt_peer *peer)
{
	const struct ckt_control_facts facts = ckt_peer_control_facts(peer, CKT_UID_UNKNOWN);
	return (facts.uid != CKT_UID_UNKNOWN && ckt_uid_is_operator(facts.uid)) ||
		(facts.token && facts.role == CKT_ROLE_ADMINISTRATOR);
}

/* Or what is there of that key: then it is taken away. */
static bool is_about_group(const struct ckt_peer *peer, const struct ckt_limit_rule *rule)
{
	const struct ckt_limit_rule *found =
		ckt_limit_table_find(&peer->server->ledger.limits, rule);
	return (rule->sets | (!rule->sets && found ? found->sets : 0)) & CKT_LIMIT_SETS_SHARE_GROUP;
}

static bool may_limit(const struct ckt_peer *peer, const struct ckt_limit_rule *rule)
{
	const struct ckt_session *session =
		rule->key == CKT_LIMIT_SESSION ? ckt_session_find(peer->server, rule->name) : NULL;
	uint32_t owner = session               ? session->uid
		: rule->key == CKT_LIMIT_TOKEN ? rule->owner
					       : CKT_UID_UNKNOWN;
	return ckt_control_is_administrator(peer) ||
		(owner != CKT_UID_UNKNOWN && !is_about_group(peer, rule) &&
			ckt_peer_control_facts(peer, owner).operates);
}

/* "session=PREFIX ..." with the whole id, where the peer may see one such session. */
static void complete(struct ckt_peer *peer, char *rule, size_t size)
{
	static const char key[] = "session=";
	char prefix[CKT_SESSION_ID_SIZE + 1], rest[CKT_LIMIT_LINE_MAX + 1];
	char buffer[CKT_MESSAGE_MAX];
	ckt_control_result ignored;
	const char *name = rule + strlen(key);
	size_t length = strcspn(name, " \t");
	if (strncmp(rule, key, strlen(key)) != 0 || !length || length >= sizeof prefix)
		return;
	memcpy(prefix, name, length);
	prefix[length] = 0;
	const struct ckt_session *session = ckt_control_select(peer, prefix, &ignored, buffer);
	snprintf(rest, sizeof rest, "%s", name + length);
	if (session)
		snprintf(rule, size, "%s%s%.900s", key, session->id, rest);
}

static void change(struct ckt_peer *peer, const ckt_control_limit_args *args, bool clear)
{
	char line[CKT_LIMIT_LINE_MAX + 32], message[CKT_MESSAGE_MAX / 2] = "",
								      buffer[CKT_MESSAGE_MAX] = "";
	ckt_control_result result = {CKT_CONTROL_OK, buffer};
	struct ckt_limit_rule rule;
	snprintf(line, sizeof line, "%s", args->rule);
	complete(peer, line, sizeof line);
	int error = clear ? ckt_limit_key_parse(line, &rule, message, sizeof message)
			  : ckt_limit_rule_parse(line, &rule, message, sizeof message);
	if (!error && !may_limit(peer, &rule))
		ckt_control_result_set(&result, buffer, CKT_CONTROL_REFUSED,
			"%s=%.200s: limits are set by administrators, and by operators for tokens and sessions of their projects",
			ckt_limit_key_name(rule.key), rule.name);
	else if (!error)
		error = clear ? ckt_limits_clear(peer->server, &rule, message, sizeof message)
			      : ckt_limits_set(peer->server, &rule, message, sizeof message);
	if (error)
		ckt_control_result_set(&result, buffer, CKT_CONTROL_REFUSED, "%s",
			*message ? message : "the rule is empty");
	ckt_peer_reply(peer, (xdrproc_t)xdr_ckt_control_result, &result);
}

void ckt_control_limit_set(struct ckt_peer *peer, void *decoded, int *passed_fd)
{
	(void)passed_fd;
	change(peer, decoded, false);
}

void ckt_control_limit_clear(struct ckt_peer *peer, void *decoded, int *passed_fd)
{
	(void)passed_fd;
	change(peer, decoded, true);
}

/* ---- show */

/* Its own token's or user's, or one that fits a session that it may see. */
static bool concerns(struct ckt_peer *peer, const struct ckt_limit_rule *rule)
{
	bool seen = rule->owner != CKT_UID_UNKNOWN && ckt_peer_may(peer, rule->owner);
	for (const struct ckt_session *s = peer->server->sessions; s && !seen; s = s->next) {
		const struct ckt_limit_subject subject = ckt_lease_subject(s);
		seen = ckt_limit_fits(rule, &subject) && ckt_peer_may_session(peer, s);
	}
	return seen;
}

static void fill(struct ckt_peer *peer, const struct ckt_limit_rule *rule,
	ckt_control_limit *ret_limit, bool all)
{
	uint64_t leased[CKT_DEVICES_MAX] = {0};
	char text[CKT_LIMIT_LINE_MAX + 1];
	ckt_limit_rule_text(rule, text);
	*ret_limit = (ckt_control_limit){.rule = strdup(text),
		.live = rule->live,
		.leased = {0, calloc(CKT_DEVICES_MAX, sizeof(ckt_control_leased))}};
	for (const struct ckt_session *s = peer->server->sessions; s; s = s->next) {
		const struct ckt_limit_subject subject = ckt_lease_subject(s);
		if (!ckt_limit_fits(rule, &subject) || !(all || ckt_peer_may_session(peer, s)))
			continue;
		ret_limit->sessions++;
		for (unsigned gpu = 0; gpu < CKT_DEVICES_MAX; gpu++)
			leased[gpu] += s->lease.holder.leased[gpu];
	}
	for (unsigned gpu = 0; gpu < CKT_DEVICES_MAX && ret_limit->leased.leased_val; gpu++)
		if (leased[gpu])
			ret_limit->leased.leased_val[ret_limit->leased.leased_len++] =
				(ckt_control_leased){gpu, leased[gpu]};
}

void ckt_control_limit_show(struct ckt_peer *peer, void *decoded, int *passed_fd)
{
	const struct ckt_ledger *ledger = &peer->server->ledger;
	ckt_control_budget budgets[CKT_DEVICES_MAX];
	ckt_control_limit *list = calloc(ledger->limits.count + 1, sizeof *list);
	ckt_control_limits_res res = {.limits = {0, list}, .budgets = {0, budgets}};
	bool all = ckt_control_is_administrator(peer);
	(void)decoded, (void)passed_fd;
	for (size_t i = 0; list && i < ledger->limits.count; i++) {
		const struct ckt_limit_rule *rule = &ledger->limits.rules[i];
		if (res.limits.limits_len == CKT_CONTROL_LIMITS_MAX ||
			!(all || concerns(peer, rule)))
			continue;
		ckt_control_limit *limit = &list[res.limits.limits_len];
		fill(peer, rule, limit, all);
		res.limits.limits_len += limit->rule != NULL;
	}
	for (unsigned gpu = 0; all && gpu < peer->server->driver.gpu_count; gpu++)
		if (ledger->budgets[gpu])
			budgets[res.budgets.budgets_len++] = (ckt_control_budget){
				gpu, ledger->budgets[gpu], ckt_ledger_budget_used(ledger, gpu)};
	ckt_peer_reply(peer, (xdrproc_t)xdr_ckt_control_limits_res, &res);
	for (size_t i = 0; list && i < ledger->limits.count; i++) {
		free(list[i].rule);
		free(list[i].leased.leased_val);
	}
	free(list);
}
