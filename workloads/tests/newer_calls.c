/* not under qemu-alpha 7.2: it implements few of these calls */
/* flags: -pthread */
/* System calls for which the C library has no function, or has one only since recently: attributes of scheduling, pages
 * given to pipes, policies of memory, asynchronous input and output, message queues, openat2 and its time; and
 * OSF/1's, against Linux's own. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <linux/mempolicy.h>
#include <mqueue.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/utsname.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#ifndef SYS_openat2
#define SYS_openat2 437
#endif

static void told(const char *what, long result) {
    printf("%s: %ld %s\n", what, result, result < 0 ? strerror(errno) : "");
    errno = 0;
}

struct attributes {
    uint32_t size, policy;
    uint64_t flags;
    int32_t nice;
    uint32_t priority;
    uint64_t runtime, deadline, period;
};

static void scheduling(void) {
    struct attributes is, wanted = {.size = sizeof wanted, .nice = 7};
    memset(&is, 0xff, sizeof is);
    told("sched_getattr", syscall(SYS_sched_getattr, 0, &is, sizeof is, 0));
    printf("%u %u %d %u\n", is.size, is.policy, is.nice, is.priority);
    told("sched_setattr", syscall(SYS_sched_setattr, 0, &wanted, 0));
    told("sched_getattr", syscall(SYS_sched_getattr, 0, &is, sizeof is, 0));
    printf("nice %d\n", is.nice);
    told("too small", syscall(SYS_sched_getattr, 0, &is, 8, 0));
    told("flags", syscall(SYS_sched_setattr, 0, &wanted, 1));
    told("no attributes", syscall(SYS_sched_getattr, 0, NULL, sizeof is, 0));
}

static void pipes(void) {
    int ends[2];
    char text[] = "pages given to a pipe", got[64] = "";
    struct iovec vectors[] = {{text, 6}, {text + 6, sizeof text - 6}};
    if (pipe(ends) != 0) return;
    told("vmsplice", syscall(SYS_vmsplice, ends[1], vectors, 2, 0));
    told("read", read(ends[0], got, sizeof got));
    printf("%s\n", got);
    vectors[0].iov_base = (void *)16;
    told("vmsplice from nowhere", syscall(SYS_vmsplice, ends[1], vectors, 1, 0));
    told("vmsplice to no pipe", syscall(SYS_vmsplice, 0, vectors + 1, 1, 0));
    close(ends[0]);
    close(ends[1]);
}

static void memory(void) {
    char *pages = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    unsigned long nodes[16] = {1};
    int mode = 77, status[3] = {77, 77, 77};
    memset(pages, 1, 16384);
    told("get_mempolicy", syscall(SYS_get_mempolicy, &mode, nodes, 1024, NULL, 0));
    printf("mode %d\n", mode);
    nodes[0] = 1;
    told("mbind", syscall(SYS_mbind, pages, 65536, MPOL_BIND, nodes, 1024, 0));
    told("get_mempolicy", syscall(SYS_get_mempolicy, &mode, nodes, 1024, pages, MPOL_F_ADDR));
    printf("mode %d\n", mode);
    told("mbind in a page", syscall(SYS_mbind, pages + 1, 65536, MPOL_DEFAULT, NULL, 0, 0));
    told("set_mempolicy", syscall(SYS_set_mempolicy, MPOL_PREFERRED, nodes, 1024));
    told("get_mempolicy", syscall(SYS_get_mempolicy, &mode, NULL, 0, NULL, 0));
    printf("mode %d\n", mode);
    told("set_mempolicy", syscall(SYS_set_mempolicy, MPOL_DEFAULT, NULL, 0));
    munmap(pages + 32768, 32768);
    void *where[] = {pages, pages + 32768, (void *)16};
    told("move_pages", syscall(SYS_move_pages, 0, 3, where, NULL, status, 0));
    for (int i = 0; i < 3; i++) printf("%d %s\n", status[i], status[i] < 0 ? strerror(-status[i]) : "");
    told("mbind of nothing", syscall(SYS_mbind, pages + 32768, 8192, MPOL_BIND, nodes, 1024, 0));
    told("get_mempolicy of nothing", syscall(SYS_get_mempolicy, &mode, NULL, 0, pages + 32768, MPOL_F_ADDR));
    munmap(pages, 32768);
    void *head = NULL;
    size_t bytes = 0;
    told("get_robust_list", syscall(SYS_get_robust_list, 0, &head, &bytes));
    printf("%d %zu\n", head != NULL, bytes);
    told("of nobody", syscall(SYS_get_robust_list, 0x3ffffffe, &head, &bytes));
}

static void asynchronous(void) {
    aio_context_t context = 0;
    int file = open("asynchronous", O_RDWR | O_CREAT | O_TRUNC, 0600);
    char text[] = "written asynchronously", got[64] = "", parts[2][64] = {"", ""};
    struct iovec vectors[] = {{parts[0], 8}, {parts[1], 60}};
    told("io_setup", syscall(SYS_io_setup, 8, &context));
    told("io_setup again", syscall(SYS_io_setup, 8, &context));
    struct iocb blocks[] = {
        {.aio_data = 11, .aio_lio_opcode = IOCB_CMD_PWRITE, .aio_fildes = file, .aio_buf = (uintptr_t)text, .aio_nbytes = sizeof text},
        {.aio_data = 22, .aio_lio_opcode = IOCB_CMD_PREAD, .aio_fildes = file, .aio_buf = (uintptr_t)got, .aio_nbytes = sizeof got},
        {.aio_data = 33, .aio_lio_opcode = IOCB_CMD_PREADV, .aio_fildes = file, .aio_buf = (uintptr_t)vectors, .aio_nbytes = 2},
        {.aio_data = 44, .aio_lio_opcode = IOCB_CMD_PREAD, .aio_fildes = 999, .aio_buf = (uintptr_t)got, .aio_nbytes = 8},
    };
    struct iocb *list[] = {&blocks[0], &blocks[1], &blocks[2], &blocks[3]};
    /* One after the other, so that the file is written before it is read. */
    for (int i = 0; i < 4; i++) {
        struct io_event event;
        memset(&event, 0xff, sizeof event);
        long submitted = syscall(SYS_io_submit, context, 1, list + i);
        told("io_submit", submitted);
        if (submitted != 1) continue;
        told("io_getevents", syscall(SYS_io_getevents, context, 1, 4, &event, NULL));
        printf("%d %d %ld %ld\n", (int)event.data, event.obj == (uintptr_t)list[i], (long)event.res, (long)event.res2);
    }
    printf("%s|%s|%s\n", got, parts[0], parts[1]);
    struct timespec soon = {0, 1000000};
    struct io_event none;
    told("nothing under way", syscall(SYS_io_getevents, context, 1, 4, &none, &soon));
    told("two, and one that is wrong", syscall(SYS_io_submit, context, 3, list + 1));
    told("io_cancel", syscall(SYS_io_cancel, context, list[3], &none));
    told("a block nowhere", syscall(SYS_io_submit, context, 1, (struct iocb *[]){(void *)16}));
    told("io_destroy", syscall(SYS_io_destroy, context));
    told("io_destroy again", syscall(SYS_io_destroy, context));
    told("io_getevents", syscall(SYS_io_getevents, context, 1, 1, &none, NULL));
    close(file);
}

static volatile sig_atomic_t notified;
static void on_message(int signal) { notified = signal == SIGUSR1; }

static void queues(void) {
    char name[64], got[128];
    unsigned priority = 0;
    struct mq_attr attributes = {.mq_maxmsg = 4, .mq_msgsize = 64}, is;
    snprintf(name, sizeof name, "/pathlength-%d", getpid());
    mqd_t queue = mq_open(name, O_RDWR | O_CREAT | O_EXCL | O_NONBLOCK, 0600, &attributes);
    printf("mq_open: %d\n", queue >= 0);
    if (queue < 0) return;
    told("mq_open again", mq_open(name, O_RDWR | O_CREAT | O_EXCL, 0600, NULL));
    told("mq_receive", mq_receive(queue, got, sizeof got, &priority));
    signal(SIGUSR1, on_message);
    told("mq_notify", mq_notify(queue, &(struct sigevent){.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1}));
    told("mq_send", mq_send(queue, "low", 4, 1));
    told("mq_send", mq_send(queue, "high", 5, 9));
    printf("notified: %d\n", notified);
    told("mq_getattr", mq_getattr(queue, &is));
    printf("%d %ld %ld %ld\n", is.mq_flags == O_NONBLOCK, is.mq_maxmsg, is.mq_msgsize, is.mq_curmsgs);
    for (int i = 0; i < 2; i++) {
        told("mq_receive", mq_receive(queue, got, sizeof got, &priority));
        printf("%s %u\n", got, priority);
    }
    attributes.mq_flags = 0;
    told("mq_setattr", mq_setattr(queue, &attributes, &is));
    struct timespec end;
    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_nsec += 2000000;
    if (end.tv_nsec >= 1000000000) end.tv_sec++, end.tv_nsec -= 1000000000;
    told("mq_timedreceive", mq_timedreceive(queue, got, sizeof got, NULL, &end));
    told("mq_close", mq_close(queue));
    told("mq_unlink", mq_unlink(name));
    told("mq_unlink again", mq_unlink(name));
}

/* The kinds of locks are numbered in another way. */
static void leases(void) {
    int file = open("leased", O_RDWR | O_CREAT, 0600);
    told("no lease", fcntl(file, F_GETLEASE) == F_UNLCK);
    told("F_SETLEASE", fcntl(file, F_SETLEASE, F_WRLCK));
    told("F_GETLEASE", fcntl(file, F_GETLEASE) == F_WRLCK);
    told("F_SETLEASE", fcntl(file, F_SETLEASE, F_UNLCK));
    told("F_GETLEASE", fcntl(file, F_GETLEASE) == F_UNLCK);
    told("F_SETLEASE", fcntl(file, F_SETLEASE, 77));
    close(file);
}

struct how {
    uint64_t flags, mode, resolve;
};
struct waiter {
    uint64_t value, word;
    uint32_t flags, zero;
};

static void recent(void) {
    struct how how = {O_WRONLY | O_CREAT | O_EXCL, 0600, 0};
    int file = syscall(SYS_openat2, AT_FDCWD, "opened", &how, sizeof how);
    printf("openat2: %d\n", file >= 0);
    told("write", write(file, "x", 1));
    close(file);
    told("openat2 again", syscall(SYS_openat2, AT_FDCWD, "opened", &how, sizeof how));
    how = (struct how){O_RDONLY, 0, 8};
    told("beneath", syscall(SYS_openat2, AT_FDCWD, "/etc/passwd", &how, sizeof how) );
    how = (struct how){O_RDONLY, 0600, 0};
    told("a mode for nothing", syscall(SYS_openat2, AT_FDCWD, "opened", &how, sizeof how));
    how = (struct how){UINT64_C(1) << 40, 0, 0};
    told("a flag that is none", syscall(SYS_openat2, AT_FDCWD, "opened", &how, sizeof how));
    told("a short structure", syscall(SYS_openat2, AT_FDCWD, "opened", &how, 8));
#ifdef SYS_epoll_pwait2
    struct epoll_event event;
    struct timespec wait = {0, 1500000}, before, after;
    int poll = epoll_create1(0);
    clock_gettime(CLOCK_MONOTONIC, &before);
    told("epoll_pwait2", syscall(SYS_epoll_pwait2, poll, &event, 1, &wait, NULL, 8));
    clock_gettime(CLOCK_MONOTONIC, &after);
    long passed = (after.tv_sec - before.tv_sec) * 1000000000L + after.tv_nsec - before.tv_nsec;
    printf("waited: %d\n", passed >= 1500000);
    close(poll);
#endif
#ifdef SYS_futex_waitv
    static uint32_t words[2] = {1, 2};
    struct waiter waiters[] = {{1, (uintptr_t)&words[0], 2, 0}, {2, (uintptr_t)&words[1], 2, 0}};
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += 2000000;
    if (until.tv_nsec >= 1000000000) until.tv_sec++, until.tv_nsec -= 1000000000;
    told("futex_waitv", syscall(SYS_futex_waitv, waiters, 2, 0, &until, CLOCK_MONOTONIC));
    waiters[1].value = 3;
    told("futex_waitv", syscall(SYS_futex_waitv, waiters, 2, 0, NULL, CLOCK_MONOTONIC));
#endif
}

/* Natively all is as it should be: there are no such calls. */
static void osf(void) {
    int good[6] = {1, 1, 1, 1, 1, 1};
#ifdef __alpha__
    struct {
        int device, pad1;
        unsigned mode;
        unsigned short links;
        short pad2;
        unsigned user, group;
        int special, special2;
        long size;
        int pad3, micros_a, pad4, micros_m, pad5, micros_c, pad6[2];
        unsigned flags, generation;
        long pad7[4];
        unsigned number;
        int pad8, accessed, pad9, modified, pad10, changed, pad11;
        long block, blocks;
    } status;
    struct stat is;
    stat("opened", &is);
    long result = syscall(224, "opened", &status);
    good[0] = result == 0 && status.mode == is.st_mode && status.links == is.st_nlink && status.user == is.st_uid &&
              status.size == is.st_size && status.modified == is.st_mtime && status.micros_m == is.st_mtim.tv_nsec / 1000 &&
              status.number == (unsigned)is.st_ino && status.block == is.st_blksize && status.blocks == is.st_blocks;
    int file = open("opened", O_RDONLY);
    memset(&status, 0, sizeof status);
    good[1] = syscall(226, file, &status) == 0 && status.size == is.st_size && status.changed == is.st_ctime;
    close(file);
    struct {
        short type, flags;
        int fragment, block, blocks, unused, available, files, unused_files;
        int identity[2];
    } system;
    struct statfs fs;
    statfs("/proc", &fs);
    good[2] = syscall(160, "/proc", &system, sizeof system) == 0 && system.block == fs.f_bsize &&
              system.type == (short)fs.f_type && memcmp(system.identity, &fs.f_fsid, 8) == 0;
    struct {
        short type, flags;
        int pad[7], identity[2];
        char more[416];
        long fragment, block, blocks, unused, available, files, unused_files;
    } large;
    statfs("/", &fs);
    good[3] = syscall(227, "/", &large, sizeof large) == 0 && large.block == fs.f_bsize &&
              (int)large.blocks == (int)fs.f_blocks && (int)large.files == (int)fs.f_files;
    char name[64] = "";
    struct utsname names;
    uname(&names);
    good[4] = syscall(241, 2, name, sizeof name) == 0 && strcmp(name, names.nodename) == 0 &&
              syscall(241, 6, name, sizeof name) == 0 && strcmp(name, "alpha") == 0 && syscall(241, 10, name, 64) < 0;
    /* Every entry once, however small the buffer. */
    mkdir("entries", 0700);
    for (int i = 0; i < 50; i++) {
        sprintf(name, "entries/%0*d", i % 30 + 1, i);
        close(open(name, O_CREAT | O_WRONLY, 0600));
    }
    for (int size = 64; size <= 4096; size *= 8) {
        int folder = open("entries", O_RDONLY | O_DIRECTORY), seen = 0, found;
        long base, sum = 0;
        union {
            char bytes[4096];
            unsigned words[1024];
        } buffer;
        while ((found = syscall(159, folder, &buffer, size, &base)) > 0) {
            for (int at = 0; at < found;) {
                unsigned *entry = &buffer.words[at / 4];
                int length = entry[1] & 0xffff, named = entry[1] >> 16;
                good[5] &= entry[0] != 0 && length >= 8 + named + 1 && length % 4 == 0 && strlen((char *)&entry[2]) == named;
                seen++;
                sum += atoi((char *)&entry[2]);
                at += length;
            }
        }
        good[5] &= found == 0 && seen == 52 && sum == 49 * 50 / 2;
        close(folder);
    }
#endif
    printf("osf: %d %d %d %d %d %d\n", good[0], good[1], good[2], good[3], good[4], good[5]);
}

int main(void) {
    scheduling();
    pipes();
    memory();
    asynchronous();
    queues();
    recent();
    leases();
    osf();
    return 0;
}
