/* SPDX-License-Identifier: Apache-2.0 */
/* Memory at an address of our choice; see fixed_address.h. */
#include "server/worker/memory/fixed_address.h"

#include <stdbool.h>
#include <sys/mman.h>

/* ThreadSanitizer makes of a place that it needs itself one at address 0, which root is given. */
#ifdef __SANITIZE_THREAD__
static const bool anywhere = true;
#else
static const bool anywhere = false;
#endif

void *ckt_fixed_address_map(uint64_t wish, size_t size_bytes, int flags)
{
	void *at = MAP_FAILED;
	flags |= MAP_PRIVATE | MAP_ANONYMOUS;
	/* A kernel that does not know the flag takes the address for a hint: as good. */
	if (!anywhere)
		at = mmap((void *)(uintptr_t)wish, size_bytes, PROT_READ | PROT_WRITE,
			flags | MAP_FIXED_NOREPLACE, -1, 0);
	if (at == MAP_FAILED)
		at = mmap(NULL, size_bytes, PROT_READ | PROT_WRITE, flags, -1, 0);
	return at == MAP_FAILED ? NULL : at;
}
