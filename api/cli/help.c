/* SPDX-License-Identifier: Apache-2.0 */
/* What every command says about itself, and the options that every command takes. */
#include "api/cli/cli.h"

#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

struct help {
    const char *command;
    const char *text;
};

static const struct help helps[] = {
    {"",
     "skillvm runs a skill in a microVM that is as its snapshot was.\n"
     "\n"
     "usage: skillvm [options] COMMAND …\n"
     "\n"
     "  run      run a skill and show what it prints\n"
     "  up       start the daemon and keep it\n"
     "  down     stop the daemon\n"
     "  status   say whether it is up, and where\n"
     "  skill    register, list, show, remove, check and begin skills\n"
     "  exec     list and show executions, their logs and files; cancel them\n"
     "  tools    list the skills as tools of a model, and call one\n"
     "  tenant   make, list, change and remove tenants and their limits\n"
     "  key      make, list and revoke API keys\n"
     "  mcp      serve the skills to an agent as tools\n"
     "  health   ask the daemon whether it is ready\n"
     "  doctor   look at this machine and say what it lacks\n"
     "  version  print the version\n"
     "  help     print this, or the help of a command\n"
     "\n"
     "Which daemon:\n"
     "  --server URL   one behind http:// or https://    (SKILLVM_SERVER, "
     "SKILLBOX_SERVER_URL)\n"
     "  --key KEY      the API key to show it; @FILE reads it from a file, since others can "
     "see\n"
     "                 a command line                    (SKILLVM_API_KEY, SKILLBOX_API_KEY)\n"
     "  --socket PATH  the unix socket of one            (SKILLVM_SOCKET)\n"
     "  --data DIR     the data directory of this machine's, with its socket in it\n"
     "                 (SKILLVM_DATA; else ~/.local/state/skillvm)\n"
     "  --as TENANT    the operator works for this tenant, by id or name\n"
     "An option counts before a variable, then the order is SKILLVM_SOCKET, SKILLVM_SERVER,\n"
     "SKILLBOX_SERVER_URL, and last the daemon of the data directory. SKILLBOX_API_KEY is "
     "shown\n"
     "to a server alone. With a server nothing is started on this machine.\n"
     "\n"
     "These options go before or behind COMMAND, and so does -o json or -o table for commands "
     "that\n"
     "print such things. Colours are for terminals, unless NO_COLOR is set.\n"
     "\n"
     "examples:\n"
     "  skillvm run examples/word-counter --input '{\"text\": \"to be or not to be\"}'\n"
     "  skillvm help run\n"},
    {"run",
     "usage: skillvm run SKILL [options] [-- ARGUMENTS…]\n"
     "\n"
     "Runs SKILL in a microVM: a folder with a SKILL.md, a zip or tar of one, or "
     "NAME[@VERSION] of\n"
     "a registered skill. What it prints appears as it is printed. Without a daemon one is "
     "started,\n"
     "used and stopped.\n"
     "\n"
     "  -i, --input JSON       the skill's input; @FILE reads a file, - standard input\n"
     "  -f, --file PATH        give it this file as input; NAME=PATH gives it another name; "
     "may "
     "be\n"
     "                         repeated\n"
     "  -d, --output-dir DIR   put the files the skill made below DIR\n"
     "  -t, --timeout 30s      stop it after this long (default 2m, at most 10m)\n"
     "  -s, --script PATH      run this script of the skill\n"
     "  -m, --module NAME      run this Python module of the skill\n"
     "  -e, --env NAME=VALUE   set a variable; NAME alone takes it from here; may be repeated\n"
     "      --fresh            in a machine that has run nothing and will run nothing else\n"
     "  -o, --output json|table  json: the result instead of what the skill prints\n"
     "      --json             the same as -o json\n"
     "      --host auto|native|soft   where to start a daemon if there is none\n"
     "      --server, --key, --as, --socket, --data  as in `skillvm help`\n"
     "\n"
     "exit status: 0 success; the skill's own when it failed (128 + the signal that ended it); "
     "124\n"
     "timeout; 125 skillvm itself failed; 2 wrong usage\n"
     "\n"
     "examples:\n"
     "  skillvm run examples/word-counter --input @text.json --output-dir out\n"
     "  skillvm run word-counter@1.0.0 --json < /dev/null\n"
     "  skillvm run my-skill --script scripts/convert.py -- --format csv input.txt\n"},
    {"up", "usage: skillvm up [--host auto|native|soft] [--foreground]\n"
           "\n"
           "Starts the daemon, waits until it is ready and leaves it running. With auto (the "
           "default) it\n"
           "runs on this machine's KVM if a short probe finds that KVM works, else in the "
           "software host:\n"
           "a small Debian in QEMU, slow but the same in every other way.\n"
           "\n"
           "  --host auto|native|soft  choose\n"
           "  -f, --foreground         do not go to the background\n"
           "  --socket PATH, --data DIR  as in `skillvm help`\n"
           "\n"
           "examples:\n"
           "  skillvm up\n"
           "  skillvm up --host soft\n"
           "  skillvm up --foreground --data /tmp/trial\n"},
    {"down", "usage: skillvm down\n"
             "\n"
             "Stops the daemon, and the software host if it is in one. Executions that still "
             "run end as\n"
             "failed. It is no error when nothing is up.\n"
             "\n"
             "  --socket PATH, --data DIR  as in `skillvm help`\n"
             "\n"
             "example:\n"
             "  skillvm down\n"},
    {"status",
     "usage: skillvm status [-o json|table]\n"
     "\n"
     "Says whether the daemon is up and ready, on which host, since when, and how often the\n"
     "software host was restarted. Of a server only its answer is known. Exit status 0 when it "
     "is\n"
     "up, 1 when it is not.\n"
     "\n"
     "  -o, --output json|table  how to print\n"
     "      --json               the same as -o json\n"
     "  --server, --key, --as, --socket, --data  as in `skillvm help`\n"
     "\n"
     "examples:\n"
     "  skillvm status\n"
     "  skillvm status -o json\n"},
    {"doctor", "usage: skillvm doctor [-o json|table]\n"
               "\n"
               "Looks at this machine: the KVM device and whether it can really run a guest, "
               "the processor,\n"
               "cgroups, kernel settings, and what the software host needs. Each finding comes "
               "with advice.\n"
               "Exit status 0 only if KVM is usable, else 1.\n"
               "\n"
               "  -o, --output json|table  how to print\n"
               "      --json               the same as -o json\n"
               "\n"
               "examples:\n"
               "  skillvm doctor\n"
               "  skillvm doctor -o json\n"},
    {"mcp",
     "usage: skillvm mcp [--host auto|native|soft]\n"
     "\n"
     "Serves the registered skills as tools by the Model Context Protocol on standard input "
     "and\n"
     "output, until standard input ends. An agent starts it; its configuration says\n"
     "  {\"mcpServers\": {\"skillvm\": {\"command\": \"skillvm\", \"args\": "
     "[\"mcp\"]}}}\n"
     "Without a daemon one is started, used and stopped.\n"
     "\n"
     "  --host auto|native|soft    where to start a daemon if there is none\n"
     "  --server, --key, --as, --socket, --data  as in `skillvm help`\n"
     "\n"
     "example:\n"
     "  skillvm mcp\n"},
    {"skill", "usage: skillvm skill VERB …\n"
              "\n"
              "  push PATH            register a skill\n"
              "  list                 list the registered ones\n"
              "  show NAME[@VERSION]  show one with its instructions\n"
              "  rm NAME@VERSION      remove one\n"
              "  lint PATH            check one without registering it\n"
              "  package PATH         check one and make a zip of it\n"
              "  init NAME            begin a new one\n"
              "\n"
              "  -o, --output json|table  how to print\n"
              "  --server, --key, --as, --socket, --data  as in `skillvm help`\n"
              "\n"
              "`skillvm skill VERB --help` says more.\n"
              "\n"
              "examples:\n"
              "  skillvm skill push examples/word-counter\n"
              "  skillvm skill list\n"},
    {"exec", "usage: skillvm exec VERB …\n"
             "\n"
             "  list        list executions, the newest first\n"
             "  show ID     show a result\n"
             "  logs ID     print what it printed; -f follows\n"
             "  cancel ID   end it\n"
             "  files ID    list its files, print one, or extract all\n"
             "\n"
             "  -o, --output json|table  how to print\n"
             "  --server, --key, --as, --socket, --data  as in `skillvm help`\n"
             "\n"
             "`skillvm exec VERB --help` says more.\n"
             "\n"
             "examples:\n"
             "  skillvm exec list --status failed\n"
             "  skillvm exec logs -f exec_0123456789abcdef0123456789abcdef\n"},
    {"tools",
     "usage: skillvm tools VERB …\n"
     "\n"
     "The skills as a model gets them: each with an entry is a tool, and of the others "
     "each script.\n"
     "\n"
     "  list       list them, or print their definitions for an API\n"
     "  call TOOL  run one\n"
     "\n"
     "`skillvm tools VERB --help` says more.\n"
     "\n"
     "examples:\n"
     "  skillvm tools list\n"
     "  skillvm tools call word-counter '{\"text\": \"to be or not to be\"}'\n"},
    {"tenant",
     "usage: skillvm tenant VERB …\n"
     "\n"
     "  create NAME   make one\n"
     "  list          list them with what they use\n"
     "  show TENANT   show one and its limits\n"
     "  set TENANT    change a name or limits, disable or enable it\n"
     "  rm TENANT     remove one with all it has\n"
     "\n"
     "These are the operator's: the daemon's own user on its socket, or an operator's "
     "key.\n"
     "\n"
     "  -o, --output json|table  how to print\n"
     "  --server, --key, --as, --socket, --data  as in `skillvm help`\n"
     "\n"
     "`skillvm tenant VERB --help` says more.\n"
     "\n"
     "examples:\n"
     "  skillvm tenant create acme --max-running 4\n"
     "  skillvm tenant list\n"},
    {"key", "usage: skillvm key VERB …\n"
            "\n"
            "  create         make one and print it, this once\n"
            "  list           list them\n"
            "  revoke KEY_ID  end one\n"
            "\n"
            "These are the operator's: the daemon's own user on its socket, or an operator's "
            "key.\n"
            "\n"
            "  -o, --output json|table  how to print\n"
            "  --server, --key, --as, --socket, --data  as in `skillvm help`\n"
            "\n"
            "`skillvm key VERB --help` says more.\n"
            "\n"
            "examples:\n"
            "  skillvm key create --tenant acme > acme.key\n"
            "  skillvm --server https://skills.example.org --key @acme.key skill list\n"},
    {"health",
     "usage: skillvm health [-o json|table]\n"
     "\n"
     "Asks the daemon whether it is ready. Exit status 0 when it is, 1 when it is not "
     "or when\n"
     "there is none.\n"
     "\n"
     "  -o, --output json|table  how to print\n"
     "  --server, --key, --as, --socket, --data  as in `skillvm help`\n"
     "\n"
     "example:\n"
     "  skillvm health && skillvm run my-skill\n"},
    {"version", "usage: skillvm version [-o json|table]\n"
                "\n"
                "Prints the version.\n"
                "\n"
                "  -o, --output json|table  how to print\n"
                "\n"
                "example:\n"
                "  skillvm version\n"},
    {"help", "usage: skillvm help [COMMAND]\n"
             "\n"
             "Prints the help of a command.\n"
             "\n"
             "example:\n"
             "  skillvm help run\n"},
};

int help_print(const char *command)
{
    for (size_t i = 0; i < sizeof(helps) / sizeof(helps[0]); i++) {
        if (strcmp(helps[i].command, command) == 0) {
            fputs(helps[i].text, stdout);
            return CLI_OK;
        }
    }
    return help_usage_error("", "there is no command \"%s\"", command);
}

int help_usage_error(const char *command, const char *format, ...)
{
    va_list args;

    if (format) {
        fputs("skillvm: ", stderr);
        va_start(args, format);
        vfprintf(stderr, format, args);
        va_end(args);
        fputc('\n', stderr);
    }
    fprintf(stderr, "See `skillvm help%s%s`.\n", *command ? " " : "", command);
    return CLI_USAGE;
}

int cli_take_global(int option, struct cli_globals *globals, const char *command)
{
    switch (option) {
    case CLI_OPTION_SOCKET:
        globals->socket_path = optarg;
        return -1;
    case CLI_OPTION_DATA:
        globals->data_dir = optarg;
        return -1;
    case CLI_OPTION_SERVER:
        globals->server = optarg;
        return -1;
    case CLI_OPTION_KEY:
        globals->key = optarg;
        return -1;
    case CLI_OPTION_AS:
        globals->tenant = optarg;
        return -1;
    case CLI_OPTION_HELP:
        return help_print(command);
    default:
        return help_usage_error(command, NULL);
    }
}

int cli_refuse_arguments(int argc, char **argv, const char *command)
{
    if (optind == argc)
        return -1;
    return help_usage_error(command, "\"%s\" is one argument too many", argv[optind]);
}
