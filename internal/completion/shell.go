// Package completion writes the scripts by which shells complete the command lines of softvpi and its tools. The scripts know no
// options: they ask the program for the words that fit, so that one installed today offers what the program can do tomorrow.
package completion

import (
	"fmt"
	"io"
	"strings"
)

// Shells are those for which there is a script.
var Shells = []string{"bash", "zsh", "fish"}

// Ask is the hidden command that the scripts run. Its arguments are the words of the command line, from the program's name to the one
// at the cursor, which may be empty; it prints the words that fit, one a line.
const Ask = "complete"

// bash takes a word apart at "=", and wants only what comes behind it. It offers names of files where the program has nothing to
// offer.
const bash = `_softvpi() {
	local IFS=$'\n' w glue= words=()
	for w in "${COMP_WORDS[@]:0:COMP_CWORD+1}"; do
		if [ ${#words[@]} -gt 0 ] && [ "$w" = = ]; then
			words[-1]+== glue=1
		elif [ "$glue" ]; then
			words[-1]+=$w glue=
		else
			words+=("$w")
		fi
	done
	w=${words[-1]}
	words[0]=${words[0]##*/}
	COMPREPLY=($(PROGRAM ASK -- "${words[@]}" 2>/dev/null))
	[[ $w != *=* ]] || COMPREPLY=("${COMPREPLY[@]#*=}")
	COMPREPLY=("${COMPREPLY[@]// /\\ }")
	[ ${#COMPREPLY[@]} -ne 1 ] || [[ ${COMPREPLY[0]} != *= ]] || compopt -o nospace 2>/dev/null
}
complete -o default -F _softvpi NAMES
`

// zsh quotes what it inserts. It offers names of files where the program has nothing to offer, behind "=" too, and adds no space where a
// value is to follow.
const zsh = `#compdef NAMES
_softvpi() {
	local -a found open
	local -a given=("${words[@]:0:$CURRENT}")
	given[1]=${given[1]:t}
	found=("${(@f)$(PROGRAM ASK -- "${given[@]}" 2>/dev/null)}")
	if [ -z "$found" ]; then
		compset -P '-*='
		_files
		return
	fi
	open=(${(M)found:#*=})
	found=(${found:#*=})
	compadd -S '' -a open
	compadd -a found
}
if [ "$funcstack[1]" = _softvpi ]; then _softvpi "$@"; else compdef _softvpi NAMES; fi
`

// fish would offer names of files beside what the program offers, so it is told when they are wanted.
const fish = `function __softvpi
	set -l words (commandline -opc) (commandline -ct)
	set words[1] (basename $words[1])
	set -l found (PROGRAM ASK -- $words 2>/dev/null)
	if test (count $found) -gt 0
		printf '%s\n' $found
		return
	end
	set -l option (string match -r '^-[^=]*=' -- $words[-1]; or echo '')
	for path in (__fish_complete_path (string replace -r '^-[^=]*=' '' -- $words[-1]))
		printf '%s\n' $option$path
	end
end
for name in NAMES
	complete -c $name -f -a '(__softvpi)'
end
`

// Write writes the script of a shell, which runs program, for the commands of these names. The error says which shells there are.
func Write(w io.Writer, shell, program string, names []string) error {
	script, ok := map[string]string{"bash": bash, "zsh": zsh, "fish": fish}[shell]
	if !ok {
		return fmt.Errorf("there is no script for shell %q; allowed: %s", shell, strings.Join(Shells, ", "))
	}
	_, err := strings.NewReplacer("PROGRAM", program, "ASK", Ask, "NAMES", strings.Join(names, " ")).WriteString(w, script)
	return err
}
