# SPDX-License-Identifier: Apache-2.0
"""Reads a library's headers with libclang: its functions by their exported names, with their types."""

import os
import re

import clang.cindex as ci

import libclang
import wire

_SIGNED = (ci.TypeKind.CHAR_S, ci.TypeKind.SCHAR, ci.TypeKind.SHORT, ci.TypeKind.INT, ci.TypeKind.LONG, ci.TypeKind.LONGLONG)
_UNSIGNED = (ci.TypeKind.BOOL, ci.TypeKind.CHAR_U, ci.TypeKind.UCHAR, ci.TypeKind.USHORT, ci.TypeKind.UINT, ci.TypeKind.ULONG,
             ci.TypeKind.ULONGLONG)


# Of the project, whose own headers are named from there.
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


class HeaderError(Exception):
    """The headers cannot be read, or hold what cannot be put on the wire."""


class Parameter:
    """handle: the kind of handle that the library knows this type as, or None."""

    def __init__(self, name, ctype, handle):
        self.name, self.type, self.handle = name, ctype, handle

    @property
    def canonical(self):
        return self.type.get_canonical()

    @property
    def c(self):
        return self.type.spelling

    @property
    def needs_annotation(self):
        """True for a pointer into the program's memory: anything but a handle and a function pointer's kin."""
        return self.canonical.kind == ci.TypeKind.POINTER and not is_handle(self.canonical)

    def declare(self):
        return declare(self.type, self.name)


class Function:
    """apart: the header that declares it, where that cannot be read with the library's others."""

    def __init__(self, name, cursor, handles, apart=None):
        self.name, self.apart = name, apart
        self.result = cursor.result_type.spelling
        self.parameters = []
        for i, argument in enumerate(cursor.get_arguments()):
            self.parameters.append(Parameter(argument.spelling or f"arg{i}", argument.type, handles.get(argument.type.spelling)))

    def signature(self):
        """What must agree between two functions of which one stands for the other."""
        return (self.result, tuple(p.canonical.spelling for p in self.parameters))

    def parameter_list(self):
        return ", ".join(p.declare() for p in self.parameters) or "void"


class Headers:
    """functions: exported name -> Function, in the header's order; version: what the library's version macro says, None without one."""

    def __init__(self, library, include):
        self.library, self.include = library, include
        self.version = _version(include, library) if library.version_macro else None
        self.functions = {}
        self._read(library.includes, library.cplusplus, None)
        for name in library.apart:
            self._read((name,), False, name)

    def _read(self, includes, cplusplus, apart):
        source = "".join(f"#include <{name}>\n" for name in includes)
        if not apart:
            source += "".join(f'#include "{name}"\n' for name in self.library.exported)
        language = ("cc", ["-x", "c++", "-std=gnu++17"]) if cplusplus else ("c", ["-std=gnu17"])
        try:
            self.unit = libclang.parse(f"{self.library.name}_api.{language[0]}", source, self.include,
                                      ["-I" + ROOT, *language[1], *self.library.macros])
        except ci.TranslationUnitLoadError as error:
            raise HeaderError(f"libclang cannot read {includes[0]} under {self.include}: {error}") from error
        errors = [d for d in self.unit.diagnostics if d.severity >= ci.Diagnostic.Error]
        if errors:
            raise HeaderError(f"{includes[0]} under {self.include} does not compile: {errors[0]}")
        self._collect(self.unit.cursor, apart)

    def _collect(self, cursor, apart):
        for child in cursor.get_children():
            # extern "C": the second by earlier releases of the bindings.
            if child.kind in (ci.CursorKind.LINKAGE_SPEC, ci.CursorKind.UNEXPOSED_DECL):
                self._collect(child, apart)
            elif child.kind == ci.CursorKind.FUNCTION_DECL and child.spelling.startswith(self.library.prefix) \
                    and child.storage_class != ci.StorageClass.STATIC and child.spelling not in self.functions:
                self.functions[child.spelling] = Function(child.spelling, child, self.library.handles, apart)

    @property
    def name(self):
        """For messages."""
        return f"{self.library.header} {self.version}" if self.version else self.library.header


def _version(include, library):
    path = os.path.join(include, library.header)
    try:
        with open(path, encoding="utf-8", errors="replace") as f:
            found = re.search(rf"^#define\s+{library.version_macro}\s+(\d+)", f.read(), re.M)
    except OSError as error:
        raise HeaderError(f"cannot read {path}: {error.strerror}") from error
    if not found:
        raise HeaderError(f"{path} does not define {library.version_macro}")
    return int(found.group(1))


def is_handle(canonical):
    """CUstream and the like: pointers to structs that the header never defines."""
    if canonical.kind != ci.TypeKind.POINTER:
        return False
    pointee = canonical.get_pointee()
    return pointee.kind == ci.TypeKind.RECORD and pointee.get_size() < 0


def is_integer(canonical):
    return canonical.kind in _SIGNED or canonical.kind in _UNSIGNED


def declare(ctype, name):
    """A C declaration of `name` with this type (function pointers and arrays included)."""
    spelling = ctype.spelling
    if "(*" in spelling:
        return spelling.replace("(*", f"(*{name}", 1)
    if "[" in spelling:
        base, _, bounds = spelling.partition("[")
        return f"{base.strip()} {name}[{bounds}"
    return spelling + name if spelling.endswith("*") else f"{spelling} {name}"


def wire_type(ctype, what):
    """The wire type of a value of this type; HeaderError where it cannot travel."""
    t = ctype.get_canonical()
    if t.kind == ci.TypeKind.ENUM:
        return wire.I32
    if is_integer(t):
        signed = t.kind in _SIGNED
        if t.get_size() <= 4:
            return wire.I32 if signed else wire.U32
        return wire.I64 if signed else wire.U64
    if t.kind == ci.TypeKind.FLOAT:
        return wire.F32
    if t.kind == ci.TypeKind.DOUBLE:
        return wire.F64
    if t.kind == ci.TypeKind.CONSTANTARRAY:
        element = t.element_type
        if element.get_canonical().get_size() == 1:
            return wire.FixedBytes(t.element_count)
        return wire.FixedArray(wire_type(element, what), t.element_count)
    if t.kind == ci.TypeKind.RECORD:
        return _struct(ctype, t, what)
    if t.kind == ci.TypeKind.POINTER:
        raise HeaderError(f"{what} is a pointer: write the function by hand, or list it as unsupported")
    raise HeaderError(f"{what} has type {ctype.spelling}, which has no form on the wire")


def _struct(ctype, t, what):
    declaration = t.get_declaration()
    if declaration.kind == ci.CursorKind.UNION_DECL:
        raise HeaderError(f"{what} is a union: write the function by hand, or list it as unsupported")
    if t.get_size() < 0:
        raise HeaderError(f"{what} has the incomplete type {ctype.spelling}")
    members = []
    for f in t.get_fields():
        if f.is_bitfield() or not f.spelling:
            raise HeaderError(f"{what} holds a bit-field or an anonymous member: write the function by hand, or list it as unsupported")
        kind = wire_type(f.type, f"{what}.{f.spelling}")
        enum = f.type.get_canonical().kind == ci.TypeKind.ENUM
        members.append(wire.Member(f.spelling, kind, f.type.spelling if enum else None))
    name = re.sub(r"^(const|volatile) ", "", ctype.spelling)
    return wire.Struct(name, tuple(members))
