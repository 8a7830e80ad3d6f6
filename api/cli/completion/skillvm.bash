# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# Completion of skillvm for bash: its commands, verbs, options and what these take; the names of
# registered skills and ids of executions where a daemon is up. A test compares the words with
# the help. What a daemon answers is only ever a word here: names with other characters than
# letters, digits and "._-" are left out.

# The options of a command or verb, without those that every command takes.
_skillvm_options() {
    local limits='--weight --max-running --max-queued --rate --cpu-per-day --storage
        --max-timeout --max-memory --reuse'
    case $1 in
    '') echo -o --output --version ;;
    run) echo -i --input -f --file -o --output -d --output-dir -t --timeout -s --script -m --module -e --env --fresh --json --host ;;
    up) echo --host -f --foreground ;;
    mcp) echo --host ;;
    status | doctor) echo -o --output --json ;;
    version | health) echo -o --output ;;
    'exec list') echo -o --output --skill --status -n --limit --cursor ;;
    'exec logs') echo -f --follow ;;
    'exec files' | 'skill package') echo -o --output -d --output-dir ;;
    'skill lint') echo -o --output --strict ;;
    'skill push' | 'skill list' | 'skill show' | 'skill init') echo -o --output ;;
    'exec show' | 'tools list' | 'tools call' | 'tenant list' | 'tenant show') echo -o --output ;;
    'tenant create') echo -o --output "$limits" ;;
    'tenant set') echo -o --output --name --enable --disable "$limits" ;;
    'key create') echo -o --output --tenant --name --role ;;
    'key list') echo -o --output --tenant ;;
    esac
}

_skillvm_verbs() {
    case $1 in
    skill) echo push list show rm lint package init ;;
    exec) echo list show logs cancel files ;;
    tools) echo list call ;;
    tenant) echo create list show set rm ;;
    key) echo create list revoke ;;
    esac
}

# Whether an option takes the word after it; command option.
_skillvm_takes() {
    [[ $1:$2 != run:-f ]] || return 0
    case $2 in
    --server | --key | --as | --socket | --data) ;;
    -o | --output | --output-dir | --host | --input | --timeout | --script | --module | --env) ;;
    -[itsmedn] | --file | --skill | --status | --limit | --cursor | --tenant | --name | --role | --weight) ;;
    --max-* | --rate | --cpu-per-day | --storage | --reuse) ;;
    *) return 1 ;;
    esac
}

# First words of the lines that a command of skillvm prints, with the daemon that is asked for.
_skillvm_ask() {
    local name
    timeout 2 "${_skillvm_program[@]}" "$@" 2>/dev/null </dev/null |
        while read -r name _; do
            [[ $name =~ ^[A-Za-z0-9._-]+$ && $name != [A-Z]* ]] && echo "$name"
        done
}

# Adds the words that begin as the current one does. They are words, not code to expand.
_skillvm_add() {
    local word
    for word in "$@"; do
        [[ $word == "$cur"* ]] && COMPREPLY+=("$word")
    done
}

_skillvm_files() { # -d: folders alone
    local path
    compopt -o filenames 2>/dev/null
    while IFS= read -r path; do
        COMPREPLY+=("$path")
    done < <(compgen "${1:--f}" -- "$cur")
}

# Adds files behind the "@" that the current word begins with.
_skillvm_at_files() {
    local whole=$cur i
    [[ $cur == @* ]] || return
    cur=${cur#@}
    _skillvm_files
    cur=$whole
    for i in "${!COMPREPLY[@]}"; do
        COMPREPLY[i]=@${COMPREPLY[i]}
    done
}

# What an option takes: command option.
_skillvm_value() {
    local words=()
    case $1:$2 in
    run:-f | *:--file) _skillvm_files ;;
    *:--output-dir | *:-d | *:--data) _skillvm_files -d ;;
    *:-o | *:--output) _skillvm_add json table ;;
    *:--host) _skillvm_add auto native soft ;;
    *:--status) _skillvm_add accepted running success failed timeout cancelled ;;
    *:--role) _skillvm_add tenant operator ;;
    *:--skill)
        mapfile -t words < <(_skillvm_ask skill list)
        _skillvm_add "${words[@]}"
        ;;
    *:--socket) _skillvm_files ;;
    *:--key | run:-i | *:--input) _skillvm_at_files ;;
    esac
}

# What a command or verb takes besides options.
_skillvm_argument() {
    local words=()
    case $1 in
    '')
        _skillvm_add run up down status skill exec tools tenant key mcp health doctor version help
        ;;
    skill | exec | tools | tenant | key)
        # shellcheck disable=SC2046 # words
        _skillvm_add $(_skillvm_verbs "$1")
        ;;
    help) _skillvm_add run up down status skill exec tools tenant key mcp health doctor version help ;;
    run)
        _skillvm_files
        mapfile -t words < <(_skillvm_ask skill list)
        _skillvm_add "${words[@]}"
        ;;
    'skill push' | 'skill lint' | 'skill package') _skillvm_files ;;
    'skill show' | 'skill rm')
        mapfile -t words < <(_skillvm_ask skill list)
        _skillvm_add "${words[@]}"
        ;;
    'tools list') _skillvm_add openai anthropic mcp ;;
    'tools call')
        mapfile -t words < <(_skillvm_ask tools list)
        _skillvm_add "${words[@]}"
        ;;
    'exec show' | 'exec logs' | 'exec cancel' | 'exec files')
        mapfile -t words < <(_skillvm_ask exec list -n 20)
        _skillvm_add "${words[@]}"
        ;;
    esac
}

_skillvm() {
    local line=() cur='' command='' is_value='' i word before
    local _skillvm_program=()

    # Words are what blanks part: COMP_WORDS are cut at "@" and ":" too.
    read -ra line <<<"${COMP_LINE:0:COMP_POINT}"
    if [[ ${COMP_LINE:0:COMP_POINT} != *[[:blank:]] ]]; then
        cur=${line[-1]}
        unset 'line[-1]'
    fi
    COMPREPLY=()
    _skillvm_program=("${line[0]:-$cur}")
    for ((i = 1; i < ${#line[@]}; i++)); do
        word=${line[i]}
        case $word in
        --) return ;; # what follows is the skill's
        -*)
            _skillvm_takes "$command" "$word" || continue
            i=$((i + 1))
            if ((i == ${#line[@]})); then
                _skillvm_value "$command" "$word"
                is_value=1
                break
            fi
            case $word:${line[i]} in
            --server:* | --as:* | --socket:* | --data:* | --key:@*)
                _skillvm_program+=("$word" "${line[i]}")
                ;;
            esac
            ;;
        *)
            if [[ -z $command ]]; then
                command=$word
            elif [[ " $(_skillvm_verbs "$command") " == *" $word "* ]]; then
                command+=" $word"
            fi
            ;;
        esac
    done
    if [[ -z $is_value && $cur == -* ]]; then
        # shellcheck disable=SC2046 # words
        _skillvm_add $(_skillvm_options "$command") --server --key --as --socket --data -h --help
    elif [[ -z $is_value ]]; then
        _skillvm_argument "$command"
    fi
    # What stands before the last break of the current word is not the completion's to give.
    before=${cur%"${cur##*["${COMP_WORDBREAKS//[^@:=]/}"]}"}
    [[ -z $before ]] || COMPREPLY=("${COMPREPLY[@]#"$before"}")
}

complete -F _skillvm skillvm
