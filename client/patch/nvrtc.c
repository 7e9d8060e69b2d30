/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See nvrtc.h.
 */
#include "client/patch/nvrtc.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "client/patch/patch_log.h"

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
	uintptr_t low = (uintptr_t)from & -(uintptr_t)PAGE,
		  high = ((uintptr_t)from + JUMP_BYTES + PAGE - 1) & -(uintptr_t)PAGE;
	uint64_t target = (uintptr_t)to;
	/* movabs $target, %rax; jmp *%rax */
	uint8_t code[JUMP_BYTES] = {0x48, 0xb8, [10] = 0xff, [11] = 0xe0};

	/* Writable and executable at the same time; redirect.c gives the reason. */
	if (mprotect((void *)low, high - low, PROT_READ | PROT_WRITE | PROT_EXEC) < 0)
		return false;
	memcpy(code + 2, &target, sizeof(target));
	memcpy(from, code, sizeof(code));
	return mprotect((void *)low, high - low, PROT_READ | PROT_EXEC) == 0;
}

/* The protection of an address's page according to the file. */
static int protection(const struct ckt_loaded_object *object, uintptr_t address)
{
	for (unsigned i = 0; i < object->phnum; i++) {
		const ElfW(Phdr) *segment = &object->phdr[i];

		if (segment->p_type == PT_LOAD &&
			address - object->base - segment->p_vaddr < segment->p_memsz)
			return (segment->p_flags & PF_R ? PROT_READ : 0) |
				(segment->p_flags & PF_W ? PROT_WRITE : 0) |
				(segment->p_flags & PF_X ? PROT_EXEC : 0);
	}
	return PROT_READ;
}

/*
 * Makes the symbol undefined: a symbol without a value and a section.  The loader then looks for
 * the symbol elsewhere.
 */
static bool hide(
	const struct ckt_loaded_object *object, const struct ckt_dynamic *dynamic, const char *name)
{
	ElfW(Sym) *symbol = (ElfW(Sym) *)ckt_dynamic_entry(dynamic, name);
	uintptr_t low = (uintptr_t)symbol & -(uintptr_t)PAGE,
		  high = ((uintptr_t)(symbol + 1) + PAGE - 1) & -(uintptr_t)PAGE;

	if (!symbol)
		return true;
	if (mprotect((void *)low, high - low, PROT_READ | PROT_WRITE) < 0)
		return false;
	symbol->st_value = 0;
	symbol->st_shndx = SHN_UNDEF;
	return mprotect((void *)low, high - low, protection(object, (uintptr_t)symbol)) == 0;
}

static bool is_release_of(const struct ckt_dynamic *dynamic, const char *soname)
{
	return strncmp(dynamic->soname, soname, strlen(soname)) == 0;
}

bool ckt_nvrtc_redirect(const struct ckt_loaded_object *object)
{
	static const char *const names[][2] = {
		{"nvrtcGetCUBIN", "nvrtcGetPTX"}, {"nvrtcGetCUBINSize", "nvrtcGetPTXSize"}};
	struct ckt_dynamic dynamic;

	if (!ckt_loaded_object_dynamic(object, &dynamic) || !dynamic.soname)
		return false;
	if (is_release_of(&dynamic, "libnvJitLink.so.")) {
		if (hide(object, &dynamic, "nvJitLinkVersion"))
			ckt_patch_log_debug("hiding %s from libraries that would link machine code "
					    "with it",
				ckt_loaded_object_name(object));
		else
			ckt_patch_log("cannot hide %s: the system refused to change its symbols "
				      "(%s); the soft GPU does not run the machine code that it "
				      "produces",
				ckt_loaded_object_name(object), strerror(errno));
		return true;
	}
	if (!is_release_of(&dynamic, "libnvrtc.so."))
		return false;
	for (unsigned i = 0; i < 2; i++) {
		void *from = ckt_patch_dynamic_symbol(object, &dynamic, names[i][0]),
		     *to = ckt_patch_dynamic_symbol(object, &dynamic, names[i][1]);

		/* NVRTC before 11.1 cannot return machine code. */
		if (from && to && !jump(from, to)) {
			ckt_patch_log(
				"cannot make %s produce PTX: the system refused to change its "
				"code (%s); the soft GPU does not run the machine code that it "
				"produces",
				ckt_loaded_object_name(object), strerror(errno));
			return true;
		}
	}
	ckt_patch_log_debug(
		"%s produces PTX instead of machine code", ckt_loaded_object_name(object));
	return true;
}
