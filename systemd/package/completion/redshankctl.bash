# bash completion for redshankctl(1), which itself knows what goes where: this only finds the words.

_redshankctl()
{
	local rest=${COMP_LINE:0:COMP_POINT} words=() found=() i n=-1 word piece after stem=

	# Prefixes hold colons, at which readline breaks words: pieces that touch on the line are one word.
	for ((i = 0; i <= COMP_CWORD; i++)); do
		piece=${COMP_WORDS[i]}
		after=${rest#"${rest%%[![:blank:]]*}"}
		if [[ $after == "$rest" && n -ge 0 ]]; then
			words[n]+=${after:0:${#piece}}
		else
			words[++n]=${after:0:${#piece}}
		fi
		rest=${after:${#piece}}
	done
	word=${words[n]}

	mapfile -t found < <("${1:-redshankctl}" complete -- "${words[@]:1}" 2>/dev/null)
	COMPREPLY=()
	if [[ ${found[0]-} == :files ]]; then
		compopt -o filenames 2>/dev/null || :
		mapfile -t COMPREPLY < <(compgen -f -- "$word")
		return
	fi
	# What stands before the last colon is on the line already.
	case $COMP_WORDBREAKS in
	*:*) [[ $word == *:* ]] && stem=${word%"${word##*:}"} ;;
	esac
	for i in "${found[@]}"; do
		i=${i%%$'\t'*}
		COMPREPLY+=("${i#"$stem"}")
	done
}

complete -F _redshankctl redshankctl
