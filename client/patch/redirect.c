/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the entry points by their contents and overwrites them.  See redirect.h and
 * static_runtimes.h.
 */
#include "client/patch/redirect.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "client/patch/patch_log.h"
#include "cudacommon/static_runtimes.h"

enum {
	PAGE = 4096,
	JUMP_BYTES = 12,
	/*
	 * blocks in one object; a partial link could contain several copies of the runtime's two
	 * blocks
	 */
	MATCHES_MAX = 8,
	ENTRIES_MAX = 512,
};

struct match {
	const struct ckt_static_block *block;
	uintptr_t zero;
};

bool ckt_patch_runtime_recognise(
	struct ckt_runtime *runtime, const struct ckt_loaded_object *object)
{
	struct ckt_dynamic dynamic;

	/*
	 * The preload library has the same SONAME but exports no name of the runtime.  NVIDIA's
	 * runtime opens the driver with dlopen.
	 */
	if (!ckt_loaded_object_dynamic(object, &dynamic) || !dynamic.soname ||
		strcmp(dynamic.soname, "libcudart.so.13") != 0 ||
		!ckt_patch_dynamic_needs(&dynamic, "libcuda.so.1") ||
		!ckt_patch_dynamic_symbol(object, &dynamic, "cudaMalloc"))
		return false;
	runtime->object = *object;
	runtime->dynamic = dynamic;
	runtime->found = true;
	return true;
}

bool ckt_redirect_suspect(const struct ckt_loaded_object *object)
{
	for (unsigned i = 0; i < object->phnum; i++)
		if (object->phdr[i].p_type == PT_TLS)
			return object->phdr[i].p_align >= PAGE && object->phdr[i].p_memsz >= PAGE;
	return false;
}

static uint64_t hash_bytes(uint64_t hash, const uint8_t *bytes, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		hash = (hash ^ bytes[i]) * 0x100000001b3;
	return hash;
}

static bool block_matches(
	const struct ckt_static_block *block, uintptr_t anchor, uintptr_t start, uintptr_t end)
{
	if (anchor - start < block->anchor_offset)
		return false;
	uintptr_t address = anchor - block->anchor_offset - CKT_STATIC_SLOT;
	uint64_t hash = 0xcbf29ce484222325;

	for (unsigned i = 0; i < block->count; i++) {
		address += (uintptr_t)block->slots[i].gap * CKT_STATIC_SLOT;
		if (address > end - CKT_STATIC_SLOT)
			return false;
		hash = hash_bytes(
			hash, (const uint8_t *)address, ckt_static_fixed[block->slots[i].name]);
	}
	return hash == block->hash;
}

/* The bits that are equal in all anchors: one test excludes nearly every slot. */
static void common_bits(uint64_t *ret_mask, uint64_t *ret_value)
{
	uint64_t differing = 0;

	for (unsigned i = 1; i < ckt_static_anchors_count; i++)
		differing |= ckt_static_anchors[i][0] ^ ckt_static_anchors[0][0];
	*ret_mask = ~differing;
	*ret_value = ckt_static_anchors[0][0] & ~differing;
}

static unsigned find_in_segment(
	uintptr_t start, uintptr_t end, struct match *matches, unsigned count)
{
	uint64_t mask, value;

	common_bits(&mask, &value);
	if (end - start < 2 * CKT_STATIC_SLOT)
		return count;
	for (uintptr_t at = (start + CKT_STATIC_SLOT - 1) & -(uintptr_t)CKT_STATIC_SLOT;
		at <= end - CKT_STATIC_SLOT; at += CKT_STATIC_SLOT) {
		const uint64_t *words = (const uint64_t *)at;

		if ((words[0] & mask) != value)
			continue;
		for (unsigned i = 0; i < ckt_static_blocks_count && count < MATCHES_MAX; i++) {
			const struct ckt_static_block *block = &ckt_static_blocks[i];
			const uint64_t *anchor = ckt_static_anchors[block->anchor];

			if (words[0] == anchor[0] && words[1] == anchor[1] &&
				block_matches(block, at, start, end)) {
				matches[count++] = (struct match){block, at - block->anchor_offset};
				break;
			}
		}
	}
	return count;
}

static unsigned find_blocks(const struct ckt_loaded_object *object, struct match *matches)
{
	unsigned count = 0;

	for (unsigned i = 0; i < object->phnum; i++) {
		const ElfW(Phdr) *segment = &object->phdr[i];

		/* Execute-only text cannot be read; CUDA programs are not linked that way. */
		if (segment->p_type == PT_LOAD &&
			(segment->p_flags & (PF_X | PF_R)) == (PF_X | PF_R))
			count = find_in_segment(object->base + segment->p_vaddr,
				object->base + segment->p_vaddr + segment->p_filesz, matches,
				count);
	}
	return count;
}

int ckt_redirect_write(const struct ckt_runtime *runtime, unsigned major,
	const struct ckt_redirect_entry *entries, unsigned count)
{
	uintptr_t low = UINTPTR_MAX, high = 0;

	for (unsigned i = 0; i < count; i++) {
		low = entries[i].address < low ? entries[i].address : low;
		high = entries[i].address + CKT_STATIC_SLOT > high
			? entries[i].address + CKT_STATIC_SLOT
			: high;
	}
	if (!count)
		return 0;
	low &= -(uintptr_t)PAGE;
	high = (high + PAGE - 1) & -(uintptr_t)PAGE;
	/*
	 * Makes the text writable and executable at the same time, and then removes the write
	 * right.  SELinux's execmod could deny the second step of the other order (writable, then
	 * executable again).  The program's text would then not be executable.
	 */
	if (mprotect((void *)low, high - low, PROT_READ | PROT_WRITE | PROT_EXEC) < 0)
		return -errno;
	for (unsigned i = 0; i < count; i++) {
		uint64_t target = (uintptr_t)ckt_redirect_target(
			runtime, major, ckt_static_names[entries[i].name], entries[i].name);
		/* movabs $target, %rax; jmp *%rax */
		uint8_t jump[JUMP_BYTES] = {0x48, 0xb8, [10] = 0xff, [11] = 0xe0};

		memcpy(jump + 2, &target, sizeof(target));
		memcpy((void *)entries[i].address, jump, sizeof(jump));
	}
	return mprotect((void *)low, high - low, PROT_READ | PROT_EXEC) < 0 ? -errno : 0;
}

void ckt_redirect_say_refused(const struct ckt_loaded_object *object, int error)
{
	ckt_patch_log(
		"cannot redirect the CUDA runtime in %s: the system refused to change its code "
		"(%s); its CUDA calls will fail. Allow execmod for it, or link the program "
		"with -cudart shared",
		ckt_loaded_object_name(object), strerror(-error));
}

static unsigned block_entries(const struct match *match, struct ckt_redirect_entry *entries)
{
	const struct ckt_static_block *block = match->block;
	uintptr_t address = match->zero - CKT_STATIC_SLOT;
	unsigned count = 0;

	for (unsigned i = 0; i < block->count && count < ENTRIES_MAX - 1; i++) {
		address += (uintptr_t)block->slots[i].gap * CKT_STATIC_SLOT;
		entries[count++] = (struct ckt_redirect_entry){address, block->slots[i].name};
	}
	/*
	 * Name 0 is before the head block, outside of the blocks.  In NVIDIA's shared library it is
	 * elsewhere, and no code reaches it.
	 */
	uintptr_t export = match->zero - ckt_static_export_table_bytes;
	if (block->is_head &&
		memcmp((const void *)export, ckt_static_export_table_prefix,
			CKT_STATIC_EXPORT_PREFIX) == 0)
		entries[count++] = (struct ckt_redirect_entry){export, 0};
	return count;
}

static enum ckt_redirect_result redirect_matches(const struct ckt_loaded_object *object,
	const struct ckt_runtime *runtime, const struct match *matches, unsigned count)
{
	struct ckt_redirect_entry entries[ENTRIES_MAX];
	const char *releases = "";
	unsigned total = 0;

	for (unsigned i = 0; i < count; i++) {
		unsigned entries_count = block_entries(&matches[i], entries);
		int error = ckt_redirect_write(
			runtime, matches[i].block->major, entries, entries_count);

		if (error < 0) {
			ckt_redirect_say_refused(object, error);
			return CKT_REDIRECT_REFUSED;
		}
		total += entries_count;
		if (!matches[i].block->is_head)
			releases = matches[i].block->releases;
	}
	ckt_patch_log_debug("redirected %u entry points in %s (static CUDA runtime %s)", total,
		ckt_loaded_object_name(object), releases);
	return CKT_REDIRECT_DONE;
}

/*
 * Whether the object contains a text that every release has.  In an object that passed
 * ckt_redirect_suspect() the text means a static runtime.
 */
static bool holds_runtime_texts(const struct ckt_loaded_object *object)
{
	static const char text[] = "cudaErrorCudartUnloading";

	for (unsigned i = 0; i < object->phnum; i++) {
		const ElfW(Phdr) *segment = &object->phdr[i];

		if (segment->p_type == PT_LOAD && (segment->p_flags & (PF_R | PF_W)) == PF_R &&
			memmem((const void *)(object->base + segment->p_vaddr), segment->p_filesz,
				text, sizeof(text)))
			return true;
	}
	return false;
}

enum ckt_redirect_result ckt_redirect_object(
	const struct ckt_loaded_object *object, const struct ckt_runtime *runtime)
{
	struct match matches[MATCHES_MAX];
	unsigned heads = 0;

	if (!runtime->found)
		return CKT_REDIRECT_NONE;
	enum ckt_redirect_result result = ckt_redirect_shared(object, runtime);
	if (result != CKT_REDIRECT_NONE)
		return result;
	unsigned count = find_blocks(object, matches);
	for (unsigned i = 0; i < count; i++)
		heads += matches[i].block->is_head;
	/*
	 * Half a runtime must not be redirected: a kernel that is registered in one runtime cannot
	 * be launched in the other.
	 */
	if (heads && 2 * heads == count)
		return redirect_matches(object, runtime, matches, count);
	result = ckt_redirect_by_symbols(object, runtime);
	if (result != CKT_REDIRECT_NONE || !holds_runtime_texts(object))
		return result;
	ckt_patch_log("%s holds a static CUDA runtime that this Cricket does not know (it knows "
		      "NVIDIA's releases %s); its CUDA calls will fail with cudaErrorNotSupported. "
		      "Link the program with -cudart shared, or keep its symbol table",
		ckt_loaded_object_name(object), ckt_static_releases);
	return CKT_REDIRECT_UNKNOWN;
}
