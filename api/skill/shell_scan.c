/* SPDX-License-Identifier: Apache-2.0 */
#include "api/skill/shell_scan.h"

#include "api/skill/shell_words.h"
#include "api/skill/url_host.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

bool shell_is_program(const char *name)
{
    size_t len = strlen(name);

    return len > 0 && len <= SHELL_NAME_MAX && isalnum((unsigned char)name[0]) &&
           strspn(name, "0123456789") < len &&
           strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._+-") ==
               len;
}

const char *shell_program_name(const char *path)
{
    static const char *const folders[] = {"/usr/local/bin/", "/usr/bin/", "/bin/", "/usr/sbin/",
                                          "/sbin/"};

    for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++)
        if (strncmp(path, folders[i], strlen(folders[i])) == 0)
            return path + strlen(folders[i]);
    return path;
}

static bool is_one_of(const char *const *words, const char *text)
{
    while (*words && strcmp(*words, text) != 0)
        words++;
    return *words;
}

static bool is_builtin(const char *name)
{
    static const char *const builtins[] = {
        "alias",   "bg",      "bind",     "break",   "builtin",  "caller",    "cd",
        "command", "compgen", "complete", "compopt", "continue", "coproc",    "declare",
        "dirs",    "disown",  "echo",     "enable",  "eval",     "exec",      "exit",
        "export",  "false",   "fc",       "fg",      "getopts",  "hash",      "help",
        "history", "jobs",    "kill",     "let",     "local",    "logout",    "mapfile",
        "popd",    "printf",  "pushd",    "pwd",     "read",     "readarray", "readonly",
        "return",  "set",     "shift",    "shopt",   "source",   "suspend",   "test",
        "times",   "trap",    "true",     "type",    "typeset",  "ulimit",    "umask",
        "unalias", "unset",   "wait",     NULL};

    return is_one_of(builtins, name);
}

static int tell_found(struct shell_scan *s, enum shell_kind kind, const char *name,
                      const char *where)
{
    for (; s->counted < where; s->counted++)
        s->lines += *s->counted == '\n';
    return s->found(s->user,
                    &(struct shell_found){.kind = kind, .line = s->lines + 1, .name = name});
}

static int tell(struct shell_scan *s, enum shell_kind kind, const char *name, const char *where)
{
    name = shell_program_name(name);
    if (!s->found || !shell_is_program(name) || (kind == SHELL_PROGRAM && is_builtin(name)))
        return 0;
    return tell_found(s, kind, name, where);
}

/* case WORD in PATTERN) LIST ;; … esac, from behind its first word. */
static int scan_case(struct shell_scan *s)
{
    struct shell_word word;
    bool esac = false;
    int r;

    shell_skip_blanks(s);
    r = shell_read_word(s, &word);
    if (r < 0)
        return r;
    shell_skip_lines(s);
    r = shell_read_word(s, &word);
    if (r < 0 || strcmp(word.text, "in") != 0)
        return r < 0 ? r : -EINVAL;
    while (!esac) {
        shell_skip_lines(s);
        if (shell_peek(s) == '(')
            s->at++;
        do {
            const char *before = s->at;

            shell_skip_blanks(s);
            r = shell_read_word(s, &word);
            if (r < 0)
                return r;
            if (strcmp(word.text, "esac") == 0 && !word.quoted && shell_peek(s) != ')')
                return 0;
            shell_skip_blanks(s);
            s->at += shell_peek(s) == '|';
            if (s->at == before)
                return -EINVAL;
        } while (shell_peek(s) != ')');
        s->at++;
        if (shell_enter(s) < 0)
            return -EINVAL;
        r = shell_scan_list(s, SHELL_CASE, &esac);
        if (r < 0)
            return r;
        s->depth--;
    }
    return 0;
}

/* What the words of one command were so far. */
struct command {
    bool first;   /* the next word is its name */
    bool wrapped; /* behind env, exec and the like */
    bool asks;    /* each further word is a program that is looked for */
    bool asks_if; /* it does with -v only: command */
    /* Of what asks the hosts of URLs: */
    enum { ASKS_NO_HOST, ASKS_BY_GIT, ASKS_HOSTS } hosts; /* BY_GIT: if a verb does */
    bool valued; /* the next word is an option's, which may be a URL that nobody asks */
    bool skips;  /* options and numbers before the name: xargs, timeout and the like */
};

static const struct command command_begin = {.first = true};

static int take_reserved(struct shell_scan *s, const char *word, struct command *command,
                         bool *ret_taken)
{
    static const char *const before[] = {"if", "then", "elif", "else", "while", "until",
                                         "do", "!",    "{",    "time", NULL};
    static const char *const after[] = {"fi", "done", "esac", "}", NULL};
    static const char *const loops[] = {"for", "select", NULL};
    struct shell_word name = {.len = 0};
    int r = 0;

    *ret_taken = true;
    if (is_one_of(before, word))
        return 0;
    command->first = false;
    if (is_one_of(after, word))
        return 0;
    if (is_one_of(loops, word)) {
        shell_skip_blanks(s);
        return shell_at(s, "((") ? (s->at++, shell_skip_balanced(s, '(', ')')) : 0;
    }
    if (strcmp(word, "case") == 0)
        return scan_case(s);
    if (strcmp(word, "[[") == 0) {
        while (s->at < s->end && !shell_at(s, "]]")) {
            const char *from = s->at;

            r = shell_word_ends(s) ? (s->at++, 0) : shell_read_word(s, &name);
            if (r < 0 || strcmp(name.text, "]]") == 0)
                return r;
            if (s->at == from)
                return -EINVAL;
        }
        s->at += s->at < s->end ? 2 : 0;
        return 0;
    }
    if (strcmp(word, "function") == 0) {
        shell_skip_blanks(s);
        r = shell_read_word(s, &name);
        if (r < 0)
            return r;
        shell_skip_blanks(s);
        s->at += shell_at(s, "()") ? 2 : 0;
        command->first = true;
        return tell(s, SHELL_DEFINED, name.text, s->at);
    }
    command->first = true;
    *ret_taken = false;
    return 0;
}

/* The word that says what is run. */
static int take_name(struct shell_scan *s, const char *name, const char *where,
                     struct command *command)
{
    static const char *const wrappers[] = {"env",     "exec",    "nohup", "sudo",
                                           "builtin", "command", NULL};
    static const char *const asking[] = {"which", "type", "hash", NULL};
    static const char *const skipping[] = {"xargs", "timeout", "nice", "stdbuf", NULL};
    const char *base = basename(name);

    if (command->skips &&
        (name[0] == '-' || !shell_is_program(name) || strchr("0123456789", name[0])))
        return 0;
    if (command->wrapped && name[0] == '-') {
        command->first = false;
        command->asks =
            command->asks_if && (strcmp(name, "-v") == 0 || strcmp(name, "-V") == 0);
        return 0;
    }
    command->skips = is_one_of(skipping, name);
    command->first = command->wrapped = command->skips || is_one_of(wrappers, name);
    command->asks_if = strcmp(name, "command") == 0;
    command->asks = is_one_of(asking, name);
    command->hosts = strcmp(base, "curl") == 0  ? ASKS_HOSTS
                     : strcmp(base, "git") == 0 ? ASKS_BY_GIT
                                                : ASKS_NO_HOST;
    return tell(s, SHELL_PROGRAM, name, where);
}

/* An option of curl's or git's whose value may look like a URL: a referer, a proxy, data. */
static bool takes_value(const char *option)
{
    static const char *const options[] = {
        "--referer",     "--data",   "--data-raw",  "--data-binary", "--data-urlencode",
        "--data-ascii",  "--json",   "--header",    "--user-agent",  "--form",
        "--form-string", "--cookie", "--write-out", "--proxy",       "--preproxy",
        "--connect-to",  "--config", NULL};
    size_t len = strlen(option), letters = 1;

    while (isalpha((unsigned char)option[letters]))
        letters++;
    return is_one_of(options, option) ||
           (len > 1 && letters == len && strchr("edHAFbwxcC", option[len - 1]));
}

/* A word behind the name of what asks hosts. */
static int take_url(struct shell_scan *s, const struct shell_word *word, const char *where,
                    struct command *command)
{
    static const char *const verbs[] = {"clone", "fetch", "pull", "push", "ls-remote", NULL};
    bool valued = command->valued;
    char host[URL_HOST_SIZE];

    command->valued = word->text[0] == '-' && takes_value(word->text);
    if (valued || word->text[0] == '-')
        return 0;
    if (command->hosts == ASKS_BY_GIT) {
        command->hosts = is_one_of(verbs, word->text) ? ASKS_HOSTS : ASKS_NO_HOST;
        return 0;
    }
    return s->found && url_host_take((struct text_span){word->text, word->known}, word->literal,
                                     host)
               ? tell_found(s, SHELL_HOST, host, where)
               : 0;
}

/* What alias or source is given. */
static int take_definition(struct shell_scan *s, bool alias, struct command *command)
{
    const char *where = s->at;
    struct shell_word word;
    int r = shell_read_word(s, &word);

    *command = (struct command){.first = false};
    if (r < 0 || !s->found)
        return r;
    if (alias) {
        word.text[strcspn(word.text, "=")] = '\0';
        return tell(s, SHELL_DEFINED, word.text, where);
    }
    return tell_found(s, SHELL_SOURCED, basename(word.text), where);
}

static int take_word(struct shell_scan *s, struct command *command)
{
    const char *where = s->at;
    struct shell_word word;
    bool taken = false;
    int r = shell_read_word(s, &word);

    if (r < 0)
        return r;
    /* 2>&1 */
    if ((shell_peek(s) == '<' || shell_peek(s) == '>') && word.len > 0 &&
        strspn(word.text, "0123456789") == word.len)
        return 0;
    if (!command->first) {
        if (command->asks && word.literal && word.text[0] != '-')
            return tell(s, SHELL_ASKED, word.text, where);
        return command->hosts == ASKS_NO_HOST ? 0 : take_url(s, &word, where, command);
    }
    if (shell_is_assignment(&word))
        return 0;
    if (!word.literal) {
        *command = (struct command){.first = false};
        return 0;
    }
    if (!word.quoted && !command->wrapped)
        r = take_reserved(s, word.text, command, &taken);
    if (r < 0 || taken)
        return r;
    shell_skip_blanks(s);
    if (shell_peek(s) == '(') {
        s->at++;
        shell_skip_blanks(s);
        if (shell_peek(s) != ')')
            return -EINVAL;
        s->at++;
        return tell(s, SHELL_DEFINED, word.text, where);
    }
    if (strcmp(word.text, "alias") == 0 || strcmp(word.text, "source") == 0 ||
        strcmp(word.text, ".") == 0)
        return take_definition(s, word.text[0] == 'a', command);
    return take_name(s, word.text, where, command);
}

/* ( … ) or (( … )) where a command begins. */
static int scan_group(struct shell_scan *s)
{
    s->at++;
    if (shell_peek(s) != '(')
        return shell_scan_inner(s, ')');
    s->at++;
    return shell_skip_balanced(s, '(', ')') < 0 || shell_peek(s) != ')' ? -EINVAL
                                                                        : (s->at++, 0);
}

/* esac where a command begins, in a case. */
static bool take_esac(struct shell_scan *s)
{
    struct shell_scan ahead = *s;

    if (!shell_at(s, "esac"))
        return false;
    ahead.at += 4;
    if (!shell_word_ends(&ahead))
        return false;
    s->at = ahead.at;
    return true;
}

/* Separators; *ret_end: the branch of a case is over. */
static void take_separator(struct shell_scan *s, int end, bool *ret_end)
{
    if (end == SHELL_CASE && (shell_at(s, ";;") || shell_at(s, ";&"))) {
        s->at += shell_at(s, ";;&") ? 3 : 2;
        *ret_end = true;
        return;
    }
    if (*s->at++ == '\n')
        shell_skip_heredocs(s);
}

/* Commands up to the character end, or of SHELL_CASE to the end of a branch. */
int shell_scan_list(struct shell_scan *s, int end, bool *ret_esac)
{
    struct command command = command_begin;
    bool over = false;

    for (;;) {
        const char *before;
        int c, r = 0;

        shell_skip_blanks(s);
        before = s->at;
        c = shell_peek(s);
        if (s->at == s->end)
            return end == SHELL_TEXT ? 0 : -EINVAL;
        if (c == end && end != SHELL_CASE) {
            s->at++;
            return 0;
        }
        if (end == SHELL_CASE && command.first && take_esac(s)) {
            *ret_esac = true;
            return 0;
        }
        if (c == '#') {
            shell_skip_line(s);
        } else if (c == '\n' || c == ';' || c == '|' || (c == '&' && !shell_at(s, "&>"))) {
            take_separator(s, end, &over);
            command = command_begin;
            if (over)
                return 0;
        } else if (c == '<' || c == '>' || c == '&') {
            r = shell_skip_redirection(s);
        } else if (c == '(' && command.first) {
            r = scan_group(s);
            command.first = false;
        } else if (c == '(' || c == ')' || c == '\0') {
            return -EINVAL;
        } else {
            r = take_word(s, &command);
        }
        /* A backtick that ends what something else began. */
        if (r < 0 || s->at == before)
            return r < 0 ? r : -EINVAL;
    }
}

int shell_scan(const char *text, size_t len, shell_found_fn found, void *user)
{
    struct shell_scan s = {.at = text, .end = text + len, .counted = text}, again;
    int r;

    if (memchr(text, 0, len))
        return -EINVAL;
    again = s;
    again.found = found;
    again.user = user;
    /* Twice: what is not understood to its end starts nothing. */
    r = shell_scan_list(&s, SHELL_TEXT, NULL);
    return r < 0 ? r : shell_scan_list(&again, SHELL_TEXT, NULL);
}
