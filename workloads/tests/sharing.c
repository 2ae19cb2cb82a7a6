/* flags: -pthread */
/* not under qemu-alpha 7.2: it crashes when shared memory is attached a second time */
/* Memory and messages shared between processes: System V, POSIX, futexes, mappings. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

union semun {
    int value;
    struct semid_ds *set;
    unsigned short *values;
};

/* The result of a call and, if it failed, why. */
static void tell(const char *what, long result) {
    int error = errno;
    printf("%s: %ld %s\n", what, result, result < 0 ? strerror(error) : "");
}

static void segments(void) {
    int id = shmget(IPC_PRIVATE, 50000, IPC_CREAT | 0600);
    char *writable = shmat(id, NULL, 0), *readable = shmat(id, NULL, SHM_RDONLY);
    struct shmid_ds segment;
    strcpy(writable, "shared");
    printf("%s %d\n", readable, writable != readable);
    tell("shmctl", shmctl(id, IPC_STAT, &segment));
    printf("%d %d %d %o\n", (int)segment.shm_segsz, (int)segment.shm_nattch, segment.shm_cpid == getpid(),
           segment.shm_perm.mode & 0777);
    if (fork() == 0) {
        strcpy(writable, "child");
        _exit(0);
    }
    wait(NULL);
    printf("%s\n", readable);
    tell("shmdt", shmdt(writable));
    tell("shmdt", shmdt(readable));
    tell("again", shmdt(readable));
    tell("remove", shmctl(id, IPC_RMID, NULL));
}

static void semaphores(void) {
    int id = semget(IPC_PRIVATE, 3, 0600 | IPC_CREAT);
    unsigned short values[3] = {1, 2, 3};
    struct semid_ds set;
    tell("SETALL", semctl(id, 0, SETALL, (union semun){.values = values}));
    memset(values, 0, sizeof values);
    tell("GETALL", semctl(id, 0, GETALL, (union semun){.values = values}));
    printf("%d %d %d\n", values[0], values[1], values[2]);
    tell("GETVAL", semctl(id, 1, GETVAL));
    tell("IPC_STAT", semctl(id, 0, IPC_STAT, (union semun){.set = &set}));
    printf("%d %o\n", (int)set.sem_nsems, set.sem_perm.mode & 0777);
    struct sembuf down = {0, -2, 0}, up = {0, 1, 0};
    if (fork() == 0) {
        usleep(10000);
        _exit(semop(id, &up, 1));
    }
    tell("semop", semop(id, &down, 1));
    wait(NULL);
    struct timespec soon = {0, 5000000};
    tell("semtimedop", semtimedop(id, &down, 1, &soon));
    down.sem_flg = IPC_NOWAIT;
    tell("without waiting", semop(id, &down, 1));
    tell("SETVAL", semctl(id, 2, SETVAL, (union semun){.value = 9}));
    tell("GETVAL", semctl(id, 2, GETVAL));
    set.sem_perm.mode = 0640;
    tell("IPC_SET", semctl(id, 0, IPC_SET, (union semun){.set = &set}));
    tell("remove", semctl(id, 0, IPC_RMID));
    tell("removed", semctl(id, 0, GETVAL));
}

static void queues(void) {
    struct {
        long kind;
        char text[16];
    } message = {3, "message"};
    struct msqid_ds queue;
    int id = msgget(IPC_PRIVATE, 0600 | IPC_CREAT);
    tell("msgsnd", msgsnd(id, &message, 8, 0));
    memset(&message, 0, sizeof message);
    tell("msgctl", msgctl(id, IPC_STAT, &queue));
    printf("%d %d\n", (int)queue.msg_qnum, queue.msg_lspid == getpid());
    tell("msgrcv", msgrcv(id, &message, sizeof message.text, 0, 0));
    printf("%ld %s\n", message.kind, message.text);
    tell("empty", msgrcv(id, &message, sizeof message.text, 0, IPC_NOWAIT));
    tell("remove", msgctl(id, IPC_RMID, NULL));
}

static void locks(void) {
    struct {
        int counted, added;
        pthread_mutex_t mutex;
        sem_t done;
    } *shared = mmap(NULL, 100000, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    pthread_mutex_init(&shared->mutex, &attributes);
    sem_init(&shared->done, 1, 0);
    for (int process = 0; process < 3; process++)
        if (fork() == 0) {
            for (int i = 0; i < 2000; i++) {
                pthread_mutex_lock(&shared->mutex);
                shared->counted++;
                pthread_mutex_unlock(&shared->mutex);
                __sync_fetch_and_add(&shared->added, 1);
            }
            sem_post(&shared->done);
            _exit(0);
        }
    for (int process = 0; process < 3; process++) sem_wait(&shared->done);
    printf("%d %d\n", shared->counted, shared->added);
    while (wait(NULL) > 0) {}
    struct timespec soon;
    clock_gettime(CLOCK_REALTIME, &soon);
    soon.tv_nsec = soon.tv_nsec / 2;
    tell("sem_timedwait", sem_timedwait(&shared->done, &soon));
}

static void moved_mappings(void) {
    char *page = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memset(page, 7, 65536);
    tell("madvise", madvise(page + 8192, 8192, MADV_DONTNEED));
    printf("%d %d %d\n", page[0], page[8192], page[16384]);
    page = mremap(page, 65536, 1 << 20, MREMAP_MAYMOVE);
    printf("%d %d %d\n", page[0], page[16384], page[100000]);
    page = mremap(page, 1 << 20, 8192, MREMAP_MAYMOVE);
    printf("%d\n", page[8191]);
    char *first = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    char *second = mremap(first, 0, 65536, MREMAP_MAYMOVE);
    first[1] = 6;
    printf("second view: %d\n", second[1]);
    char name[] = "mappedXXXXXX";
    int file = mkstemp(name);
    unlink(name);
    tell("ftruncate", ftruncate(file, 40000));
    char *mapped = mmap(NULL, 20000, PROT_READ | PROT_WRITE, MAP_SHARED, file, 8192);
    mapped[3] = 'x';
    tell("msync", msync(mapped, 16384, MS_SYNC));
    char byte;
    tell("pread", pread(file, &byte, 1, 8195));
    mapped = mremap(mapped, 8192, 16384, MREMAP_MAYMOVE);
    printf("%c %c\n", byte, mapped[3]);
    tell("no length", (long)mmap(NULL, 0, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    tell("no file", (long)mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, -1, 0));
    tell("too long", (long)mmap(NULL, ~0ul - 100000, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    tell("misaligned", munmap((void *)1, 4096));
    tell("not mapped", mprotect(page + (64l << 30), 8192, PROT_READ));
    tell("occupied", (long)mmap(page, 8192, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0));
}

int main(void) {
    setvbuf(stdout, NULL, _IOLBF, 0);
    segments();
    semaphores();
    queues();
    locks();
    moved_mappings();
    return 0;
}
