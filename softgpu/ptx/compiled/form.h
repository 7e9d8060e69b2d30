/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The form of a handler describes for compiled kernels (emit*.c) what the handler computes.  Forms
 * are beside their handlers in the files op_*.c, so that both use the same expression; the
 * handler's address finds the form.  Compiled code calls a handler without a form and assumes that
 * it touches every register.
 */
#pragma once

#include "softgpu/ptx/program.h"

enum ptx_form_kind {
	FORM_PLAIN, /* called; touches only the registers a, b, c, d, e of its instruction */
	FORM_SIDE,  /* called; touches the registers that `regs` lists */
	/* text: computes d of one lane from a, b, c, e and the instruction's x, y, z and imm */
	FORM_LANE,
	/*
	 * likewise; the result is joined with c as in setp, and e is the predicate of the opposite
	 */
	FORM_COMPARE,
	FORM_PACK,
	FORM_UNPACK,
	FORM_SREG,
	FORM_MASK,   /* the lanes that run together */
	FORM_ATOMIC, /* side: struct atomic (atom.h); `regs` lists the registers */
	FORM_WARP,   /* side: struct warp_insn (warp.h); `regs` lists the registers */
	FORM_NOTHING,
	FORM_BRANCH,
	FORM_SWITCH,
	FORM_END,   /* end of the thread or the function: reads nothing */
	FORM_PARAM, /* loads a kernel's parameter */
	FORM_LOAD,
	FORM_STORE, /* one element of the register's size */
	FORM_LOADS,
	FORM_STORES, /* `regs` lists address and elements */
};

enum { PTX_FORM_REGS = 16 };

struct ptx_form {
	ptx_handler *fn;
	const char *name, *text;
	/*
	 * NULL, or the text for the usual case.  It may set doubt (or wide_doubt, for operands with
	 * 8 bytes per lane) instead of computing the right bits: which NaN an f64 is, or whether
	 * .ftz flushes the least normal number.  Then `text` computes all lanes again.
	 */
	const char *quick;
	/*
	 * Lists the registers that an instruction names, including PTX_OPERAND_NONE.  Returns their
	 * number, at most PTX_FORM_REGS; a larger number means that there may be others.
	 */
	unsigned (*regs)(const struct ptx_insn *i, int32_t *ret_regs);
	enum ptx_form_kind kind;
	/*
	 * bytes per lane of each operand: 4 or 8; 16 if the handler is called in any case; 1 for a
	 * predicate; 0 for none
	 */
	uint8_t d, a, b, c, e;
};

const struct ptx_form *ckt_ptx_form(ptx_handler *fn); /* NULL if the handler has no form */

/*
 * The k-th element of a FORM_LOADS or FORM_STORES: the bytes per lane of its register, and whether
 * a narrower value is sign-extended.
 */
uint8_t ckt_ptx_element_slot(const struct ptx_insn *i, unsigned k, bool *ret_signed);

/*
 * A 32-bit special register as an expression of compiled code, for one lane or for all lanes; false
 * if it has no such expression (sreg.c).
 */
bool ckt_ptx_sreg_text(int sreg, char *text, size_t size);
bool ckt_ptx_sreg_uniform_text(int sreg, char *text, size_t size);

/* The text of an expression with its macros expanded. */
#define PTX_TEXT(...) PTX_TEXT_(__VA_ARGS__)
#define PTX_TEXT_(...) #__VA_ARGS__

/* All pointers are in one section of their own, from which the linker makes the table. */
#define PTX_FORM_(handler, ...)                                \
	static const struct ptx_form form_##handler = {        \
		.fn = handler, .name = #handler, __VA_ARGS__}; \
	static const struct ptx_form *const form_of_##handler  \
		__attribute__((used, section("ptx_forms"))) = &form_##handler;
#define PTX_FORM(handler, KIND, D, A, B, C, E, ...)                              \
	PTX_FORM_(handler, .kind = KIND, .d = D, .a = A, .b = B, .c = C, .e = E, \
		.text = __VA_ARGS__)
#define PTX_FORM_SIDE(handler, KIND, function) PTX_FORM_(handler, .kind = KIND, .regs = function)
