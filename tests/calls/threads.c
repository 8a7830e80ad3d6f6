/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads and what they wait on, and what processes share by name: semaphores, queues, memory.
 */
#include "tests/calls/calls.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <mqueue.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static int turns;

static void *take_turns(void *mine)
{
    int parity = *(int *)mine;

    for (int i = 0; i < 100; i++) {
        (void)pthread_mutex_lock(&mutex);
        while (turns % 2 != parity)
            (void)pthread_cond_wait(&condition, &mutex);
        turns++;
        (void)pthread_cond_broadcast(&condition);
        (void)pthread_mutex_unlock(&mutex);
    }
    return NULL;
}

static int threads_plain(void)
{
    pthread_t threads[2];
    int parity[] = {0, 1};

    for (int i = 0; i < 2; i++)
        TRY_ERROR(pthread_create(&threads[i], NULL, take_turns, &parity[i]));
    for (int i = 0; i < 2; i++)
        TRY_ERROR(pthread_join(threads[i], NULL));
    CHECK(turns == 200);
    return 0;
}

/* A mutex in memory that two processes share; the child ends without giving it back, or does.
 */
static int shared_mutex(int robust, int protocol, int expected)
{
    pthread_mutex_t *shared =
        mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pthread_mutexattr_t kind;
    pid_t pid;

    CHECK(shared != MAP_FAILED);
    TRY_ERROR(pthread_mutexattr_init(&kind));
    TRY_ERROR(pthread_mutexattr_setpshared(&kind, PTHREAD_PROCESS_SHARED));
    TRY_ERROR(pthread_mutexattr_setrobust(&kind, robust));
    TRY_ERROR(pthread_mutexattr_setprotocol(&kind, protocol));
    TRY_ERROR(pthread_mutex_init(shared, &kind));
    pid = fork();
    TRY(pid);
    if (pid == 0) {
        bool good = pthread_mutex_lock(shared) == 0;

        if (robust == PTHREAD_MUTEX_STALLED)
            good = good && pthread_mutex_unlock(shared) == 0;
        probe_child_end(good);
    }
    TRY_PROBE(probe_child_wait(pid));
    CHECK(pthread_mutex_lock(shared) == expected);
    return 0;
}

static int threads_shared(void)
{
    return shared_mutex(PTHREAD_MUTEX_STALLED, PTHREAD_PRIO_NONE, 0);
}

static int threads_robust(void)
{
    return shared_mutex(PTHREAD_MUTEX_ROBUST, PTHREAD_PRIO_NONE, EOWNERDEAD);
}

static int threads_inherit(void)
{
    return shared_mutex(PTHREAD_MUTEX_ROBUST, PTHREAD_PRIO_INHERIT, EOWNERDEAD);
}

static void *own_name(void *done)
{
    char name[16] = "";
    cpu_set_t set;

    *(bool *)done = pthread_setname_np(pthread_self(), "worker") == 0 &&
                    pthread_getname_np(pthread_self(), name, sizeof(name)) == 0 &&
                    strcmp(name, "worker") == 0 &&
                    pthread_getaffinity_np(pthread_self(), sizeof(set), &set) == 0 &&
                    pthread_setaffinity_np(pthread_self(), sizeof(set), &set) == 0;
    return NULL;
}

static int threads_names(void)
{
    bool done = false;
    pthread_t thread;

    TRY_ERROR(pthread_create(&thread, NULL, own_name, &done));
    TRY_ERROR(pthread_join(thread, NULL));
    CHECK(done);
    return 0;
}

static int futex_plain(void)
{
    const struct timespec soon = {.tv_nsec = 1000000};
    unsigned word = 1;

    CHECK(syscall(SYS_futex, &word, FUTEX_WAIT, 0, NULL, NULL, 0) < 0 && errno == EAGAIN);
    CHECK(syscall(SYS_futex, &word, FUTEX_WAIT, 1, &soon, NULL, 0) < 0 && errno == ETIMEDOUT);
    return syscall(SYS_futex, &word, FUTEX_WAKE, 1, NULL, NULL, 0) < 0 ? -errno : 0;
}

static int futex_many(void)
{
    unsigned word = 1;
    struct futex_waitv waiters[] = {
        {.val = 0, .uaddr = (unsigned long)&word, .flags = FUTEX_32}};

    CHECK(syscall(SYS_futex_waitv, waiters, 1, 0, NULL, 0) < 0);
    return errno == EAGAIN ? 0 : -errno;
}

static int semaphore_named(void)
{
    struct timespec limit;
    sem_t *semaphore = sem_open("/calls-probe", O_CREAT | O_EXCL, 0600, 0);
    pid_t pid;

    if (semaphore == SEM_FAILED)
        return -errno;
    TRY(sem_unlink("/calls-probe"));
    pid = fork();
    TRY(pid);
    if (pid == 0)
        probe_child_end(sem_post(semaphore) == 0);
    TRY(clock_gettime(CLOCK_REALTIME, &limit));
    limit.tv_sec += 20;
    TRY(sem_timedwait(semaphore, &limit));
    return probe_child_wait(pid);
}

static int memory_named(void)
{
    int fd = shm_open("/calls-probe", O_CREAT | O_EXCL | O_RDWR, 0600);

    TRY(fd);
    TRY(shm_unlink("/calls-probe"));
    TRY(ftruncate(fd, 4096));
    CHECK(mmap(NULL, 4096, PROT_WRITE, MAP_SHARED, fd, 0) != MAP_FAILED);
    return 0;
}

static int queue_named(void)
{
    mqd_t queue = mq_open("/calls-probe", O_CREAT | O_EXCL | O_RDWR, 0600, NULL);

    TRY(queue);
    return mq_unlink("/calls-probe") < 0 ? -errno : 0;
}

static int sysv_memory(void)
{
    int id = shmget(IPC_PRIVATE, 4096, IPC_CREAT | 0600);
    char *at;

    TRY(id);
    at = shmat(id, NULL, 0);
    TRY(shmctl(id, IPC_RMID, NULL));
    CHECK(at != (char *)-1 && at[0] == 0);
    return shmdt(at) < 0 ? -errno : 0;
}

static int sysv_semaphore(void)
{
    struct sembuf up = {.sem_op = 1};
    struct sembuf down = {.sem_op = -1, .sem_flg = IPC_NOWAIT};
    int id = semget(IPC_PRIVATE, 1, IPC_CREAT | 0600);
    int r;

    TRY(id);
    r = semop(id, &up, 1) < 0 || semop(id, &down, 1) < 0 ? -errno : 0;
    CHECK(semop(id, &down, 1) < 0 && errno == EAGAIN);
    TRY(semctl(id, 0, IPC_RMID));
    return r;
}

static int sysv_queue(void)
{
    struct {
        long type;
        char text[4];
    } message = {.type = 1, .text = "abc"};
    int id = msgget(IPC_PRIVATE, IPC_CREAT | 0600);
    ssize_t n;

    TRY(id);
    TRY(msgsnd(id, &message, 4, 0));
    n = msgrcv(id, &message, 4, 1, IPC_NOWAIT);
    TRY(msgctl(id, IPC_RMID, NULL));
    CHECK(n == 4);
    return 0;
}

static const struct probe probes[] = {
    PROBE("threads, mutexes and conditions", threads_plain),
    PROBE("mutexes of two processes", threads_shared),
    PROBE("robust mutexes", threads_robust),
    PROBE("mutexes that inherit priority", threads_inherit),
    PROBE("names and affinity of threads", threads_names),
    PROBE("futex", futex_plain),
    PROBE("futex_waitv", futex_many),
    PROBE("sem_open", semaphore_named),
    PROBE("shm_open", memory_named),
    PROBE("mq_open", queue_named),
    PROBE("shmget shmat", sysv_memory),
    PROBE("semget semop", sysv_semaphore),
    PROBE("msgget msgsnd msgrcv", sysv_queue),
};

const struct probe_list calls_threads = PROBE_LIST(probes);
