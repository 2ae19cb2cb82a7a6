/* alpha flags: -lrt */
/* What a process keeps while its threads open files and look at processes: record locks, leases, notifications. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <mqueue.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static char folder[] = "/tmp/thread-locks-XXXXXX";
static volatile sig_atomic_t notified;

static void on_message(int signal) { notified += signal == SIGUSR1; }

/* Whether another process finds a lock. */
static int locked(void) {
    int status = 0;
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
        int file = open("file", O_RDWR);
        _exit(file < 0 || fcntl(file, F_GETLK, &lock) != 0 ? 2 : lock.l_type != F_UNLCK);
    }
    waitpid(child, &status, 0);
    return WEXITSTATUS(status);
}

/* Another process's executable, status and memory. */
static void look_around(void) {
    char name[64], text[256];
    const char *files[] = {"/proc/%d/exe", "/proc/%d/status", "/proc/%d/stat", "/proc/%d/mem", "/proc/%d/fdinfo/0"};
    pid_t of[] = {getppid(), getpid(), 1};
    for (int process = 0; process < 3; process++) {
        for (int i = 0; i < 5; i++) {
            snprintf(name, sizeof name, files[i], of[process]);
            readlink(name, text, sizeof text);
            int file = open(name, O_RDONLY);
            if (file < 0) continue;
            pread(file, text, sizeof text, i == 3 ? (off_t)(long)name : 0);
            close(file);
        }
    }
}

static void *locks(void *unused) {
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    int file = open("file", O_RDWR | O_CREAT, 0600), again[4];
    printf("no lock: %d\n", locked());
    fcntl(file, F_SETLK, &lock);
    printf("lock: %d\n", locked());
    again[0] = open("file", O_RDONLY);
    printf("opened again: %d\n", locked());
    again[1] = open("file", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    again[2] = openat(AT_FDCWD, "link", O_WRONLY | O_APPEND);
    again[3] = open("file", O_PATH);
    close(again[3]);
    look_around();
    printf("and again: %d\n", locked());
    printf("numbers: %d %d %d\n", again[0] - file, again[1] - file, again[2] - file);
    close(again[1]);
    printf("closed: %d\n", locked());
    fcntl(file, F_OFD_SETLK, &lock);
    close(again[0]), close(again[2]);
    printf("a lock of the open file: %d\n", locked());
    close(file);
    printf("closed: %d\n", locked());
    return unused;
}

static void *notifications(void *unused) {
    char name[64], got[64];
    struct mq_attr attributes = {.mq_maxmsg = 4, .mq_msgsize = 64};
    snprintf(name, sizeof name, "/pathlength-locks-%d", getpid());
    for (int low = 0; low < 2; low++) {
        /* The second time it has the number of standard input. */
        if (low) close(0);
        mqd_t queue = mq_open(name, O_RDWR | O_CREAT | O_EXCL | O_NONBLOCK, 0600, &attributes);
        struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1};
        printf("mq_notify: %d [not qemu]\n", mq_notify(queue, &event));
        look_around();
        printf("once: %d [not qemu]\n", mq_notify(queue, &event) < 0 && errno == EBUSY);
        int before = notified;
        mq_send(queue, "text", 5, 1);
        for (int wait = 0; notified == before && wait < 1000; wait++) usleep(1000);
        printf("notified: %d [not qemu]\n", notified);
        mq_receive(queue, got, sizeof got, NULL);
        mq_notify(queue, &event);
        mq_close(dup(queue));
        mq_send(queue, "text", 5, 1);
        printf("not after a close: %d [not qemu]\n", notified);
        mq_close(queue), mq_unlink(name);
    }
    return unused;
}

int main(void) {
    pthread_t thread;
    signal(SIGUSR1, on_message);
    setvbuf(stdout, NULL, _IOLBF, 0);
    chdir(mkdtemp(folder));
    symlink("file", "link");
    for (int threads = 0; threads < 2; threads++) {
        if (threads) {
            pthread_create(&thread, NULL, locks, NULL), pthread_join(thread, NULL);
            pthread_create(&thread, NULL, notifications, NULL), pthread_join(thread, NULL);
        } else locks(NULL), notifications(NULL);
    }
    unlink("file"), unlink("link");
    chdir("/"), rmdir(folder);
    return 0;
}
