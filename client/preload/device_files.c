/* SPDX-License-Identifier: Apache-2.0 */
/* See device_files.h. */
#include "client/preload/device_files.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sysmacros.h>
#include <unistd.h>

enum { NVIDIA_MAJOR = 195, CONTROL_MINOR = 255 };

_Static_assert(sizeof(struct stat) == sizeof(struct stat64), "stat and stat64 are one");

/* The minor number of one of the two files, or -1 for any other name. */
static int minor_of(const char *path)
{
	static const char prefix[] = "/dev/nvidia";

	if (!path || strncmp(path, prefix, sizeof(prefix) - 1) != 0)
		return -1;
	path += sizeof(prefix) - 1;
	return strcmp(path, "0") == 0 ? 0 : strcmp(path, "ctl") == 0 ? CONTROL_MINOR : -1;
}

int ckt_preload_files_stat(const char *path, struct stat *ret_status)
{
	int saved = errno, result = stat(path, ret_status);
	int minor = result && errno == ENOENT ? minor_of(path) : -1;

	if (minor < 0)
		return result;
	*ret_status = (struct stat){.st_mode = S_IFCHR | 0666,
		.st_nlink = 1,
		.st_rdev = makedev(NVIDIA_MAJOR, (unsigned)minor)};
	errno = saved;
	return 0;
}

int ckt_preload_files_xstat(int version, const char *path, struct stat *ret_status)
{
	(void)version; /* the supported ABIs have only one version */
	return ckt_preload_files_stat(path, ret_status);
}

static void *ours(const char *name)
{
	if (strcmp(name, "stat") == 0 || strcmp(name, "stat64") == 0)
		return (void *)ckt_preload_files_stat;
	if (strcmp(name, "__xstat") == 0 || strcmp(name, "__xstat64") == 0)
		return (void *)ckt_preload_files_xstat;
	return NULL;
}

/* The loader may have made a slot of the global offset table read-only. */
static bool is_sealed(const struct ckt_loaded_object *object, uintptr_t address)
{
	for (unsigned i = 0; i < object->phnum; i++) {
		uintptr_t start = object->base + object->phdr[i].p_vaddr;

		if (object->phdr[i].p_type == PT_GNU_RELRO && address >= start &&
			address < start + object->phdr[i].p_memsz)
			return true;
	}
	return false;
}

static bool set_slot(const struct ckt_loaded_object *object, void **slot, void *target)
{
	uintptr_t page_bytes = (uintptr_t)sysconf(_SC_PAGESIZE),
		  page = (uintptr_t)slot & -page_bytes;
	bool sealed = is_sealed(object, (uintptr_t)slot);

	if (sealed && mprotect((void *)page, page_bytes, PROT_READ | PROT_WRITE) < 0)
		return false;
	__atomic_store_n(slot, target, __ATOMIC_RELAXED);
	if (sealed)
		mprotect((void *)page, page_bytes, PROT_READ);
	return true;
}

unsigned ckt_preload_files_redirect(const struct ckt_loaded_object *object)
{
	/* Two tables: called functions, and pointers to functions. */
	uintptr_t tables[2] = {0};
	size_t sizes[2] = {0};
	unsigned changed = 0;
	struct ckt_dynamic dynamic;

	if (!ckt_loaded_object_dynamic(object, &dynamic))
		return 0;
	for (const ElfW(Dyn) *entry = dynamic.entries; entry->d_tag != DT_NULL; entry++) {
		uintptr_t address = entry->d_un.d_ptr < object->base
			? entry->d_un.d_ptr + object->base
			: entry->d_un.d_ptr;

		if (entry->d_tag == DT_JMPREL)
			tables[0] = address;
		else if (entry->d_tag == DT_PLTRELSZ)
			sizes[0] = entry->d_un.d_val;
		else if (entry->d_tag == DT_RELA)
			tables[1] = address;
		else if (entry->d_tag == DT_RELASZ)
			sizes[1] = entry->d_un.d_val;
	}
	for (unsigned i = 0; i < 2; i++)
		for (const ElfW(Rela) *rela = (const ElfW(Rela) *)tables[i];
			rela && rela < (const ElfW(Rela) *)(tables[i] + sizes[i]); rela++) {
			const ElfW(Sym) *symbol = &dynamic.symbols[ELF64_R_SYM(rela->r_info)];
			/*
			 * Considers only symbols that other objects define.  A relocation without a
			 * symbol has symbol number 0.
			 */
			void *target = ELF64_R_SYM(rela->r_info) && symbol->st_shndx == SHN_UNDEF
				? ours(dynamic.strings + symbol->st_name)
				: NULL;

			if (target &&
				set_slot(object, (void **)(object->base + rela->r_offset), target))
				changed++;
		}
	return changed;
}

static int visit(struct dl_phdr_info *info, size_t size, void *data)
{
	struct ckt_loaded_object object;
	const char *slash;

	(void)size, (void)data;
	ckt_loaded_object_from_info(&object, info);
	slash = strrchr(object.path, '/');
	if (!object.path[0] || strncmp(slash ? slash + 1 : object.path, "libpython", 9) == 0)
		ckt_preload_files_redirect(&object);
	return 0;
}

void ckt_preload_files_redirect_python(void)
{
	dl_iterate_phdr(visit, NULL);
}
