/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A kernel as text, for what loads modules itself: multiply(data, n) by the variable `scale`, which
 * is 3.
 */
#pragma once

static const char ptx[] = ".version 6.5\n"
			  ".target sm_75\n"
			  ".address_size 64\n"
			  ".visible .global .align 4 .u32 scale = 3;\n"
			  ".visible .entry multiply(.param .u64 data, .param .u32 n)\n"
			  "{\n"
			  "	.reg .pred %p<2>; .reg .b32 %r<9>; .reg .b64 %rd<5>;\n"
			  "	ld.param.u64 %rd1, [data];\n"
			  "	ld.param.u32 %r1, [n];\n"
			  "	mov.u32 %r2, %ctaid.x;\n"
			  "	mov.u32 %r3, %ntid.x;\n"
			  "	mov.u32 %r4, %tid.x;\n"
			  "	mad.lo.s32 %r5, %r2, %r3, %r4;\n"
			  "	setp.ge.u32 %p1, %r5, %r1;\n"
			  "	@%p1 bra DONE;\n"
			  "	cvta.to.global.u64 %rd2, %rd1;\n"
			  "	mul.wide.u32 %rd3, %r5, 4;\n"
			  "	add.s64 %rd4, %rd2, %rd3;\n"
			  "	ld.global.u32 %r6, [%rd4];\n"
			  "	ld.global.u32 %r7, [scale];\n"
			  "	mul.lo.s32 %r8, %r6, %r7;\n"
			  "	st.global.u32 [%rd4], %r8;\n"
			  "DONE:\n"
			  "	ret;\n"
			  "}\n";
