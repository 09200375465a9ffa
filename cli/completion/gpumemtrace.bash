# shellcheck shell=bash
# Completion of gpumemtrace for bash 4.4 or later, with or without the package bash-completion.
# `gpumemtrace completion bash` prints it.

# The first line that the program prints says what may follow.
_gpumemtrace() {
  local answer name offset number
  mapfile -t answer < <("${1/#\~\//$HOME/}" completion --words -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
  COMPREPLY=()
  case ${answer[0]-} in
    words) COMPREPLY=("${answer[@]:1}") && COMPREPLY=("${COMPREPLY[@]%%$'\t'*}") ;;
    files) compopt -o default ;;
    folders) compopt -o dirnames ;;
    recordings)
      while IFS= read -r name; do
        [[ -d ${name/#\~\//$HOME/} || $name == *.gmt || $name == *.jsonl || $name == *.pickle || $name == *.pickle.gz ]] &&
          COMPREPLY+=("$name")
      done < <(compgen -f -- "${COMP_WORDS[COMP_CWORD]}")
      compopt -o filenames -o default # all files if there is none of these
      ;;
    command\ *)
      number=$((${answer[0]#command } + 1))
      for offset in _comp_command_offset _command_offset; do # these are of bash-completion
        declare -F "$offset" >/dev/null && "$offset" "$number" && return
      done
      compopt -o default
      ((COMP_CWORD != number)) || mapfile -t COMPREPLY < <(compgen -c -- "${COMP_WORDS[COMP_CWORD]}")
      ;;
  esac
}
complete -F _gpumemtrace gpumemtrace
