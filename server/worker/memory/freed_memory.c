/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that warm workers give up; see freed_memory.h. */
#include "server/worker/memory/freed_memory.h"

#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "rpc/group.h"
#include "server/worker/session/group.h"

bool ckt_freed_memory_ask(unsigned gpu)
{
	const struct ckt_group_name name = ckt_group_memory();
	char answer = CKT_GROUP_NOBODY;
	int connection = ckt_group_ask_now(&name, gpu);
	if (connection < 0)
		return false;
	bool freed = recv(connection, &answer, sizeof answer, 0) == sizeof answer &&
		answer == CKT_GROUP_FREED;
	close(connection);
	if (freed)
		ckt_debug("GPU %u was short of memory: its warm workers have ended", gpu);
	return freed;
}
