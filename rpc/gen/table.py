# SPDX-License-Identifier: Apache-2.0
"""The tables rpc/api/*.api: their one grammar, which the head of cuda.api describes, and its parser.

Every error names the file and the line.  What needs the headers (does the function exist, which of its parameters are
pointers) is checked later, by model.py and declared.py.
"""

import fnmatch
import itertools
import re

from library import LIBRARIES, SIZED

DIRECTIONS = ("in", "out", "inout", "string")
# Of a forwarded library: what else a pointer may be, and what else a procedure's lines may say.
FORWARDED = ("device", "scalar", "zero", "result", "update", "in", "optional", "out", "string")
MANNERS = ("executes", "beside")
EFFECTS = ("creates", "destroys", "sets", "seals", "stateless")

# CKT_LIB_PROC_MAX of rpc/wire.h.
FORWARDED_PROC_MAX = 2047
# Bytes of one record behind its header: what no message may exceed whatever the table says.
MESSAGE_MAX = (1 << 20) + 4096 - 72

_NAME = re.compile(r"^[A-Za-z_][A-Za-z0-9_]*$")


class TableError(Exception):
    """A mistake in the table, with its place."""

    def __init__(self, path, line, message):
        super().__init__(f"{path}:{line}: {message}")
        self.path, self.line, self.message = path, line, message


class Field:
    """One `arg` or `res` line: kind is one of the library's argument_kinds or result_kinds; limit is None but for SIZED."""

    def __init__(self, kind, name, limit, line):
        self.kind, self.name, self.limit, self.line = kind, name, limit, line


class Pointer:
    """What a pointer parameter of a generated function is: direction of DIRECTIONS or FORWARDED; count is the name of the parameter that
    says how many elements an `in` or `optional` array has, None for one element; limit is the bound of a string or of an array; size is an expression
    in C of the bytes of one element, None where its type says it; place, of `out`: an expression in C of the worker's, for where the library
    writes, None for a variable of the handler's."""

    def __init__(self, direction, name, count, limit, line, size=None, place=None):
        self.direction, self.name, self.count, self.limit, self.line, self.size, self.place = direction, name, count, limit, line, size, place


class Procedure:
    def __init__(self, number, name, hand, mode, numbered, line):
        self.number, self.name, self.hand, self.mode, self.numbered, self.line = number, name, hand, mode, numbered, line
        self.args, self.results, self.pointers = [], [], {}
        # Of a forwarded library.  effect: of EFFECTS on the object that the first argument names; key: the field that tells calls apart
        # of which only the last counts; checks: expressions in C, with their lines, of what the library refuses.
        self.effect = self.key = None
        self.checks = []
        # manners: of MANNERS; afterwards: expressions in C, with their lines, for the client once the library has answered success.
        self.manners, self.afterwards = set(), []

    @property
    def generated(self):
        return not self.hand

    @property
    def batched(self):
        return self.mode == "batched"


class Rule:
    """A line behind the procedures: how names of the library that are no procedure are answered.

    kind is of the library's rules; names are exact but for `unsupported` and `legacy`, where they may be patterns; target
    is the other function of `same` and `per_thread` (None: the name without _ptsz); reason belongs to `unsupported` and `undeclared`;
    since is the CUDA version that brought the name.  newer: as unsupported where the headers have the name, else as undeclared."""

    def __init__(self, kind, names, line, target=None, sync=False, reason=None, since=0):
        self.kind, self.names, self.line = kind, names, line
        self.target, self.sync, self.reason, self.since = target, sync, reason, since

    def target_of(self, name):
        return self.target or (name[:-len("_ptsz")] if self.kind == "per_thread" else None)


class Table:
    """library: of library.py, from the table's first line."""

    def __init__(self, path):
        self.path, self.library = path, None
        self.procedures = []
        self.rules = []
        # Of a forwarded library: what parameters of that name are where a procedure does not say, and what is refused of parameters of a
        # name or a type: (name or type, expression with `it` for the parameter, line).  learns: types; what has a parameter of one is waited
        # for until the library has taken such a call: type -> line.
        self.pointers = {}
        self.checks = []
        self.learns = {}

    def error(self, line, message):
        return TableError(self.path, line, message)

    def procedure(self, name):
        return next((p for p in self.procedures if p.name == name), None)

    def exact_rules(self):
        """name -> Rule for every name written out in full."""
        return {n: r for r in self.rules for n in r.names if not is_pattern(n)}

    def pattern_rule(self, name):
        """The first line one of whose patterns covers the name."""
        for rule in self.rules:
            if any(is_pattern(n) and fnmatch.fnmatchcase(name, n) for n in rule.names):
                return rule
        return None


def is_pattern(name):
    return "*" in name


def expand(word):
    """The names that cublas{S,D}gemm{,_64} stands for: the last bracket changes fastest.  None where a bracket is not closed."""
    parts = re.split(r"[{}]", word)
    if len(parts) % 2 == 0 or word.count("{") != word.count("}"):
        return None
    choices = [part.split(",") if i % 2 else [part] for i, part in enumerate(parts)]
    return ["".join(choice) for choice in itertools.product(*choices)]


def parse(path, text=None):
    if text is None:
        with open(path, encoding="utf-8") as f:
            text = f.read()
    return _Parser(path).run(text)


class _Parser:
    def __init__(self, path):
        self.table = Table(path)
        self.current = None     # the procedures that indented lines belong to: several where a name had brackets
        self.line = 0

    def fail(self, message):
        raise self.table.error(self.line, message)

    def run(self, text):
        for number, raw in enumerate(text.splitlines(), 1):
            self.line = number
            content = raw.split("#", 1)[0].rstrip()
            words = content.split()
            if not words:
                continue
            if not self.table.library:
                self.library(words)
            elif content[0].isspace():
                self.detail(words)
            elif words[0].isdigit():
                self.procedure(words)
            else:
                self.rule(words)
        for procedure in self.table.procedures:
            self.check(procedure)
        return self.table

    def library(self, words):
        if len(words) != 2 or words[0] != "library" or words[1] not in LIBRARIES:
            self.fail(f"a table begins with the line: library NAME; there are: {' '.join(LIBRARIES)}")
        self.table.library = LIBRARIES[words[1]]

    def name(self, word, what):
        if not _NAME.match(word):
            self.fail(f"'{word}' is not a name for {what}")
        return word

    def function(self, word, patterns=False):
        """A name that stands for a function of the library; where headers are read, they say more.  patterns: a pattern may be one."""
        library = self.table.library
        if library.declared and (is_pattern(word) or not word.startswith(library.prefix)):
            self.fail(f"'{word}' is not the full name of a function of {library.name}, which begins with {library.prefix}")
        return word if patterns and is_pattern(word) else self.name(word, "a function")

    def count(self, word, what):
        if not word.isdigit() or int(word) == 0:
            self.fail(f"{what}: '{word}' is not a positive number")
        return int(word)

    # ---- procedures

    def procedure(self, words):
        library = self.table.library
        if self.table.rules:
            self.fail(f"procedures stand before the first {', '.join(library.rules[:-1])} or {library.rules[-1]} line")
        if len(words) < 3:
            self.fail("a procedure is NUMBER NAME CLASS [flag ...]")
        names = self.names(words[1])
        self.current = [self.one_procedure(int(words[0]) + i, name, words[2:]) for i, name in enumerate(names)]

    def names(self, word):
        """A word with brackets in a forwarded library's table is several names."""
        names = expand(word) if self.table.library.forwarded else [word]
        if names is None:
            self.fail(f"'{word}' has brackets that do not match")
        return names

    def one_procedure(self, number, name, flags):
        library = self.table.library
        self.name(name, "a procedure")
        most = FORWARDED_PROC_MAX if library.forwarded else 65535
        if number == 0 or number > most:
            self.fail(f"procedure number {number} of {name} is not in 1..{most}")
        for other in self.table.procedures:
            if other.number == number:
                self.fail(f"procedure number {number} of {name} is {other.name}'s (line {other.line}); numbers are only appended")
            if other.name == name:
                self.fail(f"procedure {name} stands already on line {other.line}")
        hand = flags[0] == "hand"
        rest = flags[1:] if hand else flags
        if not rest or rest[0] not in library.modes:
            wrong = rest[0] if rest else "nothing"
            self.fail(f"class of {name}: {' or '.join(library.modes)} expected, possibly behind hand, not {wrong}")
        for flag in rest[1:]:
            if flag != "numbered" or library.declared:
                self.fail(f"unknown flag '{flag}' of {name}; there is: {'none' if library.declared else 'numbered'}")
        numbered = "numbered" in rest
        if numbered and rest[0] == "batched":
            self.fail(f"{name} is batched, and batched calls are numbered always: leave the flag out")
        if library.declared:
            self.function(name)
        elif library.forwarded and hand:
            pass    # One of the library's functions, or an internal name.
        elif not hand and not name.startswith(library.prefix):
            self.fail(f"{name} is no function of {library.header}: an internal procedure has class hand")
        elif hand and name.startswith(library.prefix):
            self.fail(f"{name} is a function of {library.header}; a hand-written procedure has a lower-case name of its own")
        made = Procedure(number, name, hand, rest[0], numbered, self.line)
        self.table.procedures.append(made)
        return made

    def detail(self, words):
        if self.current is None:
            self.fail("an indented line belongs to a procedure, and there is none before it")
        forwarded = self.table.library.forwarded
        directions = FORWARDED if forwarded else DIRECTIONS
        for procedure in self.current:
            if words[0] in ("arg", "res"):
                self.field(procedure, words)
            elif words[0] in directions:
                self.pointer(procedure, words)
            elif forwarded and words[0] in EFFECTS:
                self.effect(procedure, words)
            elif forwarded and words[0] == "check":
                self.check_line(procedure, words)
            elif forwarded and words[0] == "then":
                self.then(procedure, words)
            elif forwarded and words[0] in MANNERS:
                self.manner(procedure, words)
            else:
                more = f" {' '.join(EFFECTS)} check then {' '.join(MANNERS)}" if forwarded else ""
                self.fail(f"unknown line '{words[0]}'; there are: arg res {' '.join(directions)}{more}")

    def effect(self, procedure, words):
        if procedure.effect:
            self.fail(f"{procedure.name} {procedure.effect} already")
        if len(words) > (2 if words[0] == "sets" else 1):
            self.fail("creates, destroys, sets [FIELD], seals or stateless expected")
        procedure.effect, procedure.key = words[0], words[1] if len(words) == 2 else None

    def manner(self, procedure, words):
        if procedure.hand or len(words) != 1 or words[0] in procedure.manners:
            self.fail(f"{words[0]} stands alone, once, and below a procedure that is generated")
        if (words[0] == "executes") != procedure.batched:
            self.fail(f"{procedure.name} is {procedure.mode}: what executes is batched, and what runs beside the executor waits")
        procedure.manners.add(words[0])

    def then(self, procedure, words):
        if procedure.hand or procedure.batched or len(words) < 2:
            self.fail("then EXPRESSION expected, below a procedure that is generated and waits")
        procedure.afterwards.append((" ".join(words[1:]), self.line))

    def check_line(self, procedure, words):
        if procedure.hand:
            self.fail(f"{procedure.name} is hand-written: check there")
        if len(words) < 2:
            self.fail("check EXPRESSION expected")
        procedure.checks.append((" ".join(words[1:]), self.line))

    def field(self, procedure, words):
        library = self.table.library
        if procedure.generated and not library.declared:
            self.fail(f"{procedure.name} takes its types from {library.header}: arg and res lines are for hand-written procedures")
        if len(words) < 3:
            self.fail(f"{words[0]} TYPE NAME [MAX] expected")
        kind, name, limit = words[1], self.name(words[2], "a field"), None
        known = library.argument_kinds if words[0] == "arg" else library.result_kinds
        if kind not in known:
            self.fail(f"unknown type '{kind}' of {name}; there are: {' '.join(known)}")
        if kind in SIZED:
            if len(words) != 4:
                self.fail(f"{kind} {name} needs its bound: {words[0]} {kind} {name} MAX")
            limit = self.count(words[3], f"bound of {name}")
        elif len(words) != 3:
            self.fail(f"{kind} {name} takes no bound")
        fields = procedure.args if words[0] == "arg" else procedure.results
        if any(f.name == name for f in (procedure.args + procedure.results if library.declared else fields)):
            self.fail(f"{procedure.name} has a field {name} already")
        fields.append(Field(kind, name, limit, self.line))

    def pointer(self, procedure, words):
        if self.table.library.declared:
            self.fail(f"{procedure.name} has no types but those of the table: give its parameters by arg and res lines")
        if procedure.hand:
            self.fail(f"{procedure.name} is hand-written: give its wire form by arg and res lines")
        if len(words) < 2:
            self.fail(f"{words[0]} NAME ... expected")
        if self.table.library.forwarded:
            self.forwarded_pointer(procedure.pointers, procedure.name, words)
            return
        direction, name = words[0], self.name(words[1], "a parameter")
        if name in procedure.pointers:
            self.fail(f"{procedure.name} says already what {name} is")
        count = limit = None
        if direction == "string":
            if len(words) != 3:
                self.fail(f"string {name} MAX expected")
            limit = self.count(words[2], f"bound of {name}")
        elif len(words) == 4 and direction == "in":
            count, limit = self.name(words[2], "a count"), self.count(words[3], f"bound of {name}")
        elif len(words) != 2:
            self.fail(f"{direction} {name}{', or in NAME COUNT MAX' if direction == 'in' else ''} expected")
        procedure.pointers[name] = Pointer(direction, name, count, limit, self.line)

    def forwarded_pointer(self, into, owner, words):
        """device NAME ... | scalar, zero, result, update NAME ... [MOST] [BY SIZE] | in NAME [COUNT MAX [BY SIZE]] | optional NAME COUNT MAX [BY SIZE] |
        out NAME [AT PLACE] | string NAME MAX"""
        direction, names, size, count, limit, place = words[0], words[1:], None, None, None, None
        if "AT" in names and direction == "out":
            at = names.index("AT")
            names, place = names[:at], " ".join(names[at + 1:])
            if not place:
                self.fail("AT PLACE: an expression in C of where the library writes expected")
        if "BY" in names and direction in ("scalar", "zero", "result", "update", "in", "optional"):
            at = names.index("BY")
            names, size = names[:at], " ".join(names[at + 1:])
            if not size:
                self.fail("BY SIZE: an expression in C of the element's bytes expected")
        if direction == "string" and len(names) == 2:
            limit = self.count(names.pop(), f"bound of {names[0]}")
        elif direction in ("in", "optional") and len(names) == 3:
            limit = self.count(names.pop(), f"bound of {names[0]}")
            count = self.name(names.pop(), "a count")
        elif direction in ("scalar", "zero", "result", "update") and len(names) == 2 and names[1].isdigit():
            limit = self.count(names.pop(), f"most bytes of {names[0]}")
        elif direction in ("string", "optional") or direction in ("in", "out") and len(names) != 1 or not names:
            self.fail({"string": "string NAME MAX expected", "optional": "optional NAME COUNT MAX [BY SIZE] expected", "in": "in NAME, or in NAME COUNT MAX [BY SIZE] expected"}.get(  # noqa: E501
                direction, f"{direction} NAME expected"))
        for name in names:
            if self.name(name, "a parameter") in into:
                self.fail(f"{owner} says already what {name} is")
            into[name] = Pointer(direction, name, count, limit, self.line, size, place)

    def default(self, words):
        """Lines before the procedures: device NAME ... | scalar NAME ... | check NAME|TYPE EXPRESSION with `it` | learns TYPE ..."""
        if self.table.procedures:
            self.fail(f"{words[0]} lines for the whole table stand before the first procedure")
        if words[0] == "learns":
            if len(words) < 2:
                self.fail("learns TYPE ... expected")
            self.table.learns.update({self.name(word, "a type"): self.line for word in words[1:]})
        elif words[0] != "check":
            self.forwarded_pointer(self.table.pointers, "the table", words)
        elif len(words) < 3 or not re.search(r"\bit\b", " ".join(words[2:])):
            self.fail("check NAME|TYPE EXPRESSION expected, with `it` for the parameter")
        else:
            self.table.checks.append((words[1], " ".join(words[2:]), self.line))

    def check(self, procedure):
        self.line = procedure.line
        if procedure.batched and procedure.results:
            self.fail(f"{procedure.name} is batched and so has no results: make it wait, or remove its res lines")
        for fields, what in ((procedure.args, "arguments"), (procedure.results, "results")):
            if sum(field_size_max(f) for f in fields) > 2 * MESSAGE_MAX:
                self.fail(f"the {what} of {procedure.name} may be far larger than a record; lower the bounds")

    # ---- rules

    def rule(self, words):
        self.current, library = None, self.table.library
        if library.forwarded:
            if words[0] in ("device", "scalar", "check", "learns"):
                self.default(words)
                return
            words = [name for word in words for name in self.names(word)]
        kind, since = words[0], 0
        if kind not in library.rules:
            self.fail(f"unknown line '{kind}'; there are: NUMBER {' '.join(library.rules)}")
        if kind != "unsupported" and library.version_macro and "since" in words:
            at = words.index("since")
            if at != len(words) - 2:
                self.fail("since VERSION stands at the end of the line")
            since, words = self.count(words[-1], "since"), words[:at]
        if kind == "local":
            rule = Rule(kind, [self.function(w) for w in words[1:]], self.line, since=since)
            if not rule.names:
                self.fail("local NAME ... expected")
        elif kind == "per_thread" and "AS" not in words:
            names = [self.name(w, "a function") for w in words[1:]]
            if not names or any(not n.endswith("_ptsz") for n in names):
                self.fail("per_thread NAME_ptsz ..., or per_thread NAME AS NAME [sync] expected")
            rule = Rule(kind, names, self.line, since=since)
        elif kind == "legacy" and "AS" not in words:
            rule = Rule(kind, [self.function(w, patterns=True) for w in words[1:]], self.line)
            if not rule.names:
                self.fail("legacy NAME ..., or legacy NAME AS NAME expected")
        elif kind in ("same", "per_thread", "legacy"):
            sync = kind == "per_thread" and words[-1] == "sync"
            core = words[:-1] if sync else words
            if len(core) != 4 or core[2] != "AS":
                self.fail(f"{kind} NAME AS NAME{' [sync]' if kind == 'per_thread' else ''} expected")
            rule = Rule(kind, [self.name(core[1], "a function")], self.line, sync=sync, since=since,
                        target=self.name(core[3], "a function"))
        else:
            names = []
            rest = words[1:]
            while rest and rest[0].startswith(library.prefix):
                names.append(self.function(rest.pop(0), patterns=True))
            if not names or not rest:
                self.fail(f"{kind} NAME ... REASON expected (the reason does not begin with {library.prefix})")
            if kind in ("undeclared", "newer") and any(is_pattern(n) for n in names):
                self.fail(f"{kind} names are written out: no header lists them")
            rule = Rule(kind, names, self.line, reason=" ".join(rest))
        known = self.table.exact_rules()
        for name in rule.names:
            if not is_pattern(name) and name in known:
                self.fail(f"{name} stands already on line {known[name].line}")
            if rule.names.count(name) > 1:
                self.fail(f"{name} stands twice in this line")
            if self.table.procedure(name):
                self.fail(f"{name} is a procedure already, on line {self.table.procedure(name).line}")
        self.table.rules.append(rule)


def field_size_max(field):
    """Upper bound of the field's bytes on the wire."""
    if field.kind in ("opaque", "string", "block"):
        return 4 + (field.limit + 3) // 4 * 4
    if field.kind == "u32s":
        return 4 + 4 * field.limit
    if field.kind == "u64s":
        return 4 + 8 * field.limit
    return 4 if field.kind in ("u32", "i32", "f32") else 8
