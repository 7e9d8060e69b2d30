/* SPDX-License-Identifier: Apache-2.0 */
/* ctl/token.c: cricketctl token add, list and revoke. */
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "ctl/subcommands.h"
#include "inside.h"
#include "rpc/token_file.h"

static struct ckt_ctl_args args_of(char *file)
{
	return (struct ckt_ctl_args){.tokens = file};
}

static void test_life(void)
{
	char file[128];
	struct ckt_token token = {0};
	struct ckt_token_verifier verifier;
	struct ckt_token_file tokens;
	snprintf(file, sizeof file, "%s", path_in("tokens"));
	begin();
	IS(run(ckt_ctl_token, args_of(file), "list", NULL), CKT_EXIT_REFUSED);
	HAS(err, "No such file");
	IS(run(ckt_ctl_token, args_of(file), "add", "alice", NULL), CKT_EXIT_DONE);
	HAS(err, "token 'alice' is in");
	/* One line: the token and nothing else, for which the file holds the verifier. */
	token.size_bytes = strlen(out) - 1;
	IS(token.size_bytes, 68);
	IS(out[token.size_bytes], '\n');
	memcpy(token.bytes, out, token.size_bytes);
	ckt_token_verifier_make(&token, &verifier);
	MUST(ckt_token_file_read(file, &tokens, err, sizeof err), 0);
	IS(memcmp(&tokens.entries[0].verifier, &verifier, sizeof verifier), 0);
	ckt_token_file_free(&tokens);
	CU_ASSERT_PTR_NULL(strstr(read_file(file), "ckt-"));
	IS(run(ckt_ctl_token, args_of(file), "add", "alice", NULL), CKT_EXIT_REFUSED);
	HAS(err, "has a token 'alice' already");
	TEXT(out, "");
	struct ckt_ctl_args bob = args_of(file);
	bob.role = "operator";
	bob.project = "vision,speech";
	bob.max_sessions = "4";
	bob.session_memory = "8G";
	bob.session_host_memory = "1G";
	bob.expires = "2099-01-31";
	bob.json = true;
	IS(run(ckt_ctl_token, bob, "add", "bob", NULL), CKT_EXIT_DONE);
	json_t *json = json_loads(out, 0, NULL);
	TEXT(json_string_value(json_object_get(json, "name")), "bob");
	IS(strlen(json_string_value(json_object_get(json, "token"))), 68);
	json_decref(json);
	IS(run(ckt_ctl_token, bob, "list", NULL), CKT_EXIT_DONE);
	json = json_loads(out, 0, NULL);
	json_t *list = json_object_get(json, "tokens"), *second = json_array_get(list, 1);
	IS(json_array_size(list), 2);
	TEXT(json_string_value(json_object_get(second, "role")), "operator");
	IS(json_array_size(json_object_get(second, "projects")), 2);
	IS(json_integer_value(json_object_get(second, "session_memory_bytes")), 8ll << 30);
	TEXT(json_string_value(json_object_get(second, "expires")), "2099-01-31T00:00:00Z");
	NO(json_boolean_value(json_object_get(second, "expired")));
	json_decref(json);
	IS(run(ckt_ctl_token, args_of(file), "list", NULL), CKT_EXIT_DONE);
	HAS(out, "alice                user");
	HAS(out, "vision,speech");
	HAS(out, "8.0 GiB");
	CU_ASSERT_PTR_NULL(strstr(out, "hash"));
	IS(run(ckt_ctl_token, args_of(file), "revoke", "alice", NULL), CKT_EXIT_DONE);
	HAS(err, "is revoked");
	IS(run(ckt_ctl_token, args_of(file), "revoke", "alice", NULL), CKT_EXIT_REFUSED);
	HAS(err, "has no token 'alice'");
	unlink(file);
	IS(seen_count, 0); /* no server is asked */
}

static void test_usage(void)
{
	char file[128];
	const struct {
		struct ckt_ctl_args args;
		const char *says;
	} rows[] = {
		{{.role = "root"}, "write user, operator or administrator"},
		{{.role = "operator"}, "name them with --project"},
		{{.project = "A"}, "up to 8 names"},
		{{.project = "a,b,c,d,e,f,g,h,i"}, "up to 8 names"},
		{{.project = "a234567890123456789012345678901234567"}, "up to 8 names"},
		{{.max_sessions = "0"}, "above 0"},
		{{.max_sessions = "many"}, "above 0"},
		{{.session_memory = "x"}, "a size such as"},
		{{.session_host_memory = "-1"}, "a size such as"},
		{{.expires = "2001-01-01"}, "a day to come"},
		{{.expires = "soon"}, "a day to come"},
	};
	snprintf(file, sizeof file, "%s", path_in("no-tokens"));
	begin();
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct ckt_ctl_args args = rows[i].args;
		args.tokens = file;
		IS(run(ckt_ctl_token, args, "add", "alice", NULL), CKT_EXIT_USAGE);
		HAS(err, rows[i].says);
	}
	IS(run(ckt_ctl_token, args_of(file), "add", "Alice", NULL), CKT_EXIT_USAGE);
	IS(run(ckt_ctl_token, args_of(file), "add", NULL), CKT_EXIT_USAGE);
	IS(run(ckt_ctl_token, args_of(file), "list", "alice", NULL), CKT_EXIT_USAGE);
	IS(run(ckt_ctl_token, args_of(file), "revoke", "/", NULL), CKT_EXIT_USAGE);
	IS(run(ckt_ctl_token, args_of(file), "burn", "alice", NULL), CKT_EXIT_USAGE);
	HAS(err, "write add NAME, list or revoke NAME");
	NO(exists(file));
}

UNIT_SUITE(token, {"life", test_life}, {"usage", test_usage})
