/* SPDX-License-Identifier: Apache-2.0 */
/* The session's settings for libraries; see environment.h. */
#include "server/worker/libs/environment.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "rpc/library_environment.h"
#include "base/log.h"
#include "server/worker/libs/genuine.h"

static ckt_setting list[CKT_SETTINGS_MAX];
static ckt_environment_args taken = {.settings = {.settings_val = list}};

static ckt_setting *find(const char *name)
{
	for (unsigned i = 0; i < taken.settings.settings_len; i++)
		if (!strcmp(list[i].name, name))
			return &list[i];
	return NULL;
}

static int check(const ckt_setting *setting)
{
	if (ckt_library_environment_allows(setting->name, setting->value))
		return 0;
	ckt_warning("environment variable %.64s for libraries: the variable or a character of "
		    "its value is not allowed",
		setting->name);
	return -EINVAL;
}

static int check_time(const ckt_setting *setting)
{
	const ckt_setting *before = find(setting->name);
	if (before && !strcmp(before->value, setting->value))
		return 0;
	return ckt_genuine_at(0) ? -EBUSY : 0;
}

static int set(const ckt_setting *setting)
{
	ckt_setting *entry = find(setting->name);
	char *value = strdup(setting->value), *name = entry ? entry->name : strdup(setting->name);
	/* The list has room for as many names as are allowed. */
	if (!value || !name || setenv(setting->name, setting->value, 1)) {
		free(value);
		if (!entry)
			free(name);
		return -ENOMEM;
	}
	if (!entry)
		entry = &list[taken.settings.settings_len++];
	else
		free(entry->value);
	*entry = (ckt_setting){name, value};
	return 0;
}

int ckt_worker_environment_take(const ckt_environment_args *args)
{
	int error = 0;
	for (unsigned i = 0; i < args->settings.settings_len && !error; i++)
		error = check(&args->settings.settings_val[i]);
	for (unsigned i = 0; i < args->settings.settings_len && !error; i++)
		error = check_time(&args->settings.settings_val[i]);
	for (unsigned i = 0; i < args->settings.settings_len && !error; i++)
		error = set(&args->settings.settings_val[i]);
	return error;
}

const ckt_environment_args *ckt_worker_environment_settings(void)
{
	return &taken;
}
