/* The hash kernel and its launch; see hash.h. */
#include "checkpoint/kernels/hash.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "server/worker/driver.h"
#include "server/worker/module/module_loading.h"
#include "server/worker/worker.h"

enum { THREADS = 256 };

/*
 * A block of THREADS threads takes one item.  Thread t folds the 16-byte vectors t, t + 256, ...
 * into its two sums, four loads in flight; t below size % 16 takes a byte of the rest.  The
 * threads' sums, mixed with their numbers, are added up.
 */
static const char kernel[] =
	".version 6.4\n"
	".target sm_70\n"
	".address_size 64\n"
	".visible .entry ckt_hash(.param .u64 table, .param .u64 out, .param .u64 key0, .param .u64 key1, .param .u64 key2, .param .u64 key3)\n"
	"{\n"
	"\t.reg .pred %p; .reg .b32 %r<16>; .reg .b64 %d<64>;\n"
	"\t.shared .align 16 .b8 parts[6144];\n"
	"\tld.param.u64 %d1, [table]; ld.param.u64 %d2, [out];\n"
	"\tld.param.u64 %d3, [key0]; ld.param.u64 %d4, [key1]; ld.param.u64 %d5, [key2]; ld.param.u64 %d6, [key3];\n"
	"\tmov.u32 %r1, %ctaid.x; mov.u32 %r2, %tid.x;\n"
	"\tmul.wide.u32 %d7, %r1, 16; add.u64 %d7, %d1, %d7; ld.global.v2.u64 {%d8, %d9}, [%d7];\n"
	"\tshr.u64 %d10, %d9, 4; cvt.u64.u32 %d11, %r2; shl.b64 %d12, %d11, 4; add.u64 %d12, %d8, %d12;\n"
	"\tmov.u64 %d13, %d5; mov.u64 %d14, %d6; mov.u64 %d15, 0;\n"
	"FOUR:\n"
	"\tadd.u64 %d16, %d11, 768; setp.ge.u64 %p, %d16, %d10; @%p bra ONE;\n"
	"\tld.global.v2.u64 {%d20, %d21}, [%d12+0];\n"
	"\tld.global.v2.u64 {%d22, %d23}, [%d12+4096];\n"
	"\tld.global.v2.u64 {%d24, %d25}, [%d12+8192];\n"
	"\tld.global.v2.u64 {%d26, %d27}, [%d12+12288];\n"
	"\txor.b64 %d40, %d20, %d3; xor.b64 %d41, %d21, %d13; mul.lo.u64 %d42, %d40, %d41; mul.hi.u64 %d43, %d40, %d41; xor.b64 %d13, %d42, %d43;\n"
	"\txor.b64 %d44, %d21, %d4; xor.b64 %d45, %d20, %d14; mul.lo.u64 %d46, %d44, %d45; mul.hi.u64 %d47, %d44, %d45; xor.b64 %d14, %d46, %d47;\n"
	"\tor.b64 %d15, %d15, %d20; or.b64 %d15, %d15, %d21;\n"
	"\txor.b64 %d40, %d22, %d3; xor.b64 %d41, %d23, %d13; mul.lo.u64 %d42, %d40, %d41; mul.hi.u64 %d43, %d40, %d41; xor.b64 %d13, %d42, %d43;\n"
	"\txor.b64 %d44, %d23, %d4; xor.b64 %d45, %d22, %d14; mul.lo.u64 %d46, %d44, %d45; mul.hi.u64 %d47, %d44, %d45; xor.b64 %d14, %d46, %d47;\n"
	"\tor.b64 %d15, %d15, %d22; or.b64 %d15, %d15, %d23;\n"
	"\txor.b64 %d40, %d24, %d3; xor.b64 %d41, %d25, %d13; mul.lo.u64 %d42, %d40, %d41; mul.hi.u64 %d43, %d40, %d41; xor.b64 %d13, %d42, %d43;\n"
	"\txor.b64 %d44, %d25, %d4; xor.b64 %d45, %d24, %d14; mul.lo.u64 %d46, %d44, %d45; mul.hi.u64 %d47, %d44, %d45; xor.b64 %d14, %d46, %d47;\n"
	"\tor.b64 %d15, %d15, %d24; or.b64 %d15, %d15, %d25;\n"
	"\txor.b64 %d40, %d26, %d3; xor.b64 %d41, %d27, %d13; mul.lo.u64 %d42, %d40, %d41; mul.hi.u64 %d43, %d40, %d41; xor.b64 %d13, %d42, %d43;\n"
	"\txor.b64 %d44, %d27, %d4; xor.b64 %d45, %d26, %d14; mul.lo.u64 %d46, %d44, %d45; mul.hi.u64 %d47, %d44, %d45; xor.b64 %d14, %d46, %d47;\n"
	"\tor.b64 %d15, %d15, %d26; or.b64 %d15, %d15, %d27;\n"
	"\tadd.u64 %d11, %d11, 1024; add.u64 %d12, %d12, 16384; bra FOUR;\n"
	"ONE:\n"
	"\tsetp.ge.u64 %p, %d11, %d10; @%p bra BYTES;\n"
	"\tld.global.v2.u64 {%d20, %d21}, [%d12];\n"
	"\txor.b64 %d40, %d20, %d3; xor.b64 %d41, %d21, %d13; mul.lo.u64 %d42, %d40, %d41; mul.hi.u64 %d43, %d40, %d41; xor.b64 %d13, %d42, %d43;\n"
	"\txor.b64 %d44, %d21, %d4; xor.b64 %d45, %d20, %d14; mul.lo.u64 %d46, %d44, %d45; mul.hi.u64 %d47, %d44, %d45; xor.b64 %d14, %d46, %d47;\n"
	"\tor.b64 %d15, %d15, %d20; or.b64 %d15, %d15, %d21;\n"
	"\tadd.u64 %d11, %d11, 256; add.u64 %d12, %d12, 4096; bra ONE;\n"
	"BYTES:\n"
	"\tand.b64 %d17, %d9, 15; cvt.u64.u32 %d18, %r2; setp.ge.u64 %p, %d18, %d17; @%p bra PART;\n"
	"\tshl.b64 %d19, %d10, 4; add.u64 %d19, %d19, %d8; add.u64 %d19, %d19, %d18; ld.global.u8 %d20, [%d19]; mov.u64 %d21, 0;\n"
	"\txor.b64 %d40, %d20, %d3; xor.b64 %d41, %d21, %d13; mul.lo.u64 %d42, %d40, %d41; mul.hi.u64 %d43, %d40, %d41; xor.b64 %d13, %d42, %d43;\n"
	"\txor.b64 %d44, %d21, %d4; xor.b64 %d45, %d20, %d14; mul.lo.u64 %d46, %d44, %d45; mul.hi.u64 %d47, %d44, %d45; xor.b64 %d14, %d46, %d47;\n"
	"\tor.b64 %d15, %d15, %d20; or.b64 %d15, %d15, %d21;\n"
	"PART:\n"
	"\tcvt.u64.u32 %d30, %r2; add.u64 %d30, %d30, 1; mul.lo.u64 %d31, %d30, 0x9e3779b97f4a7c15; mul.lo.u64 %d32, %d30, 0xc2b2ae3d27d4eb4f;\n"
	"\tadd.u64 %d31, %d31, %d6; xor.b64 %d31, %d31, %d13; or.b64 %d33, %d5, 1; mul.lo.u64 %d42, %d31, %d33; mul.hi.u64 %d43, %d31, %d33; xor.b64 %d13, %d42, %d43;\n"
	"\tadd.u64 %d32, %d32, %d5; xor.b64 %d32, %d32, %d14; or.b64 %d33, %d6, 1; mul.lo.u64 %d42, %d32, %d33; mul.hi.u64 %d43, %d32, %d33; xor.b64 %d14, %d42, %d43;\n"
	"\tmov.u32 %r3, parts; mad.lo.u32 %r4, %r2, 8, %r3;\n"
	"\tst.shared.u64 [%r4], %d13; st.shared.u64 [%r4+2048], %d14; st.shared.u64 [%r4+4096], %d15;\n"
	"\tbar.sync 0;\n"
	"\tsetp.ge.u32 %p, %r2, 3; @%p bra DONE;\n"
	"\tmad.lo.u32 %r4, %r2, 2048, %r3; mov.u32 %r5, 0; mov.u64 %d50, 0; mov.u64 %d51, 0;\n"
	"SUM:\n"
	"\tld.shared.u64 %d52, [%r4]; add.u64 %d50, %d50, %d52; or.b64 %d51, %d51, %d52;\n"
	"\tadd.u32 %r4, %r4, 8; add.u32 %r5, %r5, 1; setp.lt.u32 %p, %r5, 256; @%p bra SUM;\n"
	"\tsetp.eq.u32 %p, %r2, 2; selp.b64 %d50, %d51, %d50, %p;\n"
	"\tmul.wide.u32 %d53, %r1, 24; mul.wide.u32 %d54, %r2, 8; add.u64 %d53, %d53, %d54; add.u64 %d53, %d53, %d2; st.global.u64 [%d53], %d50;\n"
	"DONE:\n"
	"\tret;\n"
	"}\n";

static struct {
	bool reserved;
	CUfunction functions[CKT_DEVICES_MAX];
} hashes;

void ckt_hash_reserve(struct ckt_worker *worker)
{
	CUdeviceptr at = 0;
	(void)worker;
	if (ckt_driver.cuMemAddressReserve(&at, CKT_SCRATCH_SIZE, 0, CKT_SCRATCH_BASE, 0) ||
		at != CKT_SCRATCH_BASE) {
		if (at)
			ckt_driver.cuMemAddressFree(at, CKT_SCRATCH_SIZE);
		ckt_warning("no addresses for hashes: images are always whole");
		return;
	}
	hashes.reserved = true;
}

void ckt_hash_load(struct ckt_worker *worker, unsigned device)
{
	CUmodule module;
	if (!hashes.reserved || worker->old_image)
		return;
	CUresult result = ckt_driver.cuModuleLoadDataEx(&module, kernel, 0, NULL, NULL);
	if (!result)
		result = ckt_loading_whole(module);
	if (!result)
		result = ckt_driver.cuModuleGetFunction(
			&hashes.functions[device], module, "ckt_hash");
	if (result)
		ckt_warning(
			"the hash kernel cannot be loaded (CUDA error %d): images are always whole",
			result);
}

static CUresult run(CUfunction function, uint64_t scratch, const uint64_t key[4],
	const struct ckt_hash_item *items, size_t count, struct ckt_hash_value *ret_values)
{
	uint64_t table = scratch, out = scratch + count * sizeof *items, k[4];
	memcpy(k, key, sizeof k);
	void *params[] = {&table, &out, &k[0], &k[1], &k[2], &k[3]};
	CUresult result = ckt_driver.cuMemcpyHtoD_v2(table, items, count * sizeof *items);
	if (!result)
		result = ckt_driver.cuLaunchKernel(
			function, (unsigned)count, 1, 1, THREADS, 1, 1, 0, NULL, params, NULL);
	if (!result)
		result = ckt_driver.cuMemcpyDtoH_v2(ret_values, out, count * sizeof *ret_values);
	return result;
}

CUresult ckt_hash_run(struct ckt_worker *worker, unsigned device, const uint64_t key[4],
	const struct ckt_hash_item *items, size_t count, struct ckt_hash_value *ret_values)
{
	struct ckt_object *context = ckt_objects_find(&worker->objects, ckt_handle_primary(device));
	if (!count)
		return CUDA_SUCCESS;
	if (!context || !hashes.functions[device])
		return CKT_INTERNAL_NOT_SUPPORTED;
	uint64_t size = count * (sizeof *items + sizeof *ret_values), piece;
	size = (size + CKT_MEMORY_EXTENT - 1) / CKT_MEMORY_EXTENT * CKT_MEMORY_EXTENT;
	CUresult result = ckt_driver.cuCtxSetCurrent(context->real);
	if (!result)
		result = ckt_window_map(worker, device, CKT_SCRATCH_BASE, size, &piece);
	if (result)
		return result;
	result = run(hashes.functions[device], CKT_SCRATCH_BASE, key, items, count, ret_values);
	ckt_window_unmap(CKT_SCRATCH_BASE, size, piece);
	return result;
}
