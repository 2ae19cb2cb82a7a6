/* not under qemu-alpha 7.2: it converts little of this */
/* not debugged: a debugger's stops interrupt the waits for signals */
/* What the kernel writes inside of data: the values of queued signals, error numbers in messages, signals and sizes in
 * /proc, and the bytes after the end of a mapped file. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <netinet/in.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef SIOCSPGRP
#define FIOSETOWN 0x8901
#define FIOGETOWN 0x8903
#endif

static volatile int got, code, value, own;

static void note(int signal, siginfo_t *information, void *context) {
    got = signal;
    code = information->si_code;
    value = information->si_value.sival_int;
    own = information->si_pid == getpid();
}

static void queued(void) {
    int signals[] = {SIGBUS, SIGSEGV, SIGILL, SIGFPE, SIGTRAP, SIGSYS, SIGCHLD, SIGIO, SIGUSR1};
    for (unsigned i = 0; i < sizeof signals / sizeof *signals; i++) {
        int signal = signals[i];
        struct sigaction action = {.sa_sigaction = note, .sa_flags = SA_SIGINFO};
        sigaction(signal, &action, NULL);
        union sigval sent = {.sival_ptr = (void *)0x1122334455667788};
        printf("%s:", sigabbrev_np(signal));
        got = 0;
        sigqueue(getpid(), signal, sent);
        printf(" %d %d %x %d", got == signal, code, value, own);
        got = 0;
        pthread_sigqueue(pthread_self(), signal, sent);
        printf(", thread %d %d %x", got == signal, code, value);
        sigset_t set;
        sigemptyset(&set);
        sigaddset(&set, signal);
        sigprocmask(SIG_BLOCK, &set, NULL);
        sigqueue(getpid(), signal, sent);
        siginfo_t information;
        printf(", waited %d", sigwaitinfo(&set, &information) == signal);
        printf(" %d %x", information.si_code, information.si_value.sival_int);
        int descriptor = signalfd(-1, &set, SFD_NONBLOCK);
        struct signalfd_siginfo entries[2] = {0};
        sigqueue(getpid(), signal, sent);
        struct iovec parts[] = {{&entries[0], sizeof *entries}, {&entries[1], sizeof *entries}};
        printf(", read %d", (int)readv(descriptor, parts, 2));
        printf(" %d %d %x %lx %d %d\n", entries[0].ssi_signo == signal, entries[0].ssi_code, entries[0].ssi_int,
               (long)entries[0].ssi_ptr, entries[0].ssi_pid == getpid(),
               (int)read(descriptor, entries, sizeof *entries));
        close(descriptor);
        sigprocmask(SIG_UNBLOCK, &set, NULL);
    }
    siginfo_t made = {.si_signo = SIGSEGV, .si_code = -60, .si_errno = ENOTEMPTY};
    syscall(SYS_rt_sigqueueinfo, getpid(), SIGSEGV, &made);
    printf("own code: %d %d\n", got == SIGSEGV, code);
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGBUS, .sigev_value.sival_int = 55};
    timer_t timer;
    timer_create(CLOCK_MONOTONIC, &event, &timer);
    got = 0;
    timer_settime(timer, 0, &(struct itimerspec){{0, 0}, {0, 1000000}}, NULL);
    while (!got) pause();
    printf("timer: %d %d %d\n", got == SIGBUS, code, value);
    timer_delete(timer);
}

static void asynchronous(void) {
    int ends[2], on = 1, owner = getpid(), is = 0;
    char byte;
    struct sigaction action = {.sa_sigaction = note, .sa_flags = SA_SIGINFO};
    sigaction(SIGIO, &action, NULL);
    sigaction(SIGRTMIN + 1, &action, NULL);
    socketpair(AF_UNIX, SOCK_STREAM, 0, ends);
    ioctl(ends[0], FIOASYNC, &on);
    printf("owner: %d", ioctl(ends[0], FIOSETOWN, &owner));
    printf(" %d", ioctl(ends[0], FIOGETOWN, &is));
    printf(" %d\n", is == owner);
    int signals[] = {0, SIGRTMIN + 1, 0, SIGIO};
    for (int i = 0; i < 4; i++) {
        int set = fcntl(ends[0], F_SETSIG, signals[i]);
        got = 0;
        write(ends[1], "x", 1);
        while (!got) usleep(1000);
        printf("F_SETSIG: %d %d %d %d\n", set, fcntl(ends[0], F_GETSIG) == signals[i],
               got == (signals[i] ? signals[i] : SIGIO), code);
        read(ends[0], &byte, 1);
    }
    printf("no signal: %d\n", fcntl(ends[0], F_SETSIG, 99));
}

static void errors(void) {
    int on = 1, udp = socket(AF_INET, SOCK_DGRAM, 0);
    char control[512], data[4096];
    struct sockaddr_in nobody = {AF_INET, htons(1), {htonl(INADDR_LOOPBACK)}};
    setsockopt(udp, IPPROTO_IP, IP_RECVERR, &on, sizeof on);
    connect(udp, (struct sockaddr *)&nobody, sizeof nobody);
    send(udp, "x", 1, 0);
    struct iovec part = {data, sizeof data};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    while (recvmsg(udp, &message, MSG_ERRQUEUE | MSG_DONTWAIT) < 0) usleep(1000);
    for (struct cmsghdr *one = CMSG_FIRSTHDR(&message); one; one = CMSG_NXTHDR(&message, one)) {
        int error;
        memcpy(&error, CMSG_DATA(one), sizeof error);
        printf("queued error: %s\n", strerrorname_np(error));
    }
    struct {
        struct nlmsghdr header;
        struct ifinfomsg interface;
    } request = {{NLMSG_LENGTH(sizeof request.interface), RTM_MAX + 20, NLM_F_REQUEST | NLM_F_ACK}};
    int netlink = socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE);
    for (int way = 0; way < 4; way++) {
        struct nlmsghdr *answer = (void *)data;
        struct iovec parts[] = {{data, 18}, {data + 18, sizeof data - 18}};
        struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
        send(netlink, &request, request.header.nlmsg_len, 0);
        int bytes = way == 0   ? recv(netlink, data, sizeof data, 0)
                    : way == 1 ? read(netlink, data, sizeof data)
                    : way == 2 ? readv(netlink, parts, 2)
                               : recvmsg(netlink, &message, 0);
        printf("netlink: %d %s\n", answer->nlmsg_type == NLMSG_ERROR && bytes > 0,
               strerrorname_np(-((struct nlmsgerr *)NLMSG_DATA(answer))->error));
    }
}

static unsigned long status(const char *name, int base) {
    char line[4096];
    unsigned long number = -1;
    FILE *file = fopen("/proc/self/status", "r");
    while (fgets(line, sizeof line, file))
        if (!strncmp(line, name, strlen(name)) && line[strlen(name)] == ':')
            number = strtoul(strchr(line, ':') + 1, NULL, base);
    fclose(file);
    return number;
}

#define BIT(signal) (1UL << ((signal) - 1))

static void pending(void) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    sigaddset(&set, SIGURG);
    sigaddset(&set, SIGRTMIN + 2);
    sigprocmask(SIG_BLOCK, &set, NULL);
    signal(SIGUSR2, SIG_IGN);
    signal(SIGURG, (void (*)(int))note);
    printf("blocked %d", status("SigBlk", 16) == (BIT(SIGUSR1) | BIT(SIGURG) | BIT(SIGRTMIN + 2)));
    // The C library's spawning functions let their children ignore signals 32 and 33.
    printf(" ignored %d %d", (status("SigIgn", 16) & 0x7fffffff & ~BIT(SIGPIPE)) == BIT(SIGUSR2),
           (int)(status("SigIgn", 16) >> 31));
    printf(" caught %d %d", !!(status("SigCgt", 16) & BIT(SIGURG)), !!(status("SigCgt", 16) & BIT(SIGALRM)));
    raise(SIGUSR1);
    kill(getpid(), SIGURG);
    printf(" pending %d %d\n", status("SigPnd", 16) == BIT(SIGUSR1), status("ShdPnd", 16) == BIT(SIGURG));
    signal(SIGUSR1, SIG_IGN);
}

static void *sleeping(void *mutex) { return pthread_mutex_lock(mutex), pthread_mutex_unlock(mutex), NULL; }

static void sizes(void) {
    long page = sysconf(_SC_PAGESIZE), before, after, pages;
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    pthread_t thread;
    pthread_mutex_lock(&mutex);
    pthread_create(&thread, NULL, sleeping, &mutex);
    printf("threads %lu", status("Threads", 10));
    pthread_mutex_unlock(&mutex);
    pthread_join(thread, NULL);
    before = status("VmSize", 10);
    char *area = mmap(NULL, 64 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    after = status("VmSize", 10);
    FILE *file = fopen("/proc/self/statm", "r");
    fscanf(file, "%ld", &pages);
    fclose(file);
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    printf(" size %ld %d %d %d", after - before, status("VmSize", 10) == (unsigned long)(pages * page / 1024),
           status("VmPeak", 10) < 1 << 20, status("VmRSS", 10) <= (unsigned long)after);
    printf(" resident %d %d", status("VmRSS", 10) >= 64 << 10, usage.ru_maxrss >= 64 << 10);
    munmap(area, 64 << 20);
    printf(" %d %d\n", status("VmSize", 10) == (unsigned long)before, status("VmPeak", 10) >= (unsigned long)after);
    struct rlimit limit = {1 << 30, RLIM_INFINITY};
    setrlimit(RLIMIT_DATA, &limit);
    char line[200];
    file = fopen("/proc/self/limits", "r");
    while (fgets(line, sizeof line, file))
        if (strstr(line, "data size") || strstr(line, "file size")) printf("%s", line);
    fclose(file);
}

static sigjmp_buf back;

static void jump(int signal) { siglongjmp(back, signal); }

static void look(const char *what, volatile char *byte) {
    int raised = sigsetjmp(back, 1);
    if (raised)
        printf("%s: %s\n", what, sigabbrev_np(raised));
    else
        printf("%s: %d\n", what, *byte);
}

static void tails(void) {
    long page = sysconf(_SC_PAGESIZE);
    signal(SIGBUS, jump);
    signal(SIGSEGV, jump);
    int file = open("tail", O_CREAT | O_RDWR, 0600), memory = memfd_create("tail", 0), ends[2];
    pipe(ends);
    for (int kind = 0; kind < 2; kind++) {
        int descriptor = kind ? memory : file;
        ftruncate(descriptor, 0);
        pwrite(descriptor, "abc", 3, 0);
        char *shared = mmap(NULL, 4 * page, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
        char *unchanged = mmap(NULL, page, PROT_READ, MAP_PRIVATE, descriptor, 0);
        printf("%zu %zu\n", strlen(shared), strlen(unchanged));
        look("tail", shared + page - 1);
        look("private tail", unchanged + page - 1);
        look("next page", shared + page);
        printf("write %zd\n", write(ends[1], shared + page - 10, 10));
        shared[page - 1] = 7;
        ftruncate(descriptor, 2 * page);
        pwrite(descriptor, "\5", 1, page - 2);
        look("after growth", shared + page - 2);
        look("next page", shared + page);
        shared[page - 1] = 9;
        char byte = 0;
        pread(descriptor, &byte, 1, page - 1);
        printf("written %d\n", byte);
        ftruncate(descriptor, 1);
        look("after truncation", shared + page - 1);
        if (fork() == 0) {
            ftruncate(descriptor, page);
            pwrite(descriptor, "\6", 1, page - 1);
            _exit(0);
        }
        wait(NULL);
        look("a child's growth", shared + page - 1);
        char *moved = mremap(shared, 2 * page, 2 * page, MREMAP_MAYMOVE);
        look("moved", moved + page - 1);
        munmap(moved, 2 * page);
        munmap(unchanged, page);
    }
    int flags[] = {0, 0x40000000, 0x800000, MAP_ANONYMOUS};
    for (int i = 0; i < 4; i++) {
        void *mapped = mmap(NULL, page, PROT_READ, MAP_SHARED_VALIDATE | flags[i], flags[i] & MAP_ANONYMOUS ? -1 : file, 0);
        printf("validated: %s\n", mapped == MAP_FAILED ? strerrorname_np(errno) : "mapped");
    }
}

int main(void) {
    setvbuf(stdout, NULL, _IONBF, 0);
    queued();
    asynchronous();
    errors();
    pending();
    sizes();
    tails();
    return 0;
}
