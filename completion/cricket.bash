# Completion of cricketctl, cricket-run and cricket-server for bash.

_cricket_sessions() {
	local server=() i
	for ((i = 1; i < COMP_CWORD; i++)); do
		[[ ${COMP_WORDS[i]} == --server ]] && server=(--server "${COMP_WORDS[i + 1]}")
	done
	# Session ids are what ps prints in its first column; a dead server gives none, quickly.
	timeout 2 cricketctl "${server[@]}" ps 2>/dev/null | awk 'NR > 1 { print $1 }'
}

_cricketctl() {
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} command='' i
	local commands="ps info kill stats doctor checkpoint restore redirect migrate pause resume events image" options="--server --json --help"
	for ((i = 1; i < COMP_CWORD; i++)); do
		case ${COMP_WORDS[i]} in
		--server) ((i++)) ;;
		-*) ;;
		*) command=${COMP_WORDS[i]}; break ;;
		esac
	done
	COMPREPLY=()
	if [[ $prev == --server ]]; then
		return
	elif [[ -z $command ]]; then
		mapfile -t COMPREPLY < <(compgen -W "$commands $options --version" -- "$cur")
	elif [[ $cur == -* ]]; then
		case $command in
		checkpoint) options+=" --stop --with-client --deadline --compress --server-side --incremental --every --keep --to-memory --job" ;;
		restore) options+=" --gpu --server-side --client-address --with-client --job --place" ;;
		redirect) options+=" --to" ;;
		migrate) options+=" --to --gpu --client-address --deadline" ;;
		pause) options+=" --for --until --deadline" ;;
		events) options+=" --follow" ;;
		esac
		mapfile -t COMPREPLY < <(compgen -W "$options" -- "$cur")
	elif [[ $command == image && $prev == image ]]; then
		mapfile -t COMPREPLY < <(compgen -W "show verify diff flatten list remove" -- "$cur")
	elif [[ $command == doctor ]]; then
		mapfile -t COMPREPLY < <(compgen -c -- "$cur")
	elif [[ $command == restore || $prev != "$command" ]]; then
		compopt -o dirnames
	elif [[ $command =~ ^(kill|stats|checkpoint|redirect|migrate|pause|resume)$ ]]; then
		mapfile -t COMPREPLY < <(compgen -W "$(_cricket_sessions)" -- "$cur")
	fi
}

_cricket_run() {
	local cur=${COMP_WORDS[COMP_CWORD]} i
	for ((i = 1; i < COMP_CWORD; i++)); do
		case ${COMP_WORDS[i]} in
		--server) ((i++)) ;;
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
	[[ ${COMP_WORDS[COMP_CWORD - 1]} == --server ]] && return
	if [[ $cur == -* ]]; then
		mapfile -t COMPREPLY < <(compgen -W "--server --soft --verbose --help --version" -- "$cur")
	else
		mapfile -t COMPREPLY < <(compgen -c -- "$cur")
	fi
}

_cricket_server() {
	local cur=${COMP_WORDS[COMP_CWORD]}
	COMPREPLY=()
	case ${COMP_WORDS[COMP_CWORD - 1]} in
	--driver) compopt -o filenames; mapfile -t COMPREPLY < <(compgen -W soft -- "$cur"; compgen -f -- "$cur") ;;
	--log-level) mapfile -t COMPREPLY < <(compgen -W "error warning info debug quiet" -- "$cur") ;;
	--user) mapfile -t COMPREPLY < <(compgen -u -- "$cur") ;;
	--address-file | --socket | --config | --token-file) compopt -o default ;;
	--listen | --gpus | --session-memory | --session-host-memory | --max-* | --image-space | --log-burst) ;;
	*) mapfile -t COMPREPLY < <(compgen -W "--listen --address-file --socket --driver --library-path --gpus --session-memory --session-host-memory --max-sessions --max-sessions-per-user --max-waiting
		--max-waiting-per-peer --max-connections-per-user --max-stages-per-user --image-space --max-delay --log-burst --config
		--print-config --log-level --token-file --insecure --user --grace --claim-timeout --image-dir --image-memory --hooks --on-term --version --help" -- "$cur") ;;
	esac
}

complete -F _cricketctl cricketctl
complete -F _cricket_run cricket-run
complete -F _cricket_server cricket-server
