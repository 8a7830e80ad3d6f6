/* SPDX-License-Identifier: Apache-2.0 */
/* Every command of skillvm; the verbs of those that have some stand with what runs them. */
#include "api/cli/verbs.h"

#include <stddef.h>

const struct verb commands[] = {
    {
        .name = "run",
        .args = "SKILL|SCRIPT|--code CODE [options] [-- ARGUMENTS…]",
        .summary = "run a skill, a script or code and show what it prints",
        .text =
            "Runs SKILL in a microVM: a folder with a SKILL.md, a zip or tar of one, or "
            "NAME[@VERSION] of a registered skill. SCRIPT is a file in Python, bash or "
            "JavaScript that "
            "needs no other of its folder, and CODE its text. What it prints appears as it is "
            "printed. Without a daemon one is started, used and stopped. An interrupt "
            "cancels the execution, and so does an output that nobody reads any more.\n"
            "\n"
            "Exit status: 0 success; the skill's own when it failed (128 + the signal that "
            "ended it); 124 timeout; 125 skillvm itself failed; 2 wrong usage.",
        .examples = "run examples/word-counter --input @text.json --output-dir out\n"
                    "run word-counter@1.0.0 --json < /dev/null\n"
                    "run my-skill --script scripts/convert.py -- --format csv input.txt\n"
                    "run --code 'print(6 * 7)'\n"
                    "run report.py --file data.csv --output-dir out\n",
        .options = OPTION_RUN | OPTION_IMAGE | OPTION_DIR | OPTION_FORMAT | OPTION_HOST,
        .start = cmd_run,
    },
    {
        .name = "up",
        .args = "[--host auto|native|soft] [--listen ADDRESS] [--config FILE] [--foreground]",
        .summary = "start the daemon and keep it",
        .text = "Starts the daemon, waits until it is ready and leaves it running. With auto "
                "(the default) it runs on this machine's KVM if a short probe finds that KVM "
                "works, else in the software host: a small Debian in QEMU, slow but the same "
                "in every other way. The settings are those of skillvmd.yaml(5).",
        .examples = "up\nup --host soft\nup --listen 127.0.0.1:8080 --config skillvmd.yaml\n"
                    "up --foreground --data /tmp/trial\n",
        .options = OPTION_HOST | OPTION_FOREGROUND | OPTION_DAEMON,
        .here = "starts a daemon on this machine",
        .run = cmd_up,
    },
    {
        .name = "down",
        .args = "",
        .summary = "stop the daemon",
        .text = "Stops the daemon, and the software host if it is in one. Executions that "
                "still run end as failed. It is no error when nothing is up.",
        .examples = "down\n",
        .here = "stops the daemon of this machine",
        .run = cmd_down,
    },
    {
        .name = "status",
        .args = "[-o json|table]",
        .summary = "say whether it is up, and where",
        .text = "Says whether the daemon is up and ready, on which host, since when, and how "
                "often the software host was restarted. Of a server only its answer is known. "
                "Exit status 0 when it is up, 1 when it is not.",
        .examples = "status\nstatus -o json\n",
        .options = OPTION_FORMAT,
        .run = cmd_status,
    },
    {
        .name = "skill",
        .args = "VERB …",
        .summary = "register, list, show, remove, check and begin skills",
        .examples = "skill push examples/word-counter\nskill list\n",
        .verbs = skill_verbs,
    },
    {
        .name = "exec",
        .args = "VERB …",
        .summary = "list and show executions, their logs and files; cancel them",
        .examples = "exec list --status failed\n"
                    "exec logs -f exec_0123456789abcdef0123456789abcdef\n",
        .verbs = exec_verbs,
    },
    {
        .name = "image",
        .args = "VERB …",
        .summary = "list, show, import, build and remove images of guests",
        .text =
            "An image is what a skill finds in its machine: interpreters, modules, programs. "
            "Those that are made here lie in the folder images of the data directory, or "
            "where SKILLVM_IMAGES says. A daemon that runs here takes up what is made and "
            "removed; a software host does after `skillvm down` and `skillvm up`.",
        .examples = "image list\nimage import python-3.12.tar --name py312\n",
        .verbs = image_verbs,
    },
    {
        .name = "session",
        .args = "VERB …",
        .summary = "list, show and remove sessions, and get their files",
        .text = "What runs with `--session ID` find of each other. A run makes one; it goes "
                "when nobody used it for a while (retention.sessions_age).",
        .examples = "run --code 'open(\"/sandbox/session/n\", \"a\").write(\"x\")' --session "
                    "s\nsession get s n\n",
        .verbs = session_verbs,
    },
    {
        .name = "tools",
        .args = "VERB …",
        .summary = "list the skills as tools of a model, and call one",
        .text = "The skills as a model gets them: each with an entry is a tool, and of the "
                "others each script.",
        .examples =
            "tools list\ntools call word-counter '{\"text\": \"to be or not to be\"}'\n",
        .verbs = tools_verbs,
    },
    {
        .name = "tenant",
        .args = "VERB …",
        .summary = "make, list, change and remove tenants and their limits",
        .text = "These are the operator's: the daemon's own user on its socket, or an "
                "operator's key.",
        .examples = "tenant create acme --max-running 4\ntenant list\n",
        .verbs = tenant_verbs,
    },
    {
        .name = "key",
        .args = "VERB …",
        .summary = "make, list and revoke API keys",
        .text = "These are the operator's: the daemon's own user on its socket, or an "
                "operator's key.",
        .examples = "key create --tenant acme > acme.key\n"
                    "--server https://skills.example.org --key @acme.key skill list\n",
        .verbs = key_verbs,
    },
    {
        .name = "cluster",
        .args = "VERB …",
        .summary = "initialise a cluster, look at it, drain and remove nodes",
        .text = "These are the operator's: the daemon's own user on its socket, or an "
                "operator's key. They ask a daemon whose settings have `cluster:`.",
        .examples = "cluster init\ncluster status\n",
        .verbs = cluster_verbs,
    },
    {
        .name = "mcp",
        .args = "[--no-network] [--host auto|native|soft]",
        .summary = "serve the skills to an agent as tools",
        .text = "Serves the registered skills as tools by the Model Context Protocol on "
                "standard input and output, until standard input ends. An agent starts it; "
                "its configuration says\n"
                "  {\"mcpServers\": {\"skillvm\": {\"command\": \"skillvm\", \"args\": "
                "[\"mcp\"]}}}\n"
                "Without a daemon one is started, used and stopped.",
        .examples = "mcp\n",
        .options = OPTION_HOST | OPTION_NO_NETWORK,
        .run = cmd_mcp,
    },
    {
        .name = "health",
        .args = "[-o json|table]",
        .summary = "ask the daemon whether it is ready",
        .text = "Asks the daemon whether it is ready. Exit status 0 when it is, 1 when it is "
                "not or when there is none.",
        .examples = "health && skillvm run my-skill\n",
        .options = OPTION_FORMAT,
        .run = cmd_health,
    },
    {
        .name = "doctor",
        .args = "[-o json|table]",
        .summary = "look at this machine and say what it lacks",
        .text = "Looks at this machine: the KVM device and whether it can really run a guest, "
                "the processor, cgroups, kernel settings, and what the software host needs. "
                "Each finding comes with advice. Exit status 0 only if KVM is usable, else 1.",
        .examples = "doctor\ndoctor -o json\n",
        .options = OPTION_FORMAT | OPTION_OFFLINE,
        .here = "looks at this machine alone",
        .run = cmd_doctor,
    },
    {
        .name = "version",
        .args = "[-o json|table]",
        .summary = "print the version",
        .text = "Prints the version.",
        .examples = "version\n",
        .options = OPTION_FORMAT | OPTION_OFFLINE,
        .run = cmd_version,
    },
    {
        .name = "help",
        .args = "[COMMAND [VERB]]",
        .summary = "print this, or the help of a command",
        .text = "Prints the help of a command, or of one of its verbs.",
        .examples = "help run\n"
                    "help skill push\n",
        .options = OPTION_OFFLINE,
        .n_more = 2,
        .run = cmd_help,
    },
    {.name = NULL},
};
