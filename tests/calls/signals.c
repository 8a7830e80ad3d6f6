/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Signals, clocks and timers.
 */
#include "tests/calls/calls.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/timex.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static volatile sig_atomic_t seen;

static void on_signal(int number, siginfo_t *info, void *context)
{
    (void)context;
    seen = number;
    (void)info;
}

static int handle(int number, int flags)
{
    struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | flags};

    return sigaction(number, &action, NULL);
}

static int block(int number, sigset_t *ret_set)
{
    sigemptyset(ret_set);
    sigaddset(ret_set, number);
    return sigprocmask(SIG_BLOCK, ret_set, NULL);
}

static int await(const sigset_t *set, siginfo_t *ret_info)
{
    const struct timespec limit = {.tv_sec = 20};

    return sigtimedwait(set, ret_info, &limit);
}

static int signals_plain(void)
{
    sigset_t none;
    sigset_t set;

    TRY(handle(SIGUSR1, 0));
    TRY(block(SIGUSR1, &set));
    TRY(kill(getpid(), SIGUSR1));
    TRY(syscall(SYS_tgkill, getpid(), gettid(), SIGUSR1));
    CHECK(sigpending(&set) == 0 && sigismember(&set, SIGUSR1) && !seen);
    sigemptyset(&none);
    CHECK(sigsuspend(&none) < 0 && errno == EINTR && seen == SIGUSR1);
    return 0;
}

/* Real-time signals are queued, each with its value. */
static int signals_queue(void)
{
    siginfo_t info;
    sigset_t set;

    TRY(block(SIGRTMIN + 1, &set));
    for (int i = 0; i < 3; i++)
        TRY(sigqueue(getpid(), SIGRTMIN + 1, (union sigval){.sival_int = i}));
    for (int i = 0; i < 3; i++) {
        TRY(await(&set, &info));
        CHECK(info.si_value.sival_int == i && info.si_pid == getpid());
    }
    return 0;
}

static char stack_room[64 << 10];
static char *forbidden;

static void on_fault(int number, siginfo_t *info, void *context)
{
    const char *here = (const char *)&number;

    (void)context;
    _exit(info->si_addr == forbidden && here >= stack_room &&
                  here < stack_room + sizeof(stack_room)
              ? 0
              : 1);
}

static int signals_stack(void)
{
    const stack_t stack = {.ss_sp = stack_room, .ss_size = sizeof(stack_room)};
    struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    pid_t pid;

    forbidden = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(forbidden != MAP_FAILED);
    TRY(sigaltstack(&stack, NULL));
    TRY(sigaction(SIGSEGV, &action, NULL));
    pid = fork();
    TRY(pid);
    if (pid == 0) {
        *(volatile char *)forbidden = 1;
        probe_child_end(false);
    }
    return probe_child_wait(pid);
}

/* A read that a handled signal interrupts goes on when SA_RESTART asks for that. */
static int signals_restart(void)
{
    char text[4];
    int ends[2];
    pid_t pid;

    TRY(handle(SIGUSR1, SA_RESTART));
    TRY(pipe2(ends, O_CLOEXEC));
    pid = fork();
    TRY(pid);
    if (pid == 0) {
        bool sent = kill(getppid(), SIGUSR1) == 0;

        probe_child_end(sent && write(ends[1], "x", 1) == 1);
    }
    CHECK(read(ends[0], text, 1) == 1 && seen == SIGUSR1);
    return probe_child_wait(pid);
}

static int signals_stop(void)
{
    int status;
    pid_t pid = fork();

    TRY(pid);
    if (pid == 0) {
        (void)raise(SIGSTOP);
        probe_child_end(true);
    }
    TRY(waitpid(pid, &status, WUNTRACED));
    CHECK(WIFSTOPPED(status) && kill(pid, SIGCONT) == 0);
    TRY(waitpid(pid, &status, WCONTINUED));
    return WIFCONTINUED(status) ? probe_child_wait(pid) : 0;
}

static int signals_init(void)
{
    return kill(1, SIGTERM) < 0 ? -errno : 0;
}

static int clocks_read(void)
{
    static const clockid_t clocks[] = {
        CLOCK_REALTIME,
        CLOCK_MONOTONIC,
        CLOCK_MONOTONIC_RAW,
        CLOCK_BOOTTIME,
        CLOCK_TAI,
        CLOCK_REALTIME_COARSE,
        CLOCK_MONOTONIC_COARSE,
        CLOCK_PROCESS_CPUTIME_ID,
        CLOCK_THREAD_CPUTIME_ID,
    };
    struct timespec first;
    struct timespec next;

    for (size_t i = 0; i < sizeof(clocks) / sizeof(clocks[0]); i++) {
        TRY(clock_gettime(clocks[i], &first));
        TRY(clock_gettime(clocks[i], &next));
        CHECK(next.tv_sec > first.tv_sec ||
              (next.tv_sec == first.tv_sec && next.tv_nsec >= first.tv_nsec));
    }
    TRY(clock_getres(CLOCK_MONOTONIC, &next));
    CHECK(next.tv_sec == 0 && next.tv_nsec == 1);
    return 0;
}

static int clocks_of_another(void)
{
    struct timespec used;
    clockid_t clock;

    TRY_ERROR(clock_getcpuclockid(getppid(), &clock));
    return clock_gettime(clock, &used) < 0 ? -errno : 0;
}

static long long now_ns(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000LL + now.tv_nsec;
}

/* High resolution: a sleep of a tenth of a tick is not rounded up to one each time. */
static int clocks_sleep(void)
{
    const struct timespec ms = {.tv_nsec = 1000000};
    long long shortest = 1LL << 60;

    for (int i = 0; i < 20; i++) {
        long long start = now_ns();

        TRY(nanosleep(&ms, NULL));
        TRY_ERROR(clock_nanosleep(CLOCK_MONOTONIC, 0, &ms, NULL));
        if (now_ns() - start < shortest)
            shortest = now_ns() - start;
    }
    CHECK(shortest >= 2000000 && shortest < 18000000);
    return 0;
}

static int timers_posix(clockid_t clock)
{
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMIN + 2};
    const struct itimerspec soon = {.it_value.tv_nsec = 1000000};
    siginfo_t info;
    sigset_t set;
    timer_t timer;

    TRY(block(SIGRTMIN + 2, &set));
    TRY(timer_create(clock, &event, &timer));
    TRY(timer_settime(timer, 0, &soon, NULL));
    /* A clock of the processor moves only while it is used. */
    while (clock == CLOCK_PROCESS_CPUTIME_ID && sigpending(&set) == 0 &&
           !sigismember(&set, SIGRTMIN + 2))
        ;
    sigemptyset(&set);
    sigaddset(&set, SIGRTMIN + 2);
    TRY(await(&set, &info));
    CHECK(info.si_code == SI_TIMER);
    return timer_delete(timer) < 0 ? -errno : 0;
}

static int timers_monotonic(void)
{
    return timers_posix(CLOCK_MONOTONIC);
}

static int timers_processor(void)
{
    return timers_posix(CLOCK_PROCESS_CPUTIME_ID);
}

static int timers_alarm_clock(void)
{
    return timers_posix(CLOCK_BOOTTIME_ALARM);
}

static int timerfd(clockid_t clock)
{
    const struct itimerspec soon = {.it_value.tv_nsec = 1000000,
                                    .it_interval.tv_nsec = 1000000};
    unsigned long long times = 0;
    int fd = timerfd_create(clock, TFD_CLOEXEC);

    TRY(fd);
    TRY(timerfd_settime(fd, 0, &soon, NULL));
    CHECK(read(fd, &times, sizeof(times)) == (ssize_t)sizeof(times) && times > 0);
    return 0;
}

static int timers_descriptor(void)
{
    return timerfd(CLOCK_MONOTONIC);
}

static int timers_descriptor_boot(void)
{
    return timerfd(CLOCK_BOOTTIME);
}

static int timers_interval(void)
{
    static const struct {
        __itimer_which_t which;
        int signal;
    } each[] = {{ITIMER_REAL, SIGALRM}, {ITIMER_VIRTUAL, SIGVTALRM}, {ITIMER_PROF, SIGPROF}};
    const struct itimerval soon = {.it_value.tv_usec = 1000};

    for (size_t i = 0; i < sizeof(each) / sizeof(each[0]); i++) {
        TRY(handle(each[i].signal, 0));
        TRY(setitimer(each[i].which, &soon, NULL));
        while (seen != each[i].signal)
            ;
    }
    return 0;
}

static int clocks_adjust_read(void)
{
    struct timex state = {0};

    return adjtimex(&state) < 0 ? -errno : 0;
}

static int clocks_set(void)
{
    struct timespec now;

    TRY(clock_gettime(CLOCK_REALTIME, &now));
    return clock_settime(CLOCK_REALTIME, &now) < 0 ? -errno : 0;
}

static int clocks_zone(void)
{
    const time_t summer = 1720000000; /* 2024-07-03 09:46:40 UTC */
    struct tm there;

    TRY(setenv("TZ", "Europe/Berlin", 1));
    tzset();
    CHECK(localtime_r(&summer, &there) && there.tm_hour == 11 && there.tm_isdst == 1);
    return 0;
}

static const struct probe probes[] = {
    PROBE("sigaction sigprocmask kill tgkill sigsuspend", signals_plain),
    PROBE("sigqueue sigtimedwait", signals_queue),
    PROBE("sigaltstack", signals_stack),
    PROBE("SA_RESTART", signals_restart),
    PROBE("SIGSTOP SIGCONT", signals_stop),
    PROBE("kill of init", signals_init),
    PROBE("clock_gettime clock_getres", clocks_read),
    PROBE("clock_getcpuclockid of another", clocks_of_another),
    PROBE("nanosleep clock_nanosleep", clocks_sleep),
    PROBE("timer_create", timers_monotonic),
    PROBE("timer_create of processor time", timers_processor),
    PROBE("timer_create CLOCK_BOOTTIME_ALARM", timers_alarm_clock),
    PROBE("timerfd", timers_descriptor),
    PROBE("timerfd CLOCK_BOOTTIME", timers_descriptor_boot),
    PROBE("setitimer", timers_interval),
    PROBE("adjtimex to read", clocks_adjust_read),
    PROBE("clock_settime", clocks_set),
    PROBE("time zones", clocks_zone),
};

const struct probe_list calls_signals = PROBE_LIST(probes);
