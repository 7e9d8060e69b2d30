/*
 * See nvrtc.h.
 */
#include "client/patch/nvrtc.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "client/patch/say.h"

enum { PAGE = 4096, JUMP_BYTES = 12 };

bool ckt_nvrtc_wanted(char *const *environment)
{
	for (; environment && *environment; environment++)
		if (strcmp(*environment, "CRICKET_SOFT_PTX=1") == 0)
			return true;
	return false;
}

static bool jump(void *from, const void *to)
{
	uintptr_t low = (uintptr_t)from & -(uintptr_t)PAGE, high = ((uintptr_t)from + JUMP_BYTES + PAGE - 1) & -(uintptr_t)PAGE;
	uint64_t target = (uintptr_t)to;
	uint8_t code[JUMP_BYTES] = {0x48, 0xb8, [10] = 0xff, [11] = 0xe0};	/* movabs $target, %rax; jmp *%rax */

	/* Writable and executable at once: redirect.c says why. */
	if (mprotect((void *)low, high - low, PROT_READ | PROT_WRITE | PROT_EXEC) < 0)
		return false;
	memcpy(code + 2, &target, sizeof(target));
	memcpy(from, code, sizeof(code));
	return mprotect((void *)low, high - low, PROT_READ | PROT_EXEC) == 0;
}

bool ckt_nvrtc_redirect(const struct ckt_object *object)
{
	static const char *const names[][2] = {{"nvrtcGetCUBIN", "nvrtcGetPTX"}, {"nvrtcGetCUBINSize", "nvrtcGetPTXSize"}};
	static const char soname[] = "libnvrtc.so.";
	struct ckt_dynamic dynamic;

	if (!ckt_object_dynamic(object, &dynamic) || !dynamic.soname || strncmp(dynamic.soname, soname, sizeof(soname) - 1) != 0)
		return false;
	for (unsigned i = 0; i < 2; i++) {
		void *from = ckt_dynamic_symbol(object, &dynamic, names[i][0]), *to = ckt_dynamic_symbol(object, &dynamic, names[i][1]);

		/* NVRTC before 11.1 has no machine code to give. */
		if (from && to && !jump(from, to)) {
			ckt_say("cannot make %s give PTX: changing its code was refused (%s); the soft GPU does not run the machine code that it gives",
				ckt_object_name(object), strerror(errno));
			return true;
		}
	}
	ckt_say_debug("%s gives PTX where machine code is asked for", ckt_object_name(object));
	return true;
}
