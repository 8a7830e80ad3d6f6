/* SPDX-License-Identifier: Apache-2.0 */
/* `skillvm skill`, `skillvm exec` and `skillvm health` against a daemon with the fake VMM. */
#include "tests/unit/cmocka_all.h"

#include "tests/daemon/daemon_harness.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

struct setting {
    struct harness harness;
    char id[38];
    char printed[65536]; /* both streams of the last command */
};

static int skillvm(struct setting *s, const char *arguments)
{
    char command[2048];
    size_t len;
    FILE *f;
    int status;

    snprintf(command, sizeof(command), "cd '%s' && '%s' --socket '%s' --data '%s' %s 2>&1",
             s->harness.dir, SKILLVM, s->harness.socket, s->harness.data, arguments);
    f = popen(command, "r");
    assert_non_null(f);
    len = fread(s->printed, 1, sizeof(s->printed) - 1, f);
    s->printed[len] = '\0';
    status = pclose(f);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void expect(struct setting *s, const char *arguments, int status, const char *part)
{
    int got = skillvm(s, arguments);

    if (got != status || !strstr(s->printed, part))
        fail_msg("skillvm %s: status %d: %s; expected %d with %s", arguments, got, s->printed,
                 status, part);
}

static int start(void **state)
{
    struct setting *s = calloc(1, sizeof(*s));
    struct answer a;

    *state = s;
    harness_init(&s->harness, "boot", "restore");
    harness_start(&s->harness, NULL);
    harness_wait_ready(&s->harness);
    if (harness_push(&s->harness, "demo", "1.0", "print(1)") != 201)
        return -1;
    a = harness_run(&s->harness, "{\"skill\":\"demo\",\"env\":{\"FAKE\":\"files\"}}");
    answer_text(&a, "execution_id", s->id, sizeof(s->id));
    answer_finish(&a);
    return 0;
}

static int finish(void **state)
{
    struct setting *s = *state;
    int status = harness_stop(&s->harness, SIGTERM);

    harness_finish(&s->harness);
    free(s);
    return status;
}

static void skills_come_and_go(void **state)
{
    struct setting *s = *state;

    expect(s, "skill init fresh", 0,
           "made fresh/SKILL.md, fresh/main.py and fresh/tests/greeting.json; try it:\n");
    expect(s, "skill init script --lang bash -o json", 0,
           "[\"script/SKILL.md\",\"script/main.sh\",\"script/tests/greeting.json\"]\n");
    expect(s, "skill lint script --strict", 0, "script is a good skill");
    expect(s, "skill init scripted --lang node", 0,
           "made scripted/SKILL.md, scripted/main.js and");
    expect(s, "skill init other --lang ruby", 2,
           "--lang is python, bash, shell or node, not \"ruby\"");
    expect(s, "version && test ! -e other", 0, "");
    expect(s, "skill init fresh", 125, "cannot make the folder fresh");
    expect(s, "skill init Not--Good", 2, "single hyphens");
    expect(s, "skill lint fresh", 0, "fresh is a good skill");
    expect(s, "skill lint fresh --strict -o json", 0, "\"valid\":true");
    expect(s, "skill package fresh", 0, "./fresh-0.1.0.zip");
    expect(s, "skill lint fresh-0.1.0.zip --strict", 0, "fresh is a good skill");
    expect(
        s,
        "skill package fresh-0.1.0.zip -d fresh && cmp fresh-0.1.0.zip fresh/fresh-0.1.0.zip",
        0, "");
    assert_int_equal(skillvm(s, "version && rm fresh/*.zip"), 0);
    expect(s, "skill package fresh -d nowhere", 125, "cannot write nowhere");
    expect(s, "version && sed -i 's/^metadata:/lang: python/; /^  version/d' fresh/SKILL.md", 0,
           "");
    expect(s, "skill lint fresh", 0, "fresh is a good skill");
    expect(s, "skill lint fresh --strict", 1, "no field \"lang\"");
    expect(s, "version && sed -i 's/^lang: python/version: 0.1.0/' fresh/SKILL.md", 0, "");
    expect(s, "skill lint fresh --strict", 1, "no field \"version\"");
    expect(s, "skill lint .", 1, "error: ");
    expect(s, "skill push ./fresh", 0, "fresh@0.1.0  ");
    expect(s, "skill push ./fresh -o json", 0, "\"name\":\"fresh\"");
    expect(s, "skill push ./frehs", 125, "directory; did you mean \"fresh\"?\n");
    expect(s, "skill list", 0, "NAME   VERSION  DIGEST");
    expect(s, "skill list", 0, "fresh  0.1.0");
    expect(s, "skill list -o json", 0, "[{\"name\":\"demo\"");
    expect(s, "skill show fresh", 0, "# fresh");
    expect(s, "skill show fresh -o json", 0, "\"content\":\"");
    expect(s, "skill show fresh@9", 125, "has no version 9");
    expect(s, "skill rm fresh", 2, "say which version");
    expect(s, "skill rm fresh@0.1.0", 0, "");
    expect(s, "skill rm fresh@latest", 125, "no skill named fresh");
}

/* Several paths, and folders of them; one that fails keeps no other back. */
static void many_skills_are_pushed_at_once(void **state)
{
    struct setting *s = *state;

    expect(s,
           "version && for n in one two six; do mkdir -p shelf/$n nest/.skills/$n "
           "&& printf -- '---\nname: %s\ndescription: d\n---\n' $n > shelf/$n/SKILL.md "
           "&& cp shelf/$n/SKILL.md nest/.skills/$n; done && mkdir shelf/none empty",
           0, "");
    expect(s, "skill push shelf", 0, "one@1.0.0");
    assert_non_null(strstr(s->printed, "two@1.0.0"));
    assert_non_null(strstr(s->printed, "six@1.0.0"));
    expect(s, "skill push shelf/none shelf/one", 125, "\"shelf/none\" has no SKILL.md");
    assert_non_null(strstr(s->printed, "one@1.0.0"));
    expect(s, "version && cp -r shelf nest/skills && cp -r shelf/six nest", 0, "");
    expect(s, "version && echo 1 | tee -a nest/six/SKILL.md nest/.skills/two/SKILL.md", 0, "");
    expect(s, "skill push nest 2>&1 | grep -c 'stays as .*@sha256:'", 0, "4\n"); /* and back */
    expect(s, "skill push -o json shelf/one shelf/two | wc -l", 0, "2\n");
    expect(s, "skill push empty", 125, "none of its folders has one");
    expect(s, "skill list", 0, "sha256:");
    expect(s, "version && sed -i 's/^name:/version: 2\\n&/' shelf/one/SKILL.md", 0, "");
    expect(s, "skill push shelf/one", 0, "one@2");
    expect(s, "version && echo more >> shelf/one/SKILL.md", 0, "");
    expect(s, "skill push shelf/one shelf/six", 125, "shelf/one is not registered");
    assert_non_null(strstr(s->printed, "--replace"));
    assert_non_null(strstr(s->printed, "six@1.0.0"));
    expect(s, "skill push --replace shelf/one", 0, "is gone");
    expect(s, "version && rm -r shelf nest empty", 0, "");
    expect(s, "skill rm two@latest", 0, "");
    expect(s, "skill rm two@latest", 0, "");
}

static void executions_are_seen(void **state)
{
    struct setting *s = *state;
    char line[256];

    expect(s, "exec list", 0, "EXECUTION");
    expect(s, "exec list", 0, "demo@1.0");
    expect(s, "exec list -n 1 --cursor nonsense", 125, "cursor");
    expect(s, "exec list --status failed -o json", 0, "\"executions\":[]");
    expect(s, "exec list -n 999", 2, "1 to 200");
    expect(s, "exec list -n x", 2, "1 to 200");
    snprintf(line, sizeof(line), "exec show %s", s->id);
    expect(s, line, 0, "status     success");
    snprintf(line, sizeof(line), "exec show %s -o json", s->id);
    expect(s, line, 0, "\"files_list\":[\"a.txt\",\"sub/b.txt\"]");
    snprintf(line, sizeof(line), "exec files %s", s->id);
    expect(s, line, 0, "a.txt\nsub/b.txt\n");
    snprintf(line, sizeof(line), "exec files %s sub/b.txt", s->id);
    expect(s, line, 0, "");
    snprintf(line, sizeof(line), "exec files %s nothing.txt", s->id);
    expect(s, line, 125, "left no file nothing.txt");
    snprintf(line, sizeof(line), "exec files %s -d out && cat out/a.txt", s->id);
    expect(s, line, 0, "a.txt\n");
    snprintf(line, sizeof(line), "exec logs %s", s->id);
    assert_int_equal(skillvm(s, line), 0);
    snprintf(line, sizeof(line), "exec logs -f %s", s->id);
    assert_int_equal(skillvm(s, line), 0);
    snprintf(line, sizeof(line), "exec cancel %s", s->id);
    expect(s, line, 125, "has ended already");
    expect(s, "exec show exec_none", 125, "there is no execution exec_none");
}

static void sessions_are_seen(void **state)
{
    struct setting *s = *state;

    expect(s, "run demo --session chat-1 -e FAKE=session -e FAKE_DATA=a.txt=hello", 0, "");
    expect(s, "session list", 0, "chat-1");
    expect(s, "session list", 0, "5 B");
    expect(s, "session list -o json", 0, "\"id\":\"chat-1\",\"bytes\":5,\"files\":1");
    expect(s, "session show chat-1", 0, "file     a.txt (5 B)");
    expect(s, "session get chat-1 a.txt", 0, "hello");
    expect(s, "session get chat-1 b.txt", 125, "session chat-1 has no file b.txt");
    expect(s, "run demo --session chat-1 -e FAKE=timeout", 124,
           "demo: warning: session chat-1 is as it was before: timed out");
    expect(s, "run demo --session a/b", 125, "\"session_id\" must be");
    expect(s, "session rm chat-1 b.txt", 125, "session chat-1 has no file b.txt");
    expect(s, "session rm chat-1 a.txt", 0, "");
    expect(s, "session get chat-1 a.txt", 125, "session chat-1 has no file a.txt");
    expect(s, "session rm chat-1", 0, "");
    expect(s, "session rm chat-1", 125, "there is no session chat-1");
    expect(s, "session show chat-1", 125, "there is no session chat-1");
}

static void says_what_is_wrong(void **state)
{
    struct setting *s = *state;

    expect(s, "health", 0, "ready");
    expect(s, "--socket /nowhere/sock health", 1, "skillvm up");
    expect(s, "health -o json", 0, "{\"ready\":true}\n");
    expect(s, "--socket /nowhere/sock health -o json", 1, "{\"ready\":false,\"detail\":");
    expect(s, "version -o json", 0, "{\"version\":\"");
    expect(s, "status --json", 0, "\"ready\":true");
    expect(s, "skill push /nowhere", 125,
           "cannot open \"/nowhere\": No such file or directory\n");
    expect(s, "skill", 2, "say what to do");
    expect(s, "skill fly", 2, "no `skillvm skill fly`");
    expect(s, "skill list extra", 2, "no more than 0");
    expect(s, "skill show", 2, "no fewer than 1 argument: NAME");
    expect(s, "skill list --follow", 2, "has no option --follow");
    expect(s, "skill list -o xml", 2, "json or table");
}

static void what_was_meant_is_said(void **state)
{
    struct setting *s = *state;

    expect(s, "skill pus x", 2, "there is no `skillvm skill pus`; did you mean \"push\"?\n");
    expect(s, "skil list", 2, "there is no command \"skil\"; did you mean \"skill\"?\n");
    expect(s, "help rnu", 2, "there is no command \"rnu\"; did you mean \"run\"?\n");
    expect(s, "skill remove demo", 2, "no `skillvm skill remove`; did you mean \"rm\"?\n");
    expect(s, "push x", 2, "no command \"push\"; did you mean `skillvm skill push`?\n");
    expect(s, "skill run x", 2, "no `skillvm skill run`; did you mean `skillvm run`?\n");
    expect(s, "help skill ini", 2, "no `skillvm skill ini`; did you mean \"init\"?\n");
    expect(s, "help skill init", 0, "usage: skillvm skill init ");
    expect(s, "help run fast", 2, "\"fast\" is one argument too many\n");
    expect(s, "help run", 0, "usage: skillvm run ");
    expect(s, "run nowhere.py", 125,
           "there is no file \"nowhere.py\", and no skill of that name\n");
    expect(s, "frobnicate", 2, "there is no command \"frobnicate\"\n");
    expect(s, "run dmeo", 125, "no skill named dmeo (not_found); did you mean \"demo\"?\n");
    expect(s, "skill show demmo", 125, "demmo (not_found); did you mean \"demo\"?\n");
    expect(s, "skill inspect demmo", 125, "demmo (not_found); did you mean \"demo\"?\n");
    expect(s, "skill inspect demo@9", 125, "demo has no version 9 (not_found)\n");
    expect(s, "skill inspect demo@1.0 -o json", 0, "\"name\":\"demo\",\"version\":\"1.0\"");
    expect(s, "skill inspect $(printf %03000d 1)", 125, "too long to be the name of a skill\n");
    expect(s, "skill rm domo@1.0", 125, "domo (not_found); did you mean \"demo\"?\n");
    expect(s, "skill rm demo@9", 125, "demo has no version 9 (not_found)\n");
    expect(s, "--data empty --socket empty/sock run dmeo --host soft", 125,
           "\"dmeo\", and no skill of that name is registered; none is: register one with ");
    assert_null(strstr(s->printed, "software host"));
    expect(s, "version && test ! -e empty/softhost", 0, "");
    expect(s, "run something-else", 125, "something-else (not_found)\n");
    expect(s, "tenant create idle", 0, "idle");
    expect(s, "run demo --as idle", 125,
           "(not_found); none is: register one with `skillvm skill push`\n");
    expect(s, "tenant rm idle", 0, "");
    expect(s, "version && echo '{\"n\": 1}' >in.json", 0, "");
    expect(s, "run demo --input in.json", 2,
           "the input \"in.json\" is no JSON, but a file has that name: give it as "
           "\"@in.json\"\n");
    expect(s, "run demo --input @in.json", 0, "");
    expect(s, "run demo --input out.json", 2,
           "the input \"out.json\" is no JSON, and no file has that name; one is given as "
           "\"@FILE\"\n");
    expect(s, "version && echo '{' >in.json", 0, "");
    expect(s, "run demo --input @in.json", 2, "the input: ");
    expect(s, "run demo --input @none.json", 2, "cannot open the input file \"none.json\"");
    expect(s, "tools call demo '{'", 2, "the input: ");
}

/* Writes a test of the skill "tested", in place of the others; a shell's quotes are kept off.
 */
static void write_test(struct setting *s, const char *text)
{
    char command[1024];

    (void)snprintf(command, sizeof(command),
                   "version && rm -f tested/tests/* && cat >tested/tests/one.json <<'END'\n"
                   "%s\nEND\n",
                   text);
    expect(s, command, 0, "");
}

static void a_skill_is_tested(void **state)
{
    struct setting *s = *state;

    expect(s, "skill init tested", 0, "skillvm skill test tested\n");
    write_test(s, "{\"input\": {\"n\": 12345678901234567890}, \"env\": {\"FAKE\": \"files\"},"
                  " \"args\": [\"a\"], \"timeout\": \"30s\","
                  " \"expect\": {\"exit_code\": 0, \"files\": [\"sub/b.txt\"]}}");
    expect(s, "skill test tested", 0, "ok    one  (");
    assert_non_null(strstr(s->printed, "\n1 passed, 0 failed\n"));
    expect(s, "skill test tested -o json", 0,
           "{\"passed\":1,\"failed\":0,\"tests\":[{\"test\":\"one\",\"passed\":true,"
           "\"execution_id\":\"exec_");
    write_test(s, "{\"env\": {\"FAKE\": \"stdout\", \"FAKE_DATA\": \"{\\\"n\\\": [1, 2]}\"},"
                  " \"expect\": {\"output\": {\"n\": [1, 3]}, \"files\": [\"a\"]}}");
    expect(s, "skill test tested", 1, "FAIL  one  (");
    assert_non_null(strstr(s->printed, "      output.n[1]: expected 3, got 2\n"
                                       "      files: expected \"a\", there is none\n"
                                       "0 passed, 1 failed\n"));
    expect(s, "skill test tested -o json", 1,
           "\"differences\":[\"output.n[1]: expected 3, got 2\",\"files: expected");
    write_test(s, "{\"env\": {\"FAKE\": \"exit\", \"FAKE_DATA\": \"3\"}}");
    expect(s, "skill test tested", 1, "      status: expected success, got failed: ");
    assert_non_null(strstr(s->printed, "      | err\n"));
    write_test(s, "{\"env\": {\"FAKE\": \"exit\", \"FAKE_DATA\": \"3\"},"
                  " \"expect\": {\"status\": \"failed\", \"exit_code\": 3}}");
    expect(s, "skill test tested", 0, "1 passed, 0 failed\n");
}

static void a_test_that_is_none_is_refused(void **state)
{
    struct setting *s = *state;

    expect(s, "skill init bare && rm -r bare/tests", 0, "");
    expect(s, "skill test bare", 125, "cannot open the folder of tests \"bare/tests\"");
    expect(s, "version && mkdir bare/tests && touch bare/tests/.x.json bare/tests/data.csv", 0,
           "");
    expect(s, "skill test bare", 125, "\"bare/tests\" has no test; each is a file NAME.json");
    expect(s, "skill test nowhere", 125, "nowhere");
    expect(s, "skill test tested/SKILL.md", 125, "is no folder");
    write_test(s, "{\"input\": ");
    expect(s, "skill test tested", 125, "tests/one.json: the input: ");
    write_test(s, "[]");
    expect(s, "skill test tested", 125, "tests/one.json: a test is an object");
    write_test(s, "{\"expected\": {}}");
    expect(s, "skill test tested", 125, "there is no \"expected\" in a test, but input stdin");
    write_test(s, "{\"expect\": {\"outptu\": 1}}");
    expect(s, "skill test tested", 125, "\"expect\" has \"outptu\", but takes output");
    write_test(s, "{\"files\": {\"x\": \"../../secret\"}}");
    expect(s, "skill test tested", 125, "\"..\"");
    write_test(s, "{\"files\": {\"x\": \"none.txt\"}}");
    expect(s, "skill test tested", 125, "cannot open the file \"tested/none.txt\"");
    write_test(s, "{\"files\": {\"x\": \"main.py\"}}");
    expect(s, "skill test tested", 0, "1 passed");
    write_test(s, "{\"timeout\": \"soon\"}");
    expect(s, "skill test tested", 125, "tests/one.json: ");
}

static void settings_are_for_a_daemon_that_is_started(void **state)
{
    struct setting *s = *state;

    expect(s, "up --config none.yaml", 125,
           "cannot read the settings \"none.yaml\": No such file or directory\n");
    expect(s, "up --config .", 125, "the settings \".\" are no regular file\n");
    expect(s, "up --listen 8080", 125,
           "--listen 8080: use an address and a port, such as 127.0.0.1:8080 or [::1]:8080\n");
    expect(s, "up --listen 127.0.0.1:8080", 125, "already up (process ");
    assert_non_null(strstr(s->printed, "`skillvm down` stops this one\n"));
    expect(s, "version && echo 'limits: {}' >good.yaml", 0, "");
    expect(s, "up --config good.yaml", 125, "already up (process ");
    expect(s, "up", 0, "already up: process ");
}

static void a_folder_for_files_is_looked_at_first(void **state)
{
    struct setting *s = *state;
    static const char list[] = "exec list -o json | jq -c '[.executions[].execution_id]'";
    char before[sizeof(s->printed)];

    expect(s, list, 0, "\"exec_");
    memcpy(before, s->printed, sizeof(before));
    expect(s, "version && touch taken", 0, "");
    expect(s, "run demo -d taken", 2, "cannot put files in \"taken\": \"taken\" is no folder");
    expect(s, "run demo -d taken/below", 2,
           "cannot make the folder \"taken/below\": Not a directory");
    expect(s, "run demo -d ''", 2, "\"\" cannot be the name of a folder");
    expect(s, list, 0, "");
    assert_string_equal(before, s->printed);
    expect(s, "run nothing -d made", 125, "(not_found)");
    expect(s, "version && test ! -e made", 0, "");
    expect(s, "run demo -d made/deep/", 0, "");
    expect(s, "version && test -d made/deep", 0, "");
}

/* The lock of a software host's supervisor, in the data directory, as another process. */
static pid_t hold_host_lock(const struct setting *s)
{
    struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    char path[512];
    int ready[2];
    char byte;
    pid_t pid;

    (void)snprintf(path, sizeof(path), "%s/softhost", s->harness.data);
    assert_true(mkdir(path, 0700) == 0 || errno == EEXIST);
    (void)snprintf(path, sizeof(path), "%s/softhost/lock", s->harness.data);
    assert_int_equal(pipe(ready), 0);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (fd >= 0 && fcntl(fd, F_SETLK, &whole) == 0 && write(ready[1], "1", 1) == 1)
            pause();
        _exit(1);
    }
    close(ready[1]);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    return pid;
}

static void a_daemon_of_no_host_is_shown_as_one(void **state)
{
    struct setting *s = *state;
    pid_t host = hold_host_lock(s);

    /* The last execution's machine may go a moment after its answer. */
    for (int i = 0; i < 3000; i++) {
        expect(s, "status", 0, "host     native (KVM)");
        if (strstr(s->printed, "machines 0,"))
            break;
        usleep(20000);
    }
    assert_null(strstr(s->printed, "restarts"));
    assert_non_null(strstr(s->printed, "machines 0, of which 0 fresh and 0 used ones wait"));
    expect(s, "-o json status", 0, "\"machines\":{\"processes\":0,\"parked_fresh\":0,");
    expect(s, "-o json status", 0, "\"host\":\"native\"");
    assert_null(strstr(s->printed, "software_host"));
    kill(host, SIGKILL);
    waitpid(host, NULL, 0);
}

static void the_form_is_said_anywhere(void **state)
{
    struct setting *s = *state;

    expect(s, "-o json skill list", 0, "[{\"name\":\"demo\"");
    expect(s, "--output=json health", 0, "{\"ready\":true}");
    expect(s, "-o json status", 0, "{\"up\":true,\"ready\":true,");
    expect(s, "-o json status | wc -l", 0, "1\n");
    expect(s, "-o json run demo", 0, "{\"execution_id\":");
    expect(s, "-o json skill list -o table", 0, "NAME  VERSION");
    expect(s, "-o json skill rm demo@none", 125, "no version none");
    expect(s, "-o yaml skill list", 2, "json or table, not \"yaml\"");
}

static void what_cannot_be_written_is_a_failure(void **state)
{
    static const char *const commands[] = {"skill list", "-o json skill list", "help",
                                           "version", "exec list --help"};
    struct setting *s = *state;
    char command[128];

    for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
        (void)snprintf(command, sizeof(command),
                       "%s >/dev/full 2>said || { s=$?; cat said; (exit $s); }", commands[i]);
        expect(s, command, 125, "skillvm: cannot write to standard output");
    }
    expect(s, "tools call demo >/dev/full 2>said || { s=$?; cat said; (exit $s); }", 125,
           "skillvm: cannot write to standard output");
    /* And nothing runs on that nobody will see. */
    expect(s, "run demo -e FAKE=ticks >/dev/full 2>said || { s=$?; cat said; (exit $s); }", 125,
           "skillvm: cannot write the skill's output");
    for (int i = 0; i < 3000; i++) {
        if (skillvm(s, "exec list --status cancelled") == 0 && strstr(s->printed, "cancelled"))
            break;
        usleep(20000);
    }
    expect(s, "exec list --status cancelled", 0, "cancelled");
    /* Whatever KVM is like here. */
    expect(s, "version && { SKILLVM_SHARE=empty '" SKILLVM "' doctor; true; }", 0,
           "-> install the Debian package skillvm-softhost, run `./dev build`");
    expect(s, "skill list --bogus", 2, "skillvm: unrecognized option '--bogus'");
    expect(s, "run --bogus", 2, "skillvm: unrecognized option '--bogus'");
}

/* The images of an installation, without a daemon: of wheels, of JavaScript. */
static void images_are_chosen_without_a_daemon(void **state)
{
    static const char inspect[] =
        "version && SKILLVM_SHARE=share SKILLVM_IMAGES=$PWD/own-images '" SKILLVM
        "' skill inspect ./local -o json";
    static const char lint[] =
        "version && SKILLVM_SHARE=share SKILLVM_IMAGES=$PWD/own-images '" SKILLVM
        "' skill lint ./local";
    struct setting *s = *state;

    expect(
        s,
        "version && mkdir -p local share && printf x >share/python.erofs && "
        "printf xx >share/large.erofs && printf xxx >share/node.erofs && "
        "printf 'language python 3.11.2\\nmodule yaml\\n' >share/python.manifest && "
        "printf 'language python 3.11.2\\nmodule yaml\\nmodule heavy\\n' "
        ">share/large.manifest && printf 'program node\\nnode ajv\\n' >share/node.manifest && "
        "printf -- '---\\nname: local\\ndescription: x\\n---\\n' >local/SKILL.md && "
        "echo 'import heavy, yaml' >local/main.py",
        0, "");
    expect(
        s, inspect, 0,
        "\"image\":\"large\",\"image_reason\":\"smallest of 3 that has Python, heavy, yaml\"");
    expect(s,
           "version && python3 \"$SKILLVM_TEST_SOURCE/tests/e2e/make_wheel.py\" local/wheels "
           "heavy 1.0 --file heavy.py=1",
           0, "");
    expect(s, inspect, 0,
           "\"image\":\"python\",\"image_reason\":\"smallest of 3 that takes its packages and "
           "has Python, yaml\"");
    expect(s, inspect, 0, "{\"module\":\"heavy\",\"from\":\"skill\"");
    expect(s, lint, 0, "local is a good skill");
    expect(s,
           "version && rm -r local/main.py local/wheels && "
           "echo 'import \"ajv\"; import \"gone/part\"' >local/main.mjs",
           0, "");
    expect(s, inspect, 0, "{\"module\":\"gone\",\"from\":\"missing\",\"file\":\"main.mjs\"");
    expect(s, lint, 0,
           "warning: main.mjs line 1: the image node has no module \"gone\": install it into a "
           "node_modules");
    expect(s, lint, 0, "local can be registered; 1 warning\n");
    /* One of the operator's own, which would have it, and which has it. */
    expect(s,
           "version && mkdir -p own-images/recipes && "
           "printf 'name: made\\nextends: node.yaml\\nbrings: [node gone]\\n' "
           ">own-images/recipes/made.yaml && echo '[]' >own-images/recipes/none.yaml",
           0, "");
    expect(s, inspect, 0, "`skillvm image build made` makes it");
    expect(s, lint, 0, "none.yaml is left out: it is no recipe");
    expect(
        s, lint, 0,
        "the image made has it, which is not installed here: `skillvm image build made` makes "
        "it");
    expect(s,
           "version && printf xxxx >own-images/own.erofs && "
           "printf 'program node\\nnode ajv\\nnode gone\\n' >own-images/own.manifest",
           0, "");
    expect(s, inspect, 0, "\"image\":\"own\",\"image_reason\":\"smallest of 4 that has ");
    expect(s, lint, 0, "local is a good skill");
}

/* The last line is what a person reads, and nobody reads what is above "a good skill". */
static void lint_calls_no_skill_good_that_cannot_run(void **state)
{
    static const struct {
        const char *file, *content, *says;
    } skills[] = {
        {"main.ts", "1", "line 1: no image runs TypeScript: make JavaScript of it (main.js)"},
        {"main.go", "x", "no image runs Go: build a static program for Linux on x86_64"},
        {"main.go", "x",
         "\nverdict can be registered; 1 warning; the skill has nothing to run"},
        {"tool", "#!/usr/bin/python3", "\nverdict can be registered; 1 warning\n"},
        {"main.py", "import gone1, gone2, gone3", "\nverdict can be registered; 3 warnings\n"},
        {"main.py", "print(1)", "verdict is a good skill\n"},
        {"notes.md", "read me", "verdict is good to read; the skill has nothing to run: th"},
    };
    static const char lint[] =
        "version && SKILLVM_SHARE=only-python SKILLVM_IMAGES=$PWD/no-images '" SKILLVM
        "' skill lint ./verdict";
    struct setting *s = *state;
    char make[512];

    expect(s,
           "version && mkdir only-python && printf x >only-python/python.erofs && "
           "printf 'language python 3.11.2\\n' >only-python/python.manifest",
           0, "");
    for (size_t i = 0; i < sizeof(skills) / sizeof(skills[0]); i++) {
        (void)snprintf(make, sizeof(make),
                       "version && rm -rf verdict && mkdir verdict && printf -- "
                       "'---\\nname: verdict\\ndescription: x\\n---\\n' >verdict/SKILL.md && "
                       "echo '%s' >verdict/%s",
                       skills[i].content, skills[i].file);
        expect(s, make, 0, "");
        expect(s, lint, 0, skills[i].says);
    }
    expect(s, "skill lint ./verdict -o json", 0, "\"valid\":true,\"can_run\":false");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(skills_come_and_go),
        cmocka_unit_test(lint_calls_no_skill_good_that_cannot_run),
        cmocka_unit_test(many_skills_are_pushed_at_once),
        cmocka_unit_test(executions_are_seen),
        cmocka_unit_test(sessions_are_seen),
        cmocka_unit_test(says_what_is_wrong),
        cmocka_unit_test(what_was_meant_is_said),
        cmocka_unit_test(a_skill_is_tested),
        cmocka_unit_test(a_test_that_is_none_is_refused),
        cmocka_unit_test(settings_are_for_a_daemon_that_is_started),
        cmocka_unit_test(a_folder_for_files_is_looked_at_first),
        cmocka_unit_test(a_daemon_of_no_host_is_shown_as_one),
        cmocka_unit_test(images_are_chosen_without_a_daemon),
        cmocka_unit_test(the_form_is_said_anywhere),
        cmocka_unit_test(what_cannot_be_written_is_a_failure),
    };

    return cmocka_run_group_tests(tests, start, finish);
}
