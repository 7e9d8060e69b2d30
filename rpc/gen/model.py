# SPDX-License-Identifier: Apache-2.0
"""Joins a table with the library's headers: what every exported function is, and the messages of every procedure."""

from dataclasses import dataclass, field

import clang.cindex as ci

import headers as headers_module
import table as table_module
import typedefs
import wire


# Variables of the generated stubs and handlers.
LOCALS = {"call", "args", "result", "res", "reply"}


@dataclass
class ModelProcedure:
    """A procedure with its messages (None where nothing travels); function and parameters only where it is generated."""
    number: int
    name: str
    hand: bool
    batched: bool
    numbered: bool
    line: int
    args: wire.Message = None
    results: wire.Message = None
    function: object = None
    parameters: list = field(default_factory=list)


@dataclass
class ModelParameter:
    """How one parameter of a generated function travels.

    way: value, in, out, inout, string, in_array.  type: wire type of the value, of the pointee, or of the array field.
    count: expression in C of an array's element count, over the function's parameters."""
    parameter: object
    way: str
    type: object
    count: str = None
    element_c: str = None

    @property
    def name(self):
        return self.parameter.name


@dataclass
class Entry:
    """An exported function of the library; function is None where no header was read.

    kind: local, same, per_thread, waits, batched, unsupported, unknown."""
    name: str
    kind: str
    function: object
    reason: str = None
    target: str = None
    sync: bool = False
    number: int = None


class Model:
    def __init__(self, table, headers):
        self.table, self.library, self.headers = table, table.library, headers
        self.procedures = [self._procedure(p) for p in sorted(table.procedures, key=lambda p: p.number)]
        self.entries = [self._entry(f) for f in headers.functions.values()]
        # Name -> reason of what NVIDIA's library exports and the headers do not declare.
        self.undeclared = {n: r.reason for r in table.rules if r.kind == "undeclared" for n in r.names}
        self._check_rules()

    def messages(self):
        return [m for p in self.procedures for m in (p.args, p.results) if m]

    def entry_points(self):
        return typedefs.entry_points(self.headers)

    def unknown(self):
        return [e for e in self.entries if e.kind == "unknown"]

    # ---- procedures

    def _procedure(self, p):
        made = ModelProcedure(p.number, p.name, p.hand, p.batched, p.numbered, p.line)
        if p.hand:
            made.args, made.results = wire.hand_messages(p)
            return made
        function = self.headers.functions.get(p.name)
        if not function:
            raise self.table.error(p.line, f"{p.name} is not in {self.headers.name}; an internal procedure has class hand")
        if function.result != self.library.result:
            raise self.table.error(p.line, f"{p.name} gives a {function.result}: list it as local or unsupported")
        made.function = function
        for name, pointer in p.pointers.items():
            if name not in [q.name for q in function.parameters]:
                raise self.table.error(pointer.line, f"{p.name} has no parameter {name}")
        made.parameters = [self._parameter(p, function, q) for q in function.parameters]
        if p.batched and any(q.way in ("out", "inout") for q in made.parameters):
            raise self.table.error(p.line, f"{p.name} has results and cannot be batched")
        there = [wire.Member(q.name, q.type) for q in made.parameters if q.way != "out"]
        back = [wire.Member(q.name, q.type) for q in made.parameters if q.way in ("out", "inout")]
        made.args = wire.Message(f"{p.name}_args", there) if there else None
        made.results = wire.Message(f"{p.name}_res", back) if back else None
        return made

    def _wire_type(self, p, line, ctype, what):
        try:
            return headers_module.wire_type(ctype, what)
        except headers_module.HeaderError as error:
            raise self.table.error(line, f"{p.name}: {error}") from error

    def _parameter(self, p, function, q):
        pointer = p.pointers.get(q.name)
        if q.name in LOCALS:
            raise self.table.error(p.line, f"{p.name} has a parameter called {q.name}, as the generated code calls a variable of its own: "
                                           "write it by hand")
        if q.handle:
            if pointer:
                raise self.table.error(pointer.line, f"{q.name} of {p.name} is a {q.c}: it travels as an id and needs no line")
            return ModelParameter(q, "value", wire.U64)
        if headers_module.is_handle(q.canonical):
            raise self.table.error(p.line, f"{q.name} of {p.name} is a {q.c}, a handle no side keeps ids of: write it by hand, "
                                           "or list it as unsupported")
        if q.c in self.library.ordinals:
            raise self.table.error(p.line, f"{q.name} of {p.name} is a device ordinal of the session, which only hand-written handlers "
                                           "translate: write it by hand")
        if not q.needs_annotation:
            if pointer:
                raise self.table.error(pointer.line, f"{q.name} of {p.name} is no pointer and needs no line")
            return ModelParameter(q, "value", self._wire_type(p, p.line, q.type, q.name))
        if not pointer:
            raise self.table.error(p.line, f"{p.name}: parameter '{q.declare()}' is a pointer: say in a line below the procedure what "
                                           f"it is (out {q.name}, in {q.name}, inout {q.name}, string {q.name} MAX), or list the "
                                           "function as unsupported")
        return self._pointer(p, function, q, pointer)

    def _pointer(self, p, function, q, pointer):
        pointee = q.canonical.get_pointee()
        what = f"{q.name} of {p.name}"
        if pointer.direction in ("out", "inout") and pointee.is_const_qualified():
            raise self.table.error(pointer.line, f"{what} points to const: it cannot be {pointer.direction}")
        if pointer.direction == "string":
            if pointee.get_size() != 1 or not pointee.is_const_qualified():
                raise self.table.error(pointer.line, f"{what} is a {q.c}, not a const char *")
            return ModelParameter(q, "string", wire.Bytes(pointer.limit, True))
        if pointer.count:
            return self._array(p, function, q, pointer, pointee)
        if pointee.kind == ci.TypeKind.VOID or pointee.kind == ci.TypeKind.POINTER:
            raise self.table.error(pointer.line, f"{what} is a {q.c}, which the generator cannot translate: write the function by hand, "
                                                 "or list it as unsupported")
        return ModelParameter(q, pointer.direction, self._wire_type(p, pointer.line, q.type.get_pointee(), q.name))

    def _array(self, p, function, q, pointer, pointee):
        what = f"{q.name} of {p.name}"
        counter = next((r for r in function.parameters if r.name == pointer.count), None)
        if not counter or counter.needs_annotation or counter.handle:
            raise self.table.error(pointer.line, f"{what}: its count '{pointer.count}' is no integer parameter")
        size = 1 if pointee.kind == ci.TypeKind.VOID else pointee.get_size()
        scalar = pointee.kind not in (ci.TypeKind.RECORD, ci.TypeKind.POINTER) or pointee.kind == ci.TypeKind.VOID
        if not scalar or size not in (1, 4, 8):
            raise self.table.error(pointer.line, f"{what}: arrays of {pointee.spelling} are not generated; write the function by hand")
        kind = wire.Bytes(pointer.limit, False) if size == 1 else wire.Words(size * 8, pointer.limit)
        return ModelParameter(q, "in_array", kind, pointer.count, q.type.get_pointee().spelling)

    # ---- exported functions

    def _entry(self, function):
        name = function.name
        for p in self.table.procedures:
            if p.name == name:
                return Entry(name, p.mode, function, number=p.number)
        rule = self.table.exact_rules().get(name)
        if rule and rule.kind == "unsupported":
            return Entry(name, "unsupported", function, reason=rule.reason)
        if rule:
            return Entry(name, rule.kind, function, target=rule.target_of(name), sync=rule.sync)
        rule = self.table.pattern_rule(name)
        if rule:
            return Entry(name, "unsupported", function, reason=rule.reason)
        release = f"CUDA {self.headers.version // 1000}.{self.headers.version % 1000 // 10}" if self.headers.version else self.headers.name
        return Entry(name, "unknown", function, reason=f"new in {release}: not in the table")

    def _check_rules(self):
        functions = self.headers.functions
        for rule in self.table.rules:
            if rule.kind == "undeclared":
                self._check_undeclared(rule)
                continue
            if rule.since > (self.headers.version or 0):
                continue
            for name in rule.names:
                if not table_module.is_pattern(name) and name not in functions:
                    raise self.table.error(rule.line, f"{name} is not in {self.headers.name} (mistyped? or since VERSION)")
                if rule.target_of(name):
                    self._check_target(rule, name)

    def _check_undeclared(self, rule):
        for name in rule.names:
            if name in self.headers.functions:
                raise self.table.error(rule.line, f"{name} is in {self.headers.name}: list it as unsupported")

    def _check_target(self, rule, name):
        functions, target_name = self.headers.functions, rule.target_of(name)
        if name not in functions:
            return
        target = functions.get(target_name)
        if not target:
            raise self.table.error(rule.line, f"{target_name} is not in {self.headers.name}")
        entry = next(e for e in self.entries if e.name == target_name)
        if entry.kind not in ("local", "waits", "batched"):
            raise self.table.error(rule.line, f"{name} cannot stand on {target_name}, which is {entry.kind}")
        ours, theirs = functions[name].signature(), target.signature()
        if rule.kind == "per_thread" and sum(q.c == "CUstream" for q in target.parameters) != 1:
            raise self.table.error(rule.line, f"{target_name} does not have exactly one stream parameter: write {name} by hand")
        if rule.kind == "per_thread" and adds_stream(functions[name], target):
            theirs = (theirs[0], theirs[1][:-1])
        if ours != theirs:
            raise self.table.error(rule.line, f"{name} and {target_name} have different parameters")


def adds_stream(function, target):
    """Whether the target of a per_thread line has, behind the function's parameters, the stream."""
    return len(target.parameters) == len(function.parameters) + 1 and target.parameters[-1].c == "CUstream"
