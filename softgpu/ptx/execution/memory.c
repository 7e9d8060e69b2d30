/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Translates a device address to memory of this process.  Checks the alignment, the bounds of the
 * space, and the pages that the device may access.
 */
#include "softgpu/memory/memmap.h"
#include "softgpu/ptx/execution/grid.h"
#include "softgpu/ptx/execution/memory.h"
#include "softgpu/ptx/machine.h"
#include "softgpu/ptx/program.h"

static uint8_t *shared(struct ptx_warp *w, unsigned lane, uint64_t address, uint32_t size)
{
	const struct ptx_block *block = w->block;
	uint64_t rank = address >> 24;
	/* another block of the cluster, or this block by its rank */
	if (rank && rank <= block->cluster->n) {
		block = block->cluster->blocks[rank - 1];
		address &= PTX_SHARED_MAX - 1;
	}
	if (address >= PTX_RESERVED_SHARED && address + size <= PTX_SHARED_MAX)
		return block->reserved + (address - PTX_RESERVED_SHARED);
	if (address + size > block->shared_bytes || address + size < address) {
		ckt_ptx_fault(w, lane, CKT_PTX_FAULT_ILLEGAL_ADDRESS,
			"%u bytes at shared address 0x%llx: the block has %u", size,
			(unsigned long long)address, block->shared_bytes);
		return NULL;
	}
	return block->shared + address;
}

static uint8_t *local(struct ptx_warp *w, unsigned lane, uint64_t address, uint32_t size)
{
	if (address + size > w->stack_bytes || address + size < address) {
		ckt_ptx_fault(w, lane, CKT_PTX_FAULT_ILLEGAL_ADDRESS,
			"%u bytes at local address 0x%llx: the thread has %u", size,
			(unsigned long long)address, w->stack_bytes);
		return NULL;
	}
	return ckt_ptx_local(w, lane, (uint32_t)address);
}

static uint8_t *param(
	struct ptx_warp *w, unsigned lane, uint64_t address, uint32_t size, uint8_t access)
{
	uint32_t bytes = w->block->grid->entry->info.param_bytes;
	if (address + size > bytes || address + size < address || (access & CKT_SOFT_PAGE_WRITE)) {
		ckt_ptx_fault(w, lane, CKT_PTX_FAULT_ILLEGAL_ADDRESS,
			"%u bytes at parameter address 0x%llx", size, (unsigned long long)address);
		return NULL;
	}
	return (uint8_t *)w->block->grid->launch->params + address;
}

static uint8_t *global(
	struct ptx_warp *w, unsigned lane, uint64_t address, uint32_t size, uint8_t access)
{
	uint64_t *last = access & CKT_SOFT_PAGE_WRITE ? &w->last_page_write : &w->last_page;
	uint64_t page = (address >> CKT_SOFT_PAGE_SHIFT) + 1;
	/*
	 * An aligned access stays within its page, and most accesses use the page of the previous
	 * one.
	 */
	if (__builtin_expect(page != *last, 0)) {
		if (!ckt_soft_memmap_ok(address, size, access)) {
			ckt_ptx_fault(w, lane, CKT_PTX_FAULT_ILLEGAL_ADDRESS,
				"%s of %u bytes at address 0x%llx",
				access & CKT_SOFT_PAGE_WRITE ? "write" : "read", size,
				(unsigned long long)address);
			return NULL;
		}
		*last = page;
	}
	return (uint8_t *)(uintptr_t)address;
}

/*
 * A 32-bit register holds the lower half of a constant variable's address.  Device memory never
 * lies at such an address.
 */
static uint64_t constant(const struct ptx_warp *w, uint64_t address)
{
	const struct ckt_ptx_module *module = w->frame->function->module;
	for (size_t k = 0; address >> 32 == 0 && k < module->n_globals; k++) {
		const struct ckt_ptx_global *g = &module->globals[k];
		uint32_t offset = (uint32_t)address - (uint32_t)g->address;
		if (g->space == CKT_PTX_SPACE_CONST && offset < g->size_bytes)
			return g->address + offset;
	}
	return address;
}

uint8_t *ckt_ptx_memory(struct ptx_warp *w, unsigned lane, enum ptx_space space, uint64_t address,
	uint32_t size, uint8_t access)
{
	if (__builtin_expect((address & (size - 1)) != 0, 0)) {
		ckt_ptx_fault(w, lane, CKT_PTX_FAULT_MISALIGNED_ADDRESS,
			"%u bytes at misaligned address 0x%llx", size, (unsigned long long)address);
		return NULL;
	}
	switch (space) {
	/*
	 * Addresses in these spaces have 32 bits: the upper bits are ignored, including the window
	 * of a generic address.
	 */
	case SP_SHARED:
		return shared(w, lane, (uint32_t)address, size);
	case SP_LOCAL:
	case SP_PARAM:
		return local(w, lane, (uint32_t)address, size);
	case SP_PARAM_ENTRY:
		return param(w, lane, (uint32_t)address, size, access);
	case SP_CONST:
		address = constant(w, address);
		break;
	default:
		break;
	}
	if (__builtin_expect(address >= PTX_SHARED_WINDOW && address < PTX_CODE_WINDOW, 0)) {
		if (space != SP_GENERIC) {
			ckt_ptx_fault(w, lane, CKT_PTX_FAULT_ILLEGAL_ADDRESS,
				"address 0x%llx is not in the space of the instruction",
				(unsigned long long)address);
			return NULL;
		}
		if (address < PTX_LOCAL_WINDOW)
			return shared(w, lane, address - PTX_SHARED_WINDOW, size);
		if (address < PTX_PARAM_WINDOW)
			return local(w, lane, address - PTX_LOCAL_WINDOW, size);
		return param(w, lane, address - PTX_PARAM_WINDOW, size, access);
	}
	return global(w, lane, address, size, access);
}
