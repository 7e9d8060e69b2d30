# SPDX-License-Identifier: Apache-2.0
"""The model of a library whose table declares every parameter: the build needs no header.  A header that is there must agree."""

import clang.cindex as ci

import headers as headers_module
from model import Entry

# Bytes of a structure of `fields`: CKT_NVML_FIELD_BYTES of rpc/nvml.h.
FIELD_BYTES = 40

_SCALARS = {4: "u32", 8: "u64"}


class DeclaredModel:
    """procedures: the table's, by number.  entries: every function of the client's library, in the table's order."""

    # Every name stands in the table, whether a header has it or not.
    undeclared = {}

    def __init__(self, table, headers):
        self.table, self.library, self.headers = table, table.library, headers
        self.procedures = sorted(table.procedures, key=lambda p: p.number)
        self.entries = [Entry(p.name, "local" if p.hand else p.mode, None, number=p.number) for p in table.procedures]
        self.entries += [Entry(n, rule.kind, None, reason=rule.reason) for rule in table.rules for n in rule.names]
        for p in self.procedures:
            self._check(p)

    def unknown(self):
        """What the header has and the table has not: it is not exported."""
        names = {e.name for e in self.entries}
        return [Entry(n, "unknown", f) for n, f in (self.headers.functions if self.headers else {}).items() if n not in names]

    def _check(self, p):
        # A header of another release may lack the function.
        function = self.headers.functions.get(p.name) if self.headers else None
        if not function:
            return
        if function.result != self.library.result:
            raise self.table.error(p.line, f"{p.name} gives a {function.result}")
        declared = [(field, shape) for field in p.args for shape in _argument(field)] + \
                   [(field, shape) for field in p.results for shape in _result(field)]
        if len(declared) != len(function.parameters):
            raise self.table.error(p.line, f"{p.name} takes {len(function.parameters)} parameters in {self.library.header}, and "
                                           f"{len(declared)} here: {function.parameter_list()}")
        for (field, shape), q in zip(declared, function.parameters):
            if shape not in _shapes(q):
                raise self.table.error(field.line, f"{field.name} of {p.name} is not what {self.library.header} has: {q.declare()}")


def _argument(field):
    """What the C parameters of an `arg` line are, as _shapes says it."""
    return [field.kind]


def _result(field):
    if field.kind in _SCALARS.values():
        return [f"{field.kind} *"]
    return {"block": [f"{field.limit} bytes *"], "versioned": ["versioned *"], "text": ["char *", "u32"],
            "fields": ["u32", f"{FIELD_BYTES} bytes *"]}[field.kind]


def _shapes(parameter):
    """What a parameter of the header may be declared as: a kind of handle or of integer, or with a star behind it what it points to."""
    t = parameter.canonical
    if parameter.handle:
        return {parameter.handle}
    if t.kind != ci.TypeKind.POINTER:
        return {_integer(t)}
    pointee = t.get_pointee()
    if pointee.kind in (ci.TypeKind.CHAR_S, ci.TypeKind.CHAR_U):
        return {"char *"}
    if pointee.kind != ci.TypeKind.RECORD:
        return {f"{_integer(pointee)} *"}
    members = list(pointee.get_fields())
    versioned = members and members[0].spelling == "version" and _integer(members[0].type.get_canonical()) == "u32"
    return {f"{pointee.get_size()} bytes *"} | ({"versioned *"} if versioned else set())


def _integer(canonical):
    """u32 or u64, whatever its sign; None for what is no integer of that size."""
    whole = canonical.kind == ci.TypeKind.ENUM or headers_module.is_integer(canonical)
    return _SCALARS.get(canonical.get_size()) if whole else None
