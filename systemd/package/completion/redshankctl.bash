# bash completion for redshankctl(1). Commands and options are those of `redshankctl --help`; services
# and prefixes are asked of the agent.

_redshankctl_words()
{
	redshankctl --help 2>/dev/null | case $1 in
	commands) sed -n '/^Commands:/,/^$/s/^  \([a-z][a-z-]*\).*/\1/p' ;;
	options) grep -o -e '--[a-z][a-z-]*' ;;
	esac
}

_redshankctl_names()
{
	# Health stands behind a service's name, and prefixes begin rows of their tables.
	redshankctl "$@" status 2>/dev/null |
		sed -n -e 's/^\([A-Za-z0-9][A-Za-z0-9_-]*\): \(healthy\|unhealthy\|undecided\).*/\1/p' \
			-e 's/^  \([0-9a-f.:]*\/[0-9]*\) .*/\1/p'
}

_redshankctl()
{
	local word=${COMP_WORDS[COMP_CWORD]} line=${COMP_LINE:0:COMP_POINT} words=() command="" socket=() i n

	# Prefixes hold colons, at which readline breaks words: the line is split here, at blanks.
	read -ra words <<<"$line"
	case $line in *[[:blank:]]) words+=("") ;; esac
	n=$((${#words[@]} - 1))
	word=${words[n]}
	for ((i = 1; i < n; i++)); do
		case ${words[i]} in
		--socket) socket=(--socket "${words[++i]}") ;;
		-*) ;;
		*) command=${command:-${words[i]}} ;;
		esac
	done

	COMPREPLY=()
	if [ "${words[n - 1]}" = --socket ]; then
		mapfile -t COMPREPLY < <(compgen -f -- "$word")
	elif [[ $word == -* ]]; then
		mapfile -t COMPREPLY < <(compgen -W "$(_redshankctl_words options)" -- "$word")
	elif [ -z "$command" ]; then
		mapfile -t COMPREPLY < <(compgen -W "$(_redshankctl_words commands)" -- "$word")
	else
		mapfile -t COMPREPLY < <(compgen -W "$(_redshankctl_names "${socket[@]}")" -- "$word")
		case $COMP_WORDBREAKS in
		*:*) COMPREPLY=("${COMPREPLY[@]#"${word%"${word##*:}"}"}") ;;
		esac
	fi
}

complete -F _redshankctl redshankctl
