/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a handler does, for compiled kernels (emit*.c): every handler may have a form.  Forms are
 * beside their handlers in the files op_*.c, so that both use the same expression; the handler's
 * address finds the form.  Compiled code calls a handler without a form like any other, and assumes
 * that it touches every register.
 */
#pragma once

#include "softgpu/ptx/program.h"

enum ptx_form_kind {
	FORM_PLAIN, /* called; touches the registers a, b, c, d, e of its instruction only */
	FORM_SIDE,  /* called; touches those that `regs` lists */
	/*
	 * text: what a lane computes from a, b, c, e and the instruction's x, y, z and imm into d
	 */
	FORM_LANE,
	/* likewise, then joined with c as setp does; e is the opposite's predicate */
	FORM_COMPARE,
	FORM_PACK,
	FORM_UNPACK,
	FORM_SREG,
	FORM_MASK,   /* the lanes that run together */
	FORM_ATOMIC, /* side: struct atomic (atom.h); `regs` lists its registers */
	FORM_WARP,   /* side: struct warp_insn (warp.h); likewise */
	FORM_NOTHING,
	FORM_BRANCH,
	FORM_SWITCH,
	FORM_END,   /* of the thread or the function: reads nothing */
	FORM_PARAM, /* load of a kernel's parameter */
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
	 * Or NULL: text for the usual case, which may set doubt (or wide_doubt, for operands with 8
	 * bytes a lane) instead of computing the right bits: which NaN an f64 is, whether .ftz
	 * flushes the least normal number.  Then `text` computes all lanes again.
	 */
	const char *quick;
	/*
	 * The registers that an instruction names, PTX_OPERAND_NONE among them, at most
	 * PTX_FORM_REGS; returns how many, or more than those if there may be others.
	 */
	unsigned (*regs)(const struct ptx_insn *i, int32_t *ret_regs);
	enum ptx_form_kind kind;
	/*
	 * bytes a lane of each operand has: 4 or 8, 16 for what is called all the same, 1 a
	 * predicate, 0 none
	 */
	uint8_t d, a, b, c, e;
};

const struct ptx_form *ckt_ptx_form(ptx_handler *fn); /* or NULL */

/*
 * Of the k-th element of a FORM_LOADS or FORM_STORES: bytes a lane of its register has, and whether
 * what is narrower is sign-extended.
 */
uint8_t ckt_ptx_element_slot(const struct ptx_insn *i, unsigned k, bool *ret_signed);

/*
 * A 32-bit special register as an expression of compiled code, of a lane or the same for all; false
 * if it is neither (sreg.c).
 */
bool ckt_ptx_sreg_text(int sreg, char *text, size_t size);
bool ckt_ptx_sreg_uniform_text(int sreg, char *text, size_t size);

/* The text of an expression with its macros expanded. */
#define PTX_TEXT(...) PTX_TEXT_(__VA_ARGS__)
#define PTX_TEXT_(...) #__VA_ARGS__

/* Pointers in a section of their own: the linker makes the table. */
#define PTX_FORM_(handler, ...)                                \
	static const struct ptx_form form_##handler = {        \
		.fn = handler, .name = #handler, __VA_ARGS__}; \
	static const struct ptx_form *const form_of_##handler  \
		__attribute__((used, section("ptx_forms"))) = &form_##handler;
#define PTX_FORM(handler, KIND, D, A, B, C, E, ...)                              \
	PTX_FORM_(handler, .kind = KIND, .d = D, .a = A, .b = B, .c = C, .e = E, \
		.text = __VA_ARGS__)
#define PTX_FORM_SIDE(handler, KIND, function) PTX_FORM_(handler, .kind = KIND, .regs = function)
