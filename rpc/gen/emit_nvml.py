# SPDX-License-Identifier: Apache-2.0
"""Emits what is NVML's own: nvml_table.c, which client and server share, the client's functions nvml_client.c, and docs/nvml.md.

NVML does not travel as messages of its own: every call is one CKT_CONTROL_NVML (rpc/control.x) whose number says the function.  What that
carries bounds the forms that a function may have.
"""

import textwrap
from dataclasses import dataclass, field

import emit_client

SELECTORS_MAX, OUTS_MAX, BLOCK_MAX = 3, 4, 256
SIZES = {"u32": 4, "u64": 8}


@dataclass
class Form:
    """How a function is called: kind as in enum ckt_nvml_kind; selectors and outs by their names in C; sizes: of the outs, in bytes."""
    kind: str
    system: bool
    device2: bool
    selectors: list
    outs: list
    sizes: list = field(default_factory=list)


def _form(model, p):
    def fail(message):
        raise model.table.error(p.line, f"{p.name}: {message}")

    devices = [f.name for f in p.args if f.kind == "device"]
    selectors = [f.name for f in p.args if f.kind != "device"]
    kinds = {f.kind for f in p.results}
    data = kinds <= {"u32", "u64", "block"}
    if not p.results or (not data and len(p.results) > 1):
        fail("res lines expected: u32, u64 and block, or one of versioned, text or fields")
    if [f.name for f in p.args] != devices + selectors or any(a.line > p.results[0].line for a in p.args):
        fail("the order is devices, numbers, results")
    kind = "DATA" if data else {"versioned": "VERSIONED", "text": "TEXT", "fields": "FIELD"}[kinds.pop()]
    form = Form(kind, not devices, len(devices) > 1, selectors, [f.name for f in p.results])
    if data:
        form.sizes = [SIZES.get(f.kind, f.limit) for f in p.results]
    if len(devices) > 2 or len(selectors) + form.device2 > SELECTORS_MAX or len(form.sizes) > OUTS_MAX \
            or any(s > BLOCK_MAX for s in form.sizes):
        fail(f"at most two devices, {SELECTORS_MAX} numbers (one less with two devices), {OUTS_MAX} results and {BLOCK_MAX} bytes in a "
             "block travel")
    if form.system and (form.kind != "TEXT" or selectors):
        fail("without a device there are only texts, and nothing is given")
    if form.kind == "FIELD" and (form.device2 or selectors):
        fail("fields come from one device, and nothing else is given")
    return form


TABLE = """\
/* Made by rpc/gen from rpc/api/nvml.api: do not edit. */
#include "rpc/nvml.h"

#include <string.h>

const struct ckt_nvml_function ckt_nvml_functions[] = {
"""

TABLE_END = """\
};
const unsigned ckt_nvml_functions_count = sizeof ckt_nvml_functions / sizeof *ckt_nvml_functions;

unsigned ckt_nvml_number(const char *name)
{
	for (unsigned i = 0; i < ckt_nvml_functions_count; i++)
		if (ckt_nvml_functions[i].name && strcmp(ckt_nvml_functions[i].name, name) == 0)
			return i;
	return 0;
}
"""


def calls(model):
    rows = []
    for p in model.procedures:
        form = _form(model, p)
        rows.append(f'\t[{p.number}] = {{"{p.name}", CKT_NVML_{form.kind}, {form.system:d}, {form.device2:d}, {len(form.selectors)}, '
                    f'{len(form.sizes)}, {{{", ".join(map(str, form.sizes)) or "0"}}}}},\n')
    return TABLE + "".join(rows) + TABLE_END


CLIENT = """\
/* Made by rpc/gen from rpc/api/nvml.api: do not edit. */
#include <stdbool.h>
#include <stddef.h>
#include "client/nvml/forward.h"
#pragma GCC visibility push(default)
"""


def _asked(model, p):
    """Parameter list and body of a function that the server answers."""
    form, devices = _form(model, p), [f.name for f in p.args if f.kind == "device"]
    out = form.outs[0]
    if form.kind == "FIELD":
        return f"void *{devices[0]}, int count, void *{out}", f"return ckt_nvml_fields({p.number}, {devices[0]}, count, {out});"
    first = [f"void *{name}" for name in devices] + [f"unsigned {name}" for name in form.selectors]
    device, other = (devices + ["NULL", "NULL"])[:2]
    call = f"{p.number}, {device}, {other}, (const unsigned[]){{{', '.join((form.selectors + ['0'] * SELECTORS_MAX)[:SELECTORS_MAX])}}}"
    if form.kind == "TEXT":
        return ", ".join(first + [f"char *{out}", f"unsigned {out}_size"]), f"return ckt_nvml_text({call}, {out}, {out}_size);"
    if form.kind == "VERSIONED":
        return ", ".join(first + [f"void *{out}"]), f"return ckt_nvml_versioned({call}, {out});"
    return ", ".join(first + [f"void *{name}" for name in form.outs]), \
        f"return ckt_nvml_data({call}, (void *const[]){{{', '.join(form.outs)}}});"


def client(model):
    procedures = {p.name: p for p in model.procedures}
    lines = []
    for entry in model.entries:
        if entry.kind == "waits":
            parameters, call = _asked(model, procedures[entry.name])
            body = ["{", "\t" + call, "}"]
        elif entry.kind == "unsupported":
            # A function that takes nothing may stand for any of C's parameter lists on the ABIs we build for.
            parameters, body = "void", emit_client.refusal(entry.name, "ckt_nvml_refuse")
        else:
            continue
        lines += [f"int {entry.name}({parameters});", f"int {entry.name}({parameters})", *body]
    return CLIENT + "".join(line + "\n" for line in lines)


DOCUMENT = """\
# NVML in the client

Generated from `rpc/api/nvml.api` (`ninja nvml-doc`): do not edit.

{summary}
"""


SUMMARY = """\
`{soname}` exports {all} functions. Cricket answers {local} itself, forwards {waits} to the genuine library on the server, and refuses {unsupported} \
with `NVML_ERROR_NOT_SUPPORTED`, logged once. No function that changes a GPU is forwarded. If the server has no NVML (the soft GPU), forwarded \
functions are not supported either."""


def _wrapped(names):
    line, lines = "", []
    for name in sorted(names):
        word = f"`{name}`"
        if line and len(line) + len(word) > 97:
            lines.append(line + ",")
            line = ""
        line += (", " if line else "") + word
    return "\n".join(lines + [line])


def document(model):
    groups = {kind: [e.name for e in model.entries if e.kind == kind] for kind in ("local", "waits", "unsupported")}
    summary = SUMMARY.format(soname=model.library.soname, all=len(model.entries), **{kind: len(names) for kind, names in groups.items()})
    text = DOCUMENT.format(summary=textwrap.fill(summary, 100, break_long_words=False, break_on_hyphens=False))
    titles = {"local": "Answered by Cricket", "waits": "Forwarded to the server's NVML", "unsupported": "Refused"}
    return text + "".join(f"\n## {titles[kind]}\n\n{_wrapped(names)}\n" for kind, names in groups.items())
