/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See takeover.h.
 */
#include "client/patch/takeover.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>

#include "client/patch/libraries.h"
#include "client/patch/patch_log.h"

enum { PAGE = 4096, JUMP_BYTES = 5, STUB_BYTES = 16, SLOT = 16 };

struct taken {
	const char *soname;
	_Atomic(void *) handle; /* the shim, after the first call of a function */
};

/* The stubs jump through the first word. */
struct slot {
	_Atomic(void *) target;
	/* in the object's own strings, which stay mapped while the function can be called */
	const char *name;
	struct taken *library;
	void *address;
};

/* One mapping near the object: slots, and then the stubs on pages of their own. */
struct region {
	struct taken *library;
	struct slot *slots;
	uint8_t *stubs;
	size_t slots_bytes, stubs_bytes;
};

void ckt_takeover_entry(void);
void *ckt_takeover_resolve(struct slot *slot) __attribute__((used, visibility("hidden")));

/*
 * %r11 is the slot.  This code saves all registers that can hold arguments.  At the end %r11 holds
 * the address, because callers do not expect %r11 to be kept.
 */
__asm__(".text\n"
	".globl ckt_takeover_entry\n"
	".hidden ckt_takeover_entry\n"
	".type ckt_takeover_entry, @function\n"
	".p2align 4\n"
	"ckt_takeover_entry:\n"
	"	.cfi_startproc\n"
	"	pushq	%rdi\n"
	"	pushq	%rsi\n"
	"	pushq	%rdx\n"
	"	pushq	%rcx\n"
	"	pushq	%r8\n"
	"	pushq	%r9\n"
	"	pushq	%rax\n"
	"	subq	$128, %rsp\n"
	"	.cfi_adjust_cfa_offset 184\n"
	"	movups	%xmm0, (%rsp)\n"
	"	movups	%xmm1, 16(%rsp)\n"
	"	movups	%xmm2, 32(%rsp)\n"
	"	movups	%xmm3, 48(%rsp)\n"
	"	movups	%xmm4, 64(%rsp)\n"
	"	movups	%xmm5, 80(%rsp)\n"
	"	movups	%xmm6, 96(%rsp)\n"
	"	movups	%xmm7, 112(%rsp)\n"
	"	movq	%r11, %rdi\n"
	"	call	ckt_takeover_resolve\n"
	"	movq	%rax, %r11\n"
	"	movups	(%rsp), %xmm0\n"
	"	movups	16(%rsp), %xmm1\n"
	"	movups	32(%rsp), %xmm2\n"
	"	movups	48(%rsp), %xmm3\n"
	"	movups	64(%rsp), %xmm4\n"
	"	movups	80(%rsp), %xmm5\n"
	"	movups	96(%rsp), %xmm6\n"
	"	movups	112(%rsp), %xmm7\n"
	"	addq	$128, %rsp\n"
	"	popq	%rax\n"
	"	popq	%r9\n"
	"	popq	%r8\n"
	"	popq	%rcx\n"
	"	popq	%rdx\n"
	"	popq	%rsi\n"
	"	popq	%rdi\n"
	"	.cfi_adjust_cfa_offset -184\n"
	"	jmp	*%r11\n"
	"	.cfi_endproc\n"
	".size ckt_takeover_entry, . - ckt_takeover_entry\n");

/* Functions that return the "not supported" status of their library. */
#define REFUSALS(X) X(1) X(3) X(9) X(10) X(15) X(16) X(999) X(3000)
#define REFUSE(status)                   \
	static int refuse_##status(void) \
	{                                \
		return status;           \
	}
#define REFUSAL(status) {status, refuse_##status},
REFUSALS(REFUSE)

static void *refusal(int wanted)
{
	static const struct {
		int status;
		int (*function)(void);
	} refusals[] = {REFUSALS(REFUSAL)};

	for (unsigned i = 1; i < sizeof(refusals) / sizeof(refusals[0]); i++)
		if (refusals[i].status == wanted)
			return (void *)refusals[i].function;
	return (void *)refusals[0].function;
}

/* Tries all names of the function: slots with the same address are adjacent. */
static void *find_function(void *handle, const struct slot *slot)
{
	for (const struct slot *one = slot; one->address == slot->address; one++) {
		void *function = dlsym(handle, one->name);

		if (function)
			return function;
	}
	return NULL;
}

void *ckt_takeover_resolve(struct slot *slot)
{
	struct taken *library = slot->library;
	int saved = errno;
	void *handle = atomic_load(&library->handle), *function = NULL;

	if (!handle) {
		const char *shim = ckt_patch_library_shim(library->soname);

		handle = shim ? dlopen(shim, RTLD_NOW | RTLD_LOCAL) : NULL;
		if (handle)
			atomic_store(&library->handle, handle);
		else
			ckt_patch_log("cannot open %s in place of %s: %s", shim ? shim : "the shim",
				library->soname, dlerror());
	}
	if (handle)
		function = find_function(handle, slot);
	if (!function) {
		if (handle)
			ckt_patch_log("%s of %s is not supported", slot->name, library->soname);
		function = refusal(ckt_patch_library_refusal(library->soname));
	}
	atomic_store(&slot->target, function);
	errno = saved;
	return function;
}

/* ---- Taking over */

static bool is_text(const struct ckt_loaded_object *object, uintptr_t address)
{
	for (unsigned i = 0; i < object->phnum; i++) {
		const ElfW(Phdr) *segment = &object->phdr[i];
		uintptr_t start = object->base + segment->p_vaddr;

		if (segment->p_type == PT_LOAD && (segment->p_flags & PF_X) && address >= start &&
			segment->p_filesz >= JUMP_BYTES &&
			address - start <= segment->p_filesz - JUMP_BYTES)
			return true;
	}
	return false;
}

/*
 * True for a function that has room for the jump.  A function at a multiple of 16 has the room up
 * to the next multiple, even if it is shorter.
 */
static bool is_entry(const struct ckt_loaded_object *object, const ElfW(Sym) * symbol)
{
	return symbol->st_shndx != SHN_UNDEF && ELF64_ST_TYPE(symbol->st_info) == STT_FUNC &&
		(symbol->st_size >= JUMP_BYTES || symbol->st_value % SLOT == 0) &&
		is_text(object, object->base + symbol->st_value);
}

/* The range of symbols in the hash table: all exported symbols are adjacent. */
static void exported(const struct ckt_dynamic *dynamic, uint32_t *ret_first, uint32_t *ret_end)
{
	const uint32_t *table = dynamic->gnu_hash, *buckets, *chains;
	uint32_t last = 0;

	*ret_first = *ret_end = 0;
	if (!table || !table[0])
		return;
	buckets = table + 4 + 2 * (size_t)table[2]; /* Bloom words have 64 bits */
	chains = buckets + table[0];
	for (uint32_t i = 0; i < table[0]; i++)
		last = buckets[i] > last ? buckets[i] : last;
	if (last < table[1])
		return;
	while (!(chains[last - table[1]] & 1))
		last++;
	*ret_first = table[1];
	*ret_end = last + 1;
}

/*
 * Sorts by address.  A heap sort, because libc's sort may allocate and libc's constructor has not
 * run.
 */
static void sift(struct slot *slots, size_t root, size_t count)
{
	for (size_t child; (child = 2 * root + 1) < count; root = child) {
		if (child + 1 < count && slots[child].address < slots[child + 1].address)
			child++;
		if (slots[root].address >= slots[child].address)
			return;
		struct slot held = slots[root];
		slots[root] = slots[child];
		slots[child] = held;
	}
}

static void sort(struct slot *slots, size_t count)
{
	for (size_t i = count / 2; i-- > 0;)
		sift(slots, i, count);
	for (size_t end = count; end-- > 1;) {
		struct slot held = slots[0];
		slots[0] = slots[end];
		slots[end] = held;
		sift(slots, 0, end);
	}
}

static void extent(const struct ckt_loaded_object *object, uintptr_t *ret_low, uintptr_t *ret_high)
{
	*ret_low = UINTPTR_MAX;
	*ret_high = 0;
	for (unsigned i = 0; i < object->phnum; i++) {
		uintptr_t start = object->base + object->phdr[i].p_vaddr,
			  end = start + object->phdr[i].p_memsz;

		if (object->phdr[i].p_type != PT_LOAD)
			continue;
		*ret_low = start < *ret_low ? start : *ret_low;
		*ret_high = end > *ret_high ? end : *ret_high;
	}
}

/*
 * Maps memory that a 32-bit jump can reach from the whole object: tries places below and above the
 * object.
 */
static uint8_t *map_near(const struct ckt_loaded_object *object, size_t bytes)
{
	enum { STEP = 1 << 20, STEPS = 1024 };
	uintptr_t low, high;

	extent(object, &low, &high);
	low &= -(uintptr_t)PAGE;
	high = (high + PAGE - 1) & -(uintptr_t)PAGE;
	for (uintptr_t i = 0; i < STEPS; i++)
		for (unsigned is_above = 0; is_above < 2; is_above++) {
			uintptr_t place = is_above ? high + i * STEP : low - bytes - i * STEP;
			uintptr_t reach = is_above ? place + bytes - low : high - place;

			if (place >= high + (uintptr_t)STEP * STEPS ||
				(!is_above && place >= low) || reach > INT32_MAX)
				continue;
			void *got = mmap((void *)place, bytes, PROT_READ | PROT_WRITE,
				MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
			if (got == (void *)place)
				return got;
			if (got != MAP_FAILED)
				munmap(got, bytes);
		}
	return NULL;
}

static bool make_region(const struct ckt_loaded_object *object, const char *soname, uint32_t count,
	struct region *ret_region)
{
	/* one more slot ends the names of the last function */
	size_t head = sizeof(struct taken) + sizeof(struct slot);
	size_t slots_bytes = (head + count * sizeof(struct slot) + PAGE - 1) & -(size_t)PAGE;
	size_t stubs_bytes = ((size_t)count * STUB_BYTES + PAGE - 1) & -(size_t)PAGE;
	uint8_t *memory = map_near(object, slots_bytes + stubs_bytes);

	if (!memory)
		return false;
	*ret_region = (struct region){.library = (struct taken *)memory,
		.slots = (struct slot *)(memory + sizeof(struct taken)),
		.stubs = memory + slots_bytes,
		.slots_bytes = slots_bytes,
		.stubs_bytes = stubs_bytes};
	ret_region->library->soname = soname;
	return true;
}

static uint32_t fill_slots(const struct ckt_loaded_object *object,
	const struct ckt_dynamic *dynamic, struct region *region, uint32_t first, uint32_t end)
{
	uint32_t count = 0;

	for (uint32_t i = first; i < end; i++) {
		const ElfW(Sym) *symbol = &dynamic->symbols[i];

		if (!is_entry(object, symbol))
			continue;
		struct slot *slot = &region->slots[count++];
		atomic_init(&slot->target, (void *)ckt_takeover_entry);
		slot->name = dynamic->strings + symbol->st_name;
		slot->library = region->library;
		slot->address = (void *)(object->base + symbol->st_value);
	}
	sort(region->slots, count);
	return count;
}

/* lea slot(%rip), %r11; jmp *(%r11) */
static void write_stub(uint8_t *stub, const struct slot *slot)
{
	uint8_t code[] = {0x4c, 0x8d, 0x1d, 0, 0, 0, 0, 0x41, 0xff, 0x23};
	int32_t distance = (int32_t)((intptr_t)slot - (intptr_t)(stub + 7));

	memcpy(code + 3, &distance, sizeof(distance));
	memcpy(stub, code, sizeof(code));
}

static void write_jump(uint8_t *entry, const uint8_t *stub)
{
	int32_t distance = (int32_t)((intptr_t)stub - (intptr_t)(entry + JUMP_BYTES));

	entry[0] = 0xe9;
	memcpy(entry + 1, &distance, sizeof(distance));
}

/* Changes all functions or none; 0 or -errno. */
static int overwrite(const struct region *region, uint32_t count)
{
	uintptr_t low = (uintptr_t)region->slots[0].address & -(uintptr_t)PAGE;
	uintptr_t high = ((uintptr_t)region->slots[count - 1].address + JUMP_BYTES + PAGE - 1) &
		-(uintptr_t)PAGE;

	for (uint32_t i = 0; i < count; i++)
		write_stub(region->stubs + (size_t)i * STUB_BYTES, &region->slots[i]);
	if (mprotect(region->stubs, region->stubs_bytes, PROT_READ | PROT_EXEC) < 0)
		return -errno;
	/* Writable and executable at the same time; redirect.c gives the reason. */
	if (mprotect((void *)low, high - low, PROT_READ | PROT_WRITE | PROT_EXEC) < 0)
		return -errno;
	/* If a function has several names, its first slot is used. */
	for (uint32_t i = 0; i < count; i++)
		if (i == 0 || region->slots[i].address != region->slots[i - 1].address)
			write_jump(
				region->slots[i].address, region->stubs + (size_t)i * STUB_BYTES);
	/* If the write right cannot be removed, it stays; the jumps still work. */
	mprotect((void *)low, high - low, PROT_READ | PROT_EXEC);
	return 0;
}

bool ckt_takeover_object(const struct ckt_loaded_object *object)
{
	struct ckt_dynamic dynamic;
	struct region region;
	uint32_t first, end, count;
	int error = -ENOMEM;

	if (!ckt_loaded_object_dynamic(object, &dynamic) || !dynamic.soname)
		return false;
	exported(&dynamic, &first, &end);
	if (first == end)
		return false;
	if (make_region(object, dynamic.soname, end - first, &region)) {
		count = fill_slots(object, &dynamic, &region, first, end);
		error = count ? overwrite(&region, count) : 0;
		if (error < 0 || !count)
			munmap(region.library, region.slots_bytes + region.stubs_bytes);
		if (!error && count)
			ckt_patch_log_debug("%u functions of %s lead to its shim", count,
				ckt_loaded_object_name(object));
		if (!error)
			return count > 0;
	}
	ckt_patch_log("cannot replace %s by its shim: the system refused to change its code (%s); "
		      "its calls do not reach the server. Start the program with cricket-run",
		ckt_loaded_object_name(object), strerror(-error));
	return false;
}
