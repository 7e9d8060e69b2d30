#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the completions of cricketctl, cricket-run and cricket-server for one shell from their option tables.

	generate.py bash|zsh|fish OPTIONS.json [PROGRAM]

OPTIONS.json is what describe_options.c prints. The text goes to stdout. For bash and zsh one file serves the three programs; fish looks for a file
by the name of each program, so PROGRAM says which one.
"""

import json
import re
import shlex
import sys

HEAD = "# Completion of {} for {}; completion/generate.py makes it from the programs' option tables.\n"


def brief(text):
    """The first clause of a help text: what a shell shows beside an option."""
    return re.split(r"; | \(|\. ", text, maxsplit=1)[0]


def long(option):
    return "--" + option["name"]


def names(option):
    return (["-" + option["letter"]] if option["letter"] else []) + [long(option)]


def takers(program):
    """All options that take a value, short forms too."""
    return [name for option in program["options"] if option["argument"] for name in names(option)]


def everywhere(program):
    return [option for option in program["options"] if option["everywhere"]]


def taken_by(program, subcommand):
    return [option for option in program["options"] if option["name"] in subcommand["options"]]


# ---- bash

BASH_HELPERS = r"""
_cricket_sessions() {
	local server=() i
	for ((i = 1; i < COMP_CWORD; i++)); do
		[[ ${COMP_WORDS[i]} == --server ]] && server=(--server "${COMP_WORDS[i + 1]}")
	done
	# Session IDs are in the first column of ps; a server that does not answer must not hold up the shell.
	timeout 2 cricketctl "${server[@]}" ps 2>/dev/null | awk 'NR > 1 { print $1 }'
}

# KIND WORDS: offers values of that kind, and these words.
_cricket_values() {
	local cur=${COMP_WORDS[COMP_CWORD]} found=()
	case $1 in
	file) compopt -o filenames; mapfile -t found < <(compgen -f -- "$cur") ;;
	directory) compopt -o filenames; mapfile -t found < <(compgen -d -- "$cur") ;;
	user) mapfile -t found < <(compgen -u -- "$cur") ;;
	command) mapfile -t found < <(compgen -c -- "$cur") ;;
	session) mapfile -t found < <(compgen -W "$(_cricket_sessions)" -- "$cur") ;;
	esac
	mapfile -t COMPREPLY < <(compgen -W "$2" -- "$cur")
	COMPREPLY+=("${found[@]}")
}
"""

BASH_CTL = r"""
_cricketctl() {
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} command='' count=0 i
	for ((i = 1; i < COMP_CWORD; i++)); do
		case ${COMP_WORDS[i]} in
		@TAKERS@) ((i++)) ;;
		-*) ;;
		*) if [[ -z $command ]]; then command=${COMP_WORDS[i]}; else ((++count)); fi ;;
		esac
	done
	COMPREPLY=()
	case $prev in
@VALUES@	esac
	local options="@EVERYWHERE@" kinds=() words=''
	case $command in
	'') mapfile -t COMPREPLY < <(compgen -W "@SUBCOMMANDS@ $options" -- "$cur"); return ;;
@CASES@	esac
	if [[ $cur == -* ]]; then
		mapfile -t COMPREPLY < <(compgen -W "$options" -- "$cur")
	else
		[[ $count == 0 ]] || words=''
		_cricket_values "${kinds[count]}" "$words"
	fi
}
"""

BASH_RUN = r"""
_cricket_run() {
	local cur=${COMP_WORDS[COMP_CWORD]} i
	for ((i = 1; i < COMP_CWORD; i++)); do
		case ${COMP_WORDS[i]} in
		@TAKERS@) ((i++)) ;;
		-*) ;;
		*) # the program and its own completion
			if declare -F _command_offset >/dev/null; then
				_command_offset "$i"
			else
				compopt -o default
			fi
			return ;;
		esac
	done
	COMPREPLY=()
	case ${COMP_WORDS[COMP_CWORD - 1]} in
@VALUES@	esac
	if [[ $cur == -* ]]; then
		mapfile -t COMPREPLY < <(compgen -W "@EVERYWHERE@" -- "$cur")
	else
		_cricket_values command ''
	fi
}
"""

BASH_SERVER = r"""
_cricket_server() {
	local cur=${COMP_WORDS[COMP_CWORD]}
	COMPREPLY=()
	case ${COMP_WORDS[COMP_CWORD - 1]} in
@VALUES@	esac
	mapfile -t COMPREPLY < <(compgen -W "@EVERYWHERE@" -- "$cur")
}
"""


def bash_fill(template, program):
    values = {}
    for option in program["options"]:
        if option["argument"]:
            values.setdefault((option["value"], " ".join(option["words"])), []).extend(names(option))
    cases = ""
    for subcommand in program["subcommands"]:
        options = " ".join(map(long, taken_by(program, subcommand)))
        cases += (f"\t{subcommand['name']}) kinds=({' '.join(subcommand['values'])})" + (f" options+=\" {options}\"" if options else "") +
                  (f" words=\"{' '.join(subcommand['words'])}\"" if subcommand["words"] else "") + " ;;\n")
    return (template.replace("@TAKERS@", " | ".join(takers(program)))
            .replace("@VALUES@", "".join(f"\t{' | '.join(options)}) _cricket_values {kind} '{words}'; return ;;\n"
                                         for (kind, words), options in values.items()))
            .replace("@EVERYWHERE@", " ".join(name for option in everywhere(program) for name in names(option)[-1:]))
            .replace("@SUBCOMMANDS@", " ".join(subcommand["name"] for subcommand in program["subcommands"]))
            .replace("@CASES@", cases))


def bash(programs):
    text = HEAD.format("cricketctl, cricket-run and cricket-server", "bash") + BASH_HELPERS
    for name, template in (("cricketctl", BASH_CTL), ("cricket-run", BASH_RUN), ("cricket-server", BASH_SERVER)):
        text += bash_fill(template, programs[name])
    return text + "\ncomplete -F _cricketctl cricketctl\ncomplete -F _cricket_run cricket-run\ncomplete -F _cricket_server cricket-server\n"


# ---- zsh

ZSH_HELPERS = r"""
_cricket_sessions() {
  local -a sessions server
  local at=${words[(i)--server]}
  (( at < $#words )) && server=(--server $words[at+1])
  # Session IDs are in the first column of ps; a server that does not answer must not hold up the shell.
  sessions=(${(f)"$(timeout 2 cricketctl $server ps 2>/dev/null | awk 'NR > 1 { print $1 }')"})
  compadd -a sessions
}
"""

ZSH_ACTIONS = {"text": "", "file": "_files", "directory": "_directories", "user": "_users", "session": "_cricket_sessions", "command": "_command_names -e"}


def zsh_text(text):
    """Text inside an _arguments specification."""
    return re.sub(r"([\[\]:\\])", r"\\\1", text)


def zsh_action(kind, words):
    if not words:
        return ZSH_ACTIONS[kind] or " "
    if kind == "text":
        return f"({' '.join(words)})"
    return "_alternative 'words:word:(%s)' 'values:value:%s'" % (" ".join(words), ZSH_ACTIONS[kind])


def zsh_options(options):
    for option in options:
        end = f"[{zsh_text(brief(option['help']))}]"
        if option["argument"]:
            end += f":{zsh_text(option['argument'])}:{zsh_action(option['value'], option['words'])}"
        for name in names(option):
            mark = "" if not option["argument"] else "=" if name.startswith("--") else "+"
            # Options that may be given several times stay on offer.
            yield shlex.quote(("*" if option["argument"] else "") + name + mark + end)


def zsh_call(specifications, indent):
    return "_arguments -s -S " + " ".join(f"\\\n{indent}{one}" for one in specifications)


def zsh_ctl(program):
    listed = " ".join(shlex.quote(f"{subcommand['name']}:{subcommand['help']}") for subcommand in program["subcommands"])
    text = ("\n_cricketctl() {\n  local curcontext=$curcontext state line ret=1\n  local -a subcommands\n  typeset -A opt_args\n"
            f"  subcommands=({listed})\n  " +
            zsh_call(["-C", *zsh_options(everywhere(program)), "'1:subcommand:->subcommand'", "'*::argument:->argument'"], "    ") + " && ret=0\n"
            "  case $state in\n  subcommand) _describe -t commands subcommand subcommands && ret=0 ;;\n  argument)\n"
            "    curcontext=${curcontext%:*}-$line[1]:\n    case $line[1] in\n")
    for subcommand in program["subcommands"]:
        specifications = list(zsh_options(everywhere(program) + taken_by(program, subcommand)))
        for index, kind in enumerate(subcommand["values"], 1):
            words = subcommand["words"] if index == 1 else []
            action = "_normal" if subcommand["rest"] else zsh_action(kind, words)
            specifications.append(shlex.quote(f"{'*:' if subcommand['rest'] else index}:{kind}:{action}"))
        text += f"    {subcommand['name']}) " + zsh_call(specifications, "      ") + " && ret=0 ;;\n"
    return text + "    esac ;;\n  esac\n  return ret\n}\n"


def zsh(programs):
    text = "#compdef cricketctl cricket-run cricket-server\n" + HEAD.format("cricketctl, cricket-run and cricket-server", "zsh") + ZSH_HELPERS
    text += zsh_ctl(programs["cricketctl"])
    run = [*zsh_options(programs["cricket-run"]["options"]), "'(-)1:command:_command_names -e'", "'*::argument:_normal'"]
    text += "\n_cricket_run() {\n  " + zsh_call(run, "    ") + "\n}\n"
    text += "\n_cricket_server() {\n  " + zsh_call(zsh_options(programs["cricket-server"]["options"]), "    ") + "\n}\n"
    return text + '\ncase $service in\ncricketctl) _cricketctl "$@" ;;\ncricket-run) _cricket_run "$@" ;;\ncricket-server) _cricket_server "$@" ;;\nesac\n'


# ---- fish

FISH_SESSIONS = r"""
function __cricket_sessions
    set -l server
    set -l tokens (commandline -opc)
    if set -l at (contains -i -- --server $tokens)
        set server --server $tokens[(math $at + 1)]
    end
    # Session IDs are in the first column of ps; a server that does not answer must not hold up the shell.
    timeout 2 cricketctl $server ps 2>/dev/null | awk 'NR > 1 { print $1 }'
end
"""

# The words of the command line before the cursor that are neither options nor their values.
FISH_WORDS = r"""
function @FUNCTION@
    set -l skip 0
    for token in (commandline -opc)[2..-1]
        if test $skip = 1
            set skip 0
        else if contains -- $token @TAKERS@
            set skip 1
        else if not string match -q -- '-*' $token
            echo $token
        end
    end
end
"""

FISH_VALUES = {"text": "", "file": "(__fish_complete_path (commandline -ct))", "directory": "(__fish_complete_directories (commandline -ct))",
               "user": "(__fish_complete_users)", "session": "(__cricket_sessions)", "command": "(__fish_complete_command)"}


def fish_quote(text):
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def fish_values(kind, words):
    return " ".join(filter(None, [" ".join(words), FISH_VALUES[kind]]))


def fish_option(program, option, condition):
    line = f"complete -c {program['program']}" + (f" -n {fish_quote(condition)}" if condition else "")
    if option["letter"]:
        line += f" -s {option['letter']}"
    line += f" -l {option['name']} -d {fish_quote(brief(option['help']))}"
    if option["argument"]:
        values = fish_values(option["value"], option["words"])
        line += " -x" + (f" -a {fish_quote(values)}" if values else "")
    return line + "\n"


def fish(program):
    name = program["program"]
    words = f"__{name.replace('-', '_')}_words"
    text = HEAD.format(name, "fish") + (FISH_SESSIONS if program["subcommands"] else "")
    text += FISH_WORDS.replace("@FUNCTION@", words).replace("@TAKERS@", " ".join(takers(program)))
    text += f"\ncomplete -c {name} -f\n"
    # After the first word of cricket-run everything belongs to the program that is run.
    before = f"test -z \"$({words})\"" if name == "cricket-run" else ""
    for option in everywhere(program):
        text += fish_option(program, option, before)
    if name == "cricket-run":
        text += f"complete -c {name} -x -a '(__fish_complete_subcommand {' '.join(takers(program))})'\n"
    for subcommand in program["subcommands"]:
        text += f"complete -c {name} -n 'test -z \"$({words})\"' -a {subcommand['name']} -d {fish_quote(subcommand['help'])}\n"
        of = f"set -l words ({words}); and test \"$words[1]\" = {subcommand['name']}"
        for option in taken_by(program, subcommand):
            text += fish_option(program, option, of)
        for index, kind in enumerate(subcommand["values"], 1):
            values = fish_values(kind, subcommand["words"] if index == 1 else [])
            if values:
                text += f"complete -c {name} -n {fish_quote(f'{of}; and test (count $words) = {index}')} -a {fish_quote(values)}\n"
    return text


def main(shell, path, program=None):
    with open(path, encoding="utf-8") as f:
        programs = {entry["program"]: entry for entry in json.load(f)}
    sys.stdout.write(fish(programs[program]) if shell == "fish" else {"bash": bash, "zsh": zsh}[shell](programs))


if __name__ == "__main__":
    main(*sys.argv[1:])
