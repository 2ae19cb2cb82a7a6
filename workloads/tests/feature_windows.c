/* not under qemu-alpha 7.2: its /proc/self/mem is that of qemu itself */
/* A process's memory through the kernel: /proc/PID/mem under all its names, and
 * process_vm_readv and process_vm_writev. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "answer.h"

static int variable = 1234;
static const char constant[] = "a constant";

/* The number that a descriptor of memory finds where `variable` is, or the error. */
static int look(int file) {
    int found = 0;
    ssize_t bytes = pread(file, &found, sizeof found, (off_t)(uintptr_t)&variable);
    return bytes == sizeof found ? found : -errno;
}

static void names(void) {
    char path[100];
    int process = getpid(), folder = open("/proc/self", O_RDONLY | O_DIRECTORY), here = open(".", O_RDONLY);
    const char *names[] = {"/proc/self/mem", "/proc/thread-self/mem", "//proc//self/./mem", "/proc/self/../self/mem", "linked", "again"};
    symlink("/proc/self/mem", "linked");
    symlink("linked", "again");
    for (unsigned i = 0; i < sizeof names / sizeof *names; i++) printf("%s: %d\n", names[i], look(open(names[i], O_RDONLY)));
    sprintf(path, "/proc/%d/mem", process);
    printf("by number: %d\n", look(open(path, O_RDWR)));
    sprintf(path, "/proc/self/task/%d/mem", process);
    printf("a thread's: %d\n", look(open(path, O_RDONLY)));
    sprintf(path, "/proc/%d/task/%d/mem", process, process);
    printf("by numbers: %d\n", look(open(path, O_RDONLY)));
    int relative = openat(folder, "mem", O_RDONLY);
    printf("relative: %d\n", look(relative));
    chdir("/proc/self");
    printf("from there: %d\n", look(open("mem", O_RDONLY)));
    fchdir(here);
    printf("copy: %d\n", look(dup(relative)));
    sprintf(path, "/proc/self/fd/%d", relative);
    printf("anew: %d\n", look(open(path, O_RDONLY)));
    int plain = open("/proc/self/mem", O_PATH);
    printf("name only: %d\n", look(plain));
    sprintf(path, "/proc/self/fd/%d", plain);
    printf("then opened: %d\n", look(open(path, O_RDONLY)));
    char link[100] = "", expected[100];
    sprintf(path, "/proc/self/fd/%d", relative);
    sprintf(expected, "/proc/%d/mem", process);
    readlink(path, link, sizeof link - 1);
    printf("called: %d\n", strcmp(link, expected) == 0);
    printf("no file: %d\n", mmap(NULL, 65536, PROT_READ, MAP_PRIVATE, relative, 0) == MAP_FAILED);
    printf("write: %d\n", (int)pwrite(relative, "x", 1, (off_t)(uintptr_t)&variable) < 0 ? errno == EBADF : -1);
}

static void files(void) {
    int file = open("/proc/self/mem", O_RDWR), parts[2] = {5, 6}, pair[2];
    struct iovec vectors[2] = {{parts, 4}, {parts + 1, 4}};
    printf("sought: %d", lseek(file, (off_t)(uintptr_t)&variable, SEEK_SET) == (off_t)(uintptr_t)&variable);
    printf(" %d", (int)write(file, parts, 4));
    printf(" %d %d\n", variable, lseek(file, 0, SEEK_CUR) == (off_t)(uintptr_t)&variable + 4);
    lseek(file, -4, SEEK_CUR);
    int found = 0;
    printf("read: %d", (int)read(file, &found, 4));
    printf(" %d\n", found);
    variable = 1234;
    int places[2] = {77, 78};
    printf("vectors: %d", (int)preadv(file, vectors, 2, (off_t)(uintptr_t)places));
    printf(" %d %d\n", parts[0], parts[1]);
    const char *volatile seen = constant;
    printf("constant: %d", (int)pwrite(file, "b", 1, (off_t)(uintptr_t)constant));
    printf(" %s\n", seen);
    printf("before: %d\n", often());
    printf("code: %d\n", (int)pwrite(file, two, sizeof two, (off_t)(uintptr_t)answer) == sizeof two);
    printf("after: %d\n", often());
    char *map = mmap(NULL, 3 * 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    map[0] = map[65535] = 1;
    mprotect(map, 65536, PROT_NONE);
    munmap(map + 65536, 65536);
    static char buffer[2 * 65536];
    printf("hidden: %d", (int)pread(file, buffer, 1, (off_t)(uintptr_t)map));
    printf(" %d\n", buffer[0]);
    printf("to the end: %d\n", (int)pread(file, buffer, 2 * 65536, (off_t)(uintptr_t)map));
    printf("behind: %d\n", (int)pread(file, buffer, 1, (off_t)(uintptr_t)map + 65536) < 0 ? errno == EIO : -1);
    printf("into it: %d\n", (int)pwrite(file, buffer, 1, (off_t)(uintptr_t)map + 65536) < 0 ? errno == EIO : -1);
    printf("nothing: %d\n", (int)pread(file, buffer, 1, 0) < 0 ? errno == EIO : -1);
    printf("no bytes: %d\n", (int)pread(file, buffer, 0, 0));
    printf("no place: %d\n", (int)pread(file, NULL, 1, (off_t)(uintptr_t)&variable) < 0);
    /* Sent to oneself, and inherited: it stays the memory of whom it was opened of. */
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control = {.header = {CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS}};
    memcpy(CMSG_DATA(&control.header), &file, sizeof file);
    struct iovec one = {"x", 1};
    struct msghdr message = {.msg_iov = &one, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
    char byte;
    socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
    sendmsg(pair[0], &message, 0);
    one.iov_base = &byte;
    recvmsg(pair[1], &message, 0);
    int received;
    memcpy(&received, CMSG_DATA(&control.header), sizeof received);
    printf("received: %d\n", look(received));
    fflush(stdout);
    if (fork() == 0) {
        variable = 99;
        printf("the parent's: %d\n", look(file));
        printf("its own: %d\n", look(open("/proc/self/mem", O_RDONLY)));
        fflush(stdout);
        _exit(0);
    }
    wait(NULL);
}

/* Two processes that wait for each other. */
static void processes(void) {
    int there[2], back[2];
    char byte;
    pipe(there);
    pipe(back);
    char *map = mmap(NULL, 3 * 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    munmap(map + 65536, 65536);
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        variable = 4321;
        memset(map, 3, 65536);
        write(back[1], "x", 1);
        read(there[0], &byte, 1);
        printf("child: %d\n", variable);
        fflush(stdout);
        _exit(0);
    }
    read(back[0], &byte, 1);
    int found = 0, give = 5555;
    static char bytes[65536 + 100];
    struct iovec local = {&found, 4}, remote = {&variable, 4};
    printf("read: %d", (int)process_vm_readv(child, &local, 1, &remote, 1, 0));
    printf(" %d\n", found);
    local.iov_base = &give;
    printf("written: %d\n", (int)process_vm_writev(child, &local, 1, &remote, 1, 0));
    local = (struct iovec){bytes, sizeof bytes};
    remote = (struct iovec){map, sizeof bytes};
    printf("to the end: %d\n", (int)process_vm_readv(child, &local, 1, &remote, 1, 0));
    remote.iov_base = map + 65536;
    printf("behind: %d\n", (int)process_vm_readv(child, &local, 1, &remote, 1, 0) < 0 ? errno == EFAULT : -1);
    remote.iov_base = (void *)constant;
    local.iov_len = remote.iov_len = 1;
    printf("constant: %d\n", (int)process_vm_writev(child, &local, 1, &remote, 1, 0) < 0 ? errno == EFAULT : -1);
    printf("flags: %d\n", (int)process_vm_readv(child, &local, 1, &remote, 1, 1) < 0 ? errno == EINVAL : -1);
    printf("many: %d\n", (int)process_vm_readv(child, &local, 1, &remote, 1025, 0) < 0 ? errno == EINVAL : -1);
    remote = (struct iovec){&variable, 4};
    local = (struct iovec){&found, 4};
    printf("myself: %d", (int)process_vm_readv(getpid(), &local, 1, &remote, 1, 0));
    printf(" %d\n", found);
    char path[64];
    sprintf(path, "/proc/%d/mem", child);
    printf("its file: %d\n", look(open(path, O_RDONLY)));
    int descriptor = syscall(SYS_pidfd_open, child, 0);
    struct iovec pages = {map, 65536};
    printf("advice: %d", (int)syscall(SYS_process_madvise, descriptor, &pages, 1, 20, 0));
    printf(" %d\n", (int)syscall(SYS_process_madvise, descriptor, &pages, 1, 12345, 0) < 0 ? errno == EINVAL : -1);
    int mine = syscall(SYS_pidfd_getfd, descriptor, there[0], 0);
    printf("its descriptor: %d\n", mine >= 0 && fcntl(mine, F_GETFD) == FD_CLOEXEC);
    printf("none: %d\n", (int)syscall(SYS_pidfd_getfd, descriptor, 16330, 0) < 0 ? errno == EBADF : -1);
    write(there[1], "x", 1);
    wait(NULL);
    printf("gone: %d\n", (int)process_vm_readv(child, &local, 1, &remote, 1, 0) < 0 ? errno == ESRCH : -1);
}

/* By any name, the list of what is mapped is the program's. */
static void lists(void) {
    char path[100], line[5000];
    sprintf(path, "/proc/self/task/%d/maps", getpid());
    symlink("/proc/self/maps", "list");
    const char *names[] = {"/proc/self/maps", path, "list", "/proc/self/../thread-self/maps"};
    for (unsigned i = 0; i < sizeof names / sizeof *names; i++) {
        int found = 0, foreign = 0;
        FILE *lines = fopen(names[i], "r");
        while (lines && fgets(line, sizeof line, lines)) {
            unsigned long start, end;
            sscanf(line, "%lx-%lx", &start, &end);
            found += (unsigned long)&variable >= start && (unsigned long)&variable < end;
            foreign += strstr(line, "examples/run") || strstr(line, "pathlength");
        }
        printf("list %u: %d %d\n", i, found, foreign);
        if (lines) fclose(lines);
    }
}

int main(void) {
    setvbuf(stdout, NULL, _IOLBF, 0);
    names();
    files();
    processes();
    lists();
    return 0;
}
