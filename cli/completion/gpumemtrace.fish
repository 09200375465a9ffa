# Completion of gpumemtrace for fish 3.4 or later. `gpumemtrace completion fish` prints it.

# The first line that the program prints says what may follow.
function __gpumemtrace_complete
    set -l before (commandline -opc)
    set -l word (commandline -ct | string unescape)
    set -l program (string replace -r '^~/' "$HOME/" -- $before[1])
    set -l answer ($program completion --words -- $before[2..-1] "$word" 2>/dev/null)
    # The part of "--output=run" that stays as it is.
    set -l option (string match -r -- '^--[^=]*=' "$word")
    set -q option[1]; or set option ''
    set -l value (string replace -- "$option" '' "$word")
    switch "$answer[1]"
        case words
            string join \n -- $answer[2..-1]
        case files
            printf '%s\n' $option(__fish_complete_path "$value")
        case folders
            printf '%s\n' $option(__fish_complete_directories "$value")
        case recordings
            set -l all (__fish_complete_path "$word")
            set -l known (string match -r -- '^[^\t]*(?:/|\.gmt|\.jsonl|\.pickle|\.pickle\.gz)(?:\t.*)?$' $all)
            test -n "$known"; or set known $all
            string join \n -- $known
        case 'command *'
            set -l first (math (string replace 'command ' '' -- "$answer[1]") + 2)
            set -l words $before[$first..-1]
            # What "$before" lacks is the word at the cursor.
            test $first -gt (count $before); and set words
            complete -C "$(string join ' ' -- (string escape -- $words) (commandline -ct))"
    end
end

complete -c gpumemtrace -f -a '(__gpumemtrace_complete)'
