# SPDX-License-Identifier: Apache-2.0
"""The model of a library that is served at its own API: what every parameter of its functions is, and the messages that come of it.

The library's calls go to an object (a handle) that the client has made and that says whether scalars lie on the host or on the device:
its pointer mode.  Fields of 16 bytes hold a scalar itself, or its address.
"""

import re
from dataclasses import dataclass, field

import clang.cindex as ci

import headers as headers_module
import table as table_module
import wire
from model import Entry, Model, ModelProcedure

# Of a scalar: the largest is a complex double.
VALUE_BYTES = 16
# Variables of the generated code end so, and parameters of functions do not.
OWN = "_"
_POINTERS = (ci.TypeKind.POINTER, ci.TypeKind.INCOMPLETEARRAY, ci.TypeKind.CONSTANTARRAY)
MODE_WAYS = ("scalar", "result", "update")


@dataclass
class Parameter:
    """way: object, stream, value, device, scalar, result, update, in, in_array, out, string.  type: of the field, None where there is none.
    size: an expression in C of the bytes of a value or of an array's element; count: of the latter's elements; limit: the most elements of an
    array, the most bytes of a value.  null: a scalar that may be NULL, which is a zero, or an array that may, of whose elements there is one at least.
    place: of `out`, where in the worker the library writes; None: a variable of the handler's."""
    parameter: object
    way: str
    type: object
    size: str = None
    count: str = None
    limit: int = None
    null: bool = False
    place: str = None

    @property
    def name(self):
        return self.parameter.name

    @property
    def c(self):
        return self.parameter.c


def slot_bytes(parameter):
    return (parameter.limit + VALUE_BYTES - 1) // VALUE_BYTES * VALUE_BYTES


@dataclass
class Procedure(ModelProcedure):
    checks: list = field(default_factory=list)
    effect: str = None
    key: str = None
    # Waited for until the library has taken a call with that content.
    learns: bool = False
    executes: bool = False
    beside: bool = False
    afterwards: list = field(default_factory=list)

    def of(self, *ways):
        return [q for q in self.parameters if q.way in ways]

    @property
    def object(self):
        """The parameter that the call goes to; None where there is none."""
        return next(iter(self.of("object")), None)

    @property
    def has_mode(self):
        return bool(self.of(*MODE_WAYS))

    @property
    def gives_values(self):
        """Whether scalars come back, where the pointer mode is the host's."""
        return bool(self.of("result", "update"))

    @property
    def values_bytes(self):
        """Of the memory that scalars come back in: the status, then each in whole VALUE_BYTES."""
        return VALUE_BYTES + sum(slot_bytes(q) for q in self.of(*MODE_WAYS))

    def value_place(self, parameter):
        """Where in it a scalar lies."""
        place = VALUE_BYTES
        for q in self.of(*MODE_WAYS):
            if q is parameter:
                return place
            place += slot_bytes(q)
        raise AssertionError(parameter)


class ForwardedModel(Model):
    """As model.Model: procedures by number, entries: every function of the headers; undeclared: name -> reason of what they do not have."""

    def __init__(self, table, headers):
        self.used_defaults, self.used_types = set(), set()
        super().__init__(table, headers)
        for rule in table.rules:
            if rule.kind == "newer":
                self.undeclared.update({name: rule.reason for name in rule.names if name not in headers.functions})
        unused = set(table.pointers) - self.used_defaults
        if unused:
            name = min(unused)
            raise table.error(table.pointers[name].line, f"no procedure has a pointer {name} that this would be about")
        for name, line in table.learns.items():
            if name not in self.used_types:
                raise table.error(line, f"no batched procedure has a parameter of type {name}")

    def generated(self):
        return [p for p in self.procedures if not p.hand]

    @property
    def carries_streams(self):
        """Whether an object's stream travels with what executes: then the other procedures put nothing on a stream."""
        return any(p.executes for p in self.procedures)

    def kinds(self):
        """The kinds of the library's objects, in the order of their numbers, which begin with 1."""
        return [kind for kind in self.library.handles.values() if kind != "stream"]

    # ---- procedures

    def _procedure(self, p):
        made = Procedure(p.number, p.name, p.hand, p.batched, p.numbered or p.batched, p.line, effect=p.effect, key=p.key,
                         executes="executes" in p.manners, beside="beside" in p.manners, afterwards=[expression for expression, _ in p.afterwards])
        function = self.headers.functions.get(p.name)
        if p.hand:
            made.args, made.results = wire.hand_messages(p)
            self._check_effect(p, made)
            return made
        if not function:
            raise self.table.error(p.line, f"{p.name} is not in {self.headers.name}; an internal procedure has class hand")
        if function.result != self.library.result:
            raise self.table.error(p.line, f"{p.name} gives a {function.result}, not a {self.library.result}: list it as local or unsupported")
        made.function = function
        names = [q.name for q in function.parameters]
        for name, pointer in p.pointers.items():
            if name not in names:
                raise self.table.error(pointer.line, f"{p.name} has no parameter {name}")
        made.parameters = [self._parameter(p, function, q) for q in function.parameters]
        made.checks = self._checks(p, made)
        if made.has_mode and not made.object:
            raise self.table.error(p.line, f"{p.name} has scalars, and no handle whose pointer mode says where they lie")
        if p.batched and made.of("out"):
            raise self.table.error(p.line, f"{p.name} has results and cannot be batched")
        if made.gives_values and not p.batched:
            raise self.table.error(p.line, f"{p.name} gives scalars: it is batched, and waits where they come back to the host")
        # Where scalars come back it waits anyway; in device mode it does not, and is not worth another way to answer.
        if p.batched and made.object and not made.gives_values:
            types = {q.c for q in made.of("value")} & set(self.table.learns)
            self.used_types |= types
            made.learns = bool(types)
        if made.executes and not made.object:
            raise self.table.error(p.line, f"{p.name} executes, and has no object whose stream travels")
        if made.beside and (not made.object or made.of("string", "stream")):
            raise self.table.error(p.line, f"{p.name} runs beside the executor: it needs an object, and neither a stream nor a string")
        self._messages(p, made)
        self._check_effect(p, made)
        return made

    def _messages(self, p, made):
        there = [wire.Member("pointer_mode", wire.U32)] if made.has_mode else []
        # The object first: what is recorded of a call begins with it.
        ordered = made.of("object")[:1] + [q for q in made.parameters if q is not made.object]
        there += [wire.Member("stream", wire.U64)] if made.executes else []
        there = [wire.Member(q.name, q.type) for q in ordered[:1]] + there + [wire.Member(q.name, q.type) for q in ordered[1:] if q.way != "out"]
        made.args = wire.Message(f"{p.name}_args", there)
        if made.gives_values:
            made.results = wire.Message(f"{p.name}_res", [wire.Member("values", wire.Bytes(made.values_bytes, False))])
        elif not p.batched:
            back = [wire.Member(q.name, q.type) for q in made.of("out")]
            made.results = wire.Message(f"{p.name}_res", [wire.Member("status", wire.I32)] + back)

    def _check_effect(self, p, made):
        if not made.effect or made.effect == "stateless":
            return
        if not self.begins_with_object(made):
            raise self.table.error(p.line, f"{p.name} {made.effect} something: its first argument is the object's id")
        if made.key and made.key not in [f.name for f in made.args.fields]:
            raise self.table.error(p.line, f"{p.name} sets by {made.key}, which is none of its arguments")
        if made.key and self.key_place(made) is None:
            raise self.table.error(p.line, f"{p.name} sets by {made.key}, which has no fixed place in the message")

    def begins_with_object(self, procedure):
        """Whether the message's first word is the id of an object, of the library or new."""
        if procedure.parameters:
            return procedure.object is not None
        declared = next(p for p in self.table.procedures if p.name == procedure.name).args
        return bool(declared) and declared[0].kind == "object"

    def key_place(self, procedure):
        """(offset, bytes) of the field that `sets` names, in the encoded arguments; None where that is not fixed."""
        offset = 0
        for f in procedure.args.fields:
            size = f.type.fixed_size()
            if size is None:
                return None
            if f.name == procedure.key:
                return offset, size
            offset += size
        return None

    def _parameter(self, p, function, q):
        if q.name.endswith(OWN):
            raise self.table.error(p.line, f"{p.name} has a parameter called {q.name}, as the generated code calls its own variables: "
                                           "write it by hand")
        pointer = p.pointers.get(q.name)
        points = q.canonical.kind in _POINTERS and not headers_module.is_handle(q.canonical)
        if not points and pointer:
            raise self.table.error(pointer.line, f"{q.name} of {p.name} is a {q.c} and needs no line")
        if q.handle:
            return Parameter(q, "stream" if q.handle == "stream" else "object", wire.U64)
        if headers_module.is_handle(q.canonical):
            raise self.table.error(p.line, f"{q.name} of {p.name} is a {q.c}, a handle that {self.library.name}'s entry does not know")
        if not points:
            return Parameter(q, "value", self._wire_type(p, p.line, q.type, q.name))
        if not pointer:
            pointer = self.table.pointers.get(q.name)
            self.used_defaults.add(q.name)
        if not pointer:
            raise self.table.error(p.line, f"{p.name}: parameter '{q.declare()}' is a pointer: say in a line below the procedure what it is "
                                           f"({' '.join(table_module.FORWARDED)}), or list the function as unsupported")
        return self._pointer(p, function, q, pointer)

    def _pointer(self, p, function, q, pointer):
        element = q.canonical.element_type if q.canonical.kind != ci.TypeKind.POINTER else q.canonical.get_pointee()
        what = f"{q.name} of {p.name}"
        if pointer.direction in ("result", "update", "out") and element.is_const_qualified():
            raise self.table.error(pointer.line, f"{what} points to const: it cannot be {pointer.direction}")
        if pointer.direction == "device":
            return Parameter(q, "device", wire.U64)
        if pointer.direction == "string":
            if element.get_size() != 1 or not element.is_const_qualified():
                raise self.table.error(pointer.line, f"{what} is a {q.c}, not a const char *")
            return Parameter(q, "string", wire.Bytes(pointer.limit, True), limit=pointer.limit)
        size = pointer.size or (None if element.kind == ci.TypeKind.VOID else f"sizeof(*{q.name})")
        if not size:
            raise self.table.error(pointer.line, f"{what} is a {q.c}: say how many bytes: {pointer.direction} {q.name} BY SIZE")
        if pointer.direction in MODE_WAYS or pointer.direction == "zero":
            most = pointer.limit or VALUE_BYTES
            if not pointer.size and element.get_size() > most:
                raise self.table.error(pointer.line, f"{what} has {element.get_size()} bytes, and {most} at most: {pointer.direction} "
                                                     f"{q.name} MOST")
            way = "scalar" if pointer.direction == "zero" else pointer.direction
            return Parameter(q, way, wire.U64 if way == "result" else wire.FixedBytes(most), size=size, limit=most,
                             null=pointer.direction == "zero")
        if pointer.count:
            return self._array(p, function, q, pointer, element, size)
        if pointer.size:
            raise self.table.error(pointer.line, f"{what}: BY stands behind the bound of an array")
        return Parameter(q, pointer.direction, self._wire_type(p, pointer.line, element, q.name), size=size,
                         place=pointer.place)

    def _array(self, p, function, q, pointer, element, size):
        counter = next((r for r in function.parameters if r.name == pointer.count), None)
        if not counter or counter.canonical.kind in _POINTERS:
            raise self.table.error(pointer.line, f"{q.name} of {p.name}: its count '{pointer.count}' is no integer parameter")
        bound = element.get_size() if element.kind != ci.TypeKind.VOID else VALUE_BYTES
        # As they lie in memory: both sides are of one byte order, and the library alone looks at them.
        return Parameter(q, "in_array", wire.Bytes(pointer.limit * bound, False), size=size, count=pointer.count, limit=pointer.limit,
                         null=pointer.direction == "optional")

    def _checks(self, p, made):
        checks = []
        for word, expression, _ in self.table.checks:
            for q in made.parameters:
                if q.way == "value" and word in (q.name, q.c):
                    checks.append(_for_it(expression, q.name))
        return checks + [expression for expression, _ in p.checks]

    # ---- exported functions

    def _entry(self, function):
        name = function.name
        p = self.table.procedure(name)
        if p:
            return Entry(name, "local" if p.hand else p.mode, function, number=p.number)
        rule = self.table.exact_rules().get(name) or self.table.pattern_rule(name)
        if rule and rule.kind == "legacy" and name not in rule.names and not self._is_legacy(function):
            rule = None
        if not rule:
            return Entry(name, "unknown", function, reason=f"new in {self.headers.name}: not in the table")
        if rule.kind == "newer":
            return Entry(name, "unsupported", function, reason=rule.reason)
        target = (rule.target or f"{name}_v2") if rule.kind == "legacy" else rule.target
        return Entry(name, rule.kind, function, reason=rule.reason, target=target)

    def _is_legacy(self, function):
        """Whether a pattern may speak of it: newer headers may have more that the pattern covers."""
        return function.apart and f"{function.name}_v2" in self.headers.functions

    def _check_legacy(self, rule, entry):
        """The target's parameters behind the handle are the function's, in their order; what more it has is where a result goes, or the last
        of them once more, where it works in place."""
        given, taken = entry.function.parameters, self.headers.functions[entry.target].parameters[1:]
        more = len(taken) - len(given)
        generated = entry.target in [p.name for p in self.generated()]
        if not generated or more < 0 or more > len(given) or (entry.function.result != "void" and more != 1):
            raise self.table.error(rule.line, f"{entry.name} and {entry.target} do not fit: write it by hand")

    def _check_rules(self):
        functions = self.headers.functions
        for rule in self.table.rules:
            for name in rule.names:
                if rule.kind == "undeclared" and name in functions:
                    raise self.table.error(rule.line, f"{name} is in {self.headers.name}: list it as unsupported")
                if rule.kind not in ("undeclared", "newer") and not table_module.is_pattern(name) and name not in functions:
                    raise self.table.error(rule.line, f"{name} is not in {self.headers.name}")
        for entry in self.entries:
            if not entry.target:
                continue
            rule = self.table.exact_rules().get(entry.name) or self.table.pattern_rule(entry.name)
            if entry.target not in functions:
                raise self.table.error(rule.line, f"{entry.name} stands on {entry.target}, which is not in {self.headers.name}")
            if entry.kind == "legacy":
                self._check_legacy(rule, entry)


def _for_it(expression, name):
    return re.sub(r"\bit\b", name, expression)
