#compdef gpumemtrace
# Completion of gpumemtrace for zsh. `gpumemtrace completion zsh` prints it.

# The first line that the program prints says what may follow.
_gpumemtrace() {
  local -a answer candidates
  local line before
  answer=("${(@f)$(${~words[1]} completion --words -- "${(@Q)words[2,CURRENT-1]}" "${(Q)PREFIX}" 2>/dev/null)}")
  case $answer[1] in
    words)
      for line in "${(@)answer[2,-1]}"; do
        candidates+=("${${line%%$'\t'*}//:/\\:}:${line#*$'\t'}")
      done
      _describe gpumemtrace candidates
      ;;
    files) compset -P '--*=' && _files || _files ;;
    folders) compset -P '--*=' && _files -/ || _files -/ ;;
    recordings) _files -g '*.(gmt|jsonl|pickle|pickle.gz)(-.)' ;;
    command\ *)
      before=$(( ${answer[1]#command } + 1 ))
      (( CURRENT -= before ))
      shift $before words
      _normal
      ;;
  esac
}
# Read by `source`, it registers the function; as a file of $fpath, it is the function.
if [[ $funcstack[1] == _gpumemtrace ]]; then _gpumemtrace "$@"; else compdef _gpumemtrace gpumemtrace; fi
