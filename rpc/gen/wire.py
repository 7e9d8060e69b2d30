# SPDX-License-Identifier: Apache-2.0
"""Wire types and messages: what the emitters of codecs, of the .x and of the golden share.

A message is the arguments or the results of one procedure; its fields have the types below.  Sizes are those of XDR.
"""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Scalar:
    """c: the C type that a codec's struct holds; xdr: the type in the .x."""
    kind: str
    c: str
    xdr: str
    size: int

    def fixed_size(self):
        return self.size


@dataclass(frozen=True)
class Bytes:
    """XDR's opaque<limit> (text false) and string<limit>."""
    limit: int
    text: bool

    def fixed_size(self):
        return None


@dataclass(frozen=True)
class Words:
    """A variable array of 32-bit or 64-bit integers."""
    bits: int
    limit: int

    def fixed_size(self):
        return None


@dataclass(frozen=True)
class FixedBytes:
    """char[count] in a struct of cuda.h: opaque[count]."""
    count: int

    def fixed_size(self):
        return (self.count + 3) // 4 * 4


@dataclass(frozen=True)
class FixedArray:
    element: object
    count: int

    def fixed_size(self):
        return self.element.fixed_size() * self.count


@dataclass(frozen=True)
class Struct:
    """A plain struct of cuda.h, coded member by member.  c is its name in C."""
    c: str
    members: tuple

    def fixed_size(self):
        return sum(m.type.fixed_size() for m in self.members)


@dataclass(frozen=True)
class Member:
    """c: the member's type in cuda.h where it differs from the wire's C type (enums), for casts; None otherwise."""
    name: str
    type: object
    c: str = None


@dataclass
class Message:
    """name: `PROC_args` or `PROC_res`."""
    name: str
    fields: list = field(default_factory=list)

    def fixed_size(self):
        sizes = [f.type.fixed_size() for f in self.fields]
        return None if None in sizes else sum(sizes)


U32 = Scalar("u32", "uint32_t", "unsigned int", 4)
I32 = Scalar("i32", "int32_t", "int", 4)
U64 = Scalar("u64", "uint64_t", "unsigned hyper", 8)
I64 = Scalar("i64", "int64_t", "hyper", 8)
F32 = Scalar("f32", "float", "float", 4)
F64 = Scalar("f64", "double", "double", 8)
SCALARS = {s.kind: s for s in (U32, I32, U64, I64, F32, F64)}


def from_table(kind, limit):
    if kind in SCALARS:
        return SCALARS[kind]
    if kind in ("opaque", "string"):
        return Bytes(limit, kind == "string")
    if kind in ("u32s", "u64s"):
        return Words(32 if kind == "u32s" else 64, limit)
    # A handle: its id.
    return U64


def structs_of(messages):
    """Every Struct that the messages hold, inner ones first, each once."""
    found = {}

    def visit(t):
        if isinstance(t, FixedArray):
            visit(t.element)
        elif isinstance(t, Struct):
            for m in t.members:
                visit(m.type)
            found.setdefault(t.c, t)

    for message in messages:
        for f in message.fields:
            visit(f.type)
    return list(found.values())


def hand_messages(procedure):
    """(args, results) of a hand-written procedure; None where there is nothing."""
    def message(fields, suffix):
        if not fields:
            return None
        return Message(f"{procedure.name}_{suffix}", [Member(f.name, from_table(f.kind, f.limit)) for f in fields])
    return message(procedure.args, "args"), message(procedure.results, "res")
