/* not under qemu-alpha 7.2: the program sees qemu's own descriptors */
/* A program sees only the descriptors that it opened, through every system call and path, and can open as many as its
 * limit allows. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

enum { LIMIT = 900, END = 21000 };
static char byte[16];

/* Any call that takes a descriptor, with one that is not open. */
static int calls(int number) {
    struct stat status;
    struct iovec vector = {byte, 1};
    off_t start = 0;
    int ends[2], good = 0;
    struct epoll_event event = {EPOLLIN};
    struct pollfd entry = {number, POLLIN | POLLOUT};
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control = {.header = {CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS}};
    memcpy(CMSG_DATA(&control.header), &number, sizeof number);
    struct msghdr message = {.msg_iov = &vector, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
    int epoll = epoll_create1(0);
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends)) abort();
#define REFUSED(call) (errno = 0, good += !((long)(call) < 0 && errno == EBADF))
    REFUSED(fcntl(number, F_GETFD));
    REFUSED(fcntl(number, F_SETFD, 0));
    REFUSED(fcntl(number, F_DUPFD, 3));
    REFUSED(dup(number));
    REFUSED(dup2(number, 800));
    REFUSED(dup3(number, 800, 0));
    REFUSED(dup2(1, number));
    REFUSED(dup3(1, number, 0));
    REFUSED(read(number, byte, 1));
    REFUSED(write(number, "x", 1));
    REFUSED(pread(number, byte, 1, 0));
    REFUSED(pwrite(number, "x", 1, 0));
    REFUSED(readv(number, &vector, 1));
    REFUSED(writev(number, &vector, 1));
    REFUSED(lseek(number, 0, SEEK_SET));
    REFUSED(fstat(number, &status));
    REFUSED(fstatat(number, "", &status, AT_EMPTY_PATH));
    REFUSED(fstatat(number, "name", &status, 0));
    REFUSED(openat(number, "name", O_RDONLY));
    REFUSED(unlinkat(number, "name", 0));
    REFUSED(linkat(number, "", AT_FDCWD, "linked", AT_EMPTY_PATH));
    REFUSED(execveat(number, "", (char *[]){"x", NULL}, (char *[]){NULL}, AT_EMPTY_PATH));
    REFUSED(fchown(number, -1, -1));
    REFUSED(fchdir(number));
    REFUSED(fsync(number));
    REFUSED(fgetxattr(number, "user.name", byte, 1));
    REFUSED(futimes(number, NULL));
    REFUSED(syscall(SYS_getdents64, number, byte, 16));
    REFUSED(ioctl(number, FIONREAD, byte));
    REFUSED(ioctl(ends[0], _IOW(0x94, 9, int), number) == -1 && errno != EBADF ? (errno = EBADF, -1) : -1);
    REFUSED(epoll_ctl(epoll, EPOLL_CTL_ADD, number, &event));
    REFUSED(epoll_ctl(number, EPOLL_CTL_ADD, 1, &event));
    REFUSED(sendmsg(ends[0], &message, 0));
    REFUSED(send(number, "x", 1, 0));
    REFUSED(recv(number, byte, 1, 0));
    REFUSED(sendfile(ends[0], number, &start, 1));
    REFUSED(sendfile(number, 0, NULL, 1));
    REFUSED(splice(number, NULL, ends[0], NULL, 1, 0));
    REFUSED(copy_file_range(number, NULL, 1, NULL, 1, 0));
    REFUSED((intptr_t)mmap(NULL, 65536, PROT_READ, MAP_SHARED, number, 0));
    REFUSED(close(number));
    good += poll(&entry, 1, 0) != 1 || entry.revents != POLLNVAL;
    close(epoll);
    close(ends[0]);
    close(ends[1]);
    return good;
}

/* Paths of what is not open, without changing what may be there after all: in every folder of /proc that has descriptors, and through links. */
static int paths(int number) {
    char path[100], target[100], *folders[] = {"/proc/self/fd", "/proc/thread-self/fd", "/dev/fd", "/proc/self/fdinfo", "links", "own"};
    struct stat status;
    int good = 0;
    for (unsigned i = 0; i < sizeof folders / sizeof *folders; i++) {
        sprintf(path, "%s/%d", folders[i], number);
        good += access(path, F_OK) == 0;
        good += open(path, O_RDONLY) >= 0;
        good += open(path, O_PATH | O_NOFOLLOW) >= 0;
        good += stat(path, &status) == 0;
        good += lstat(path, &status) == 0;
        good += readlink(path, target, sizeof target) >= 0;
        good += listxattr(path, byte, 0) >= 0;
    }
    unlink("link");
    if (symlink(path, "link")) abort();
    good += open("link", O_RDONLY) >= 0;
    good += stat("link", &status) == 0;
    good += access("link", F_OK) == 0;
    good += lstat("link", &status) != 0;
    good += unlink("link") != 0;
    int folder = open("/proc/self/fd", O_RDONLY | O_DIRECTORY);
    sprintf(path, "%d", number);
    good += openat(folder, path, O_RDONLY) >= 0;
    good += readlinkat(folder, path, target, sizeof target) >= 0;
    good += fstatat(folder, path, &status, AT_SYMLINK_NOFOLLOW) == 0;
    close(folder);
    return good;
}

static int ascending(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }

static void list(const char *folder) {
    int numbers[100], count = 0;
    DIR *directory = opendir(folder);
    for (struct dirent *entry; directory && (entry = readdir(directory)) && count < 100;)
        if (entry->d_name[0] != '.') numbers[count++] = atoi(entry->d_name);
    if (directory) closedir(directory);
    qsort(numbers, count, sizeof *numbers, ascending);
    for (int i = 0; i < count; i++) printf(" %d", numbers[i]);
    puts("");
}

/* What a shell does for `echo hi 513>&-`: keeps what the number was, closes it, and has it back. */
static void shell(int number) {
    int kept = fcntl(number, F_DUPFD_CLOEXEC, 10), error = errno;
    close(number);
    if (kept >= 0) dup2(kept, number), close(kept);
    printf("%d: %s\n", number, kept < 0 ? strerror(error) : "kept");
}

static void limits(void) {
    struct rlimit limit, again;
    getrlimit(RLIMIT_NOFILE, &limit);
    prlimit(0, RLIMIT_NOFILE, NULL, &again);
    printf("alike: %d %d\n", limit.rlim_cur == again.rlim_cur && limit.rlim_max == again.rlim_max,
           sysconf(_SC_OPEN_MAX) == (long)limit.rlim_cur);
    limit.rlim_cur = limit.rlim_max;
    printf("raised: %d\n", setrlimit(RLIMIT_NOFILE, &limit));
    getrlimit(RLIMIT_NOFILE, &limit);
    /* The last number is there, and the one behind it is not. */
    int last = fcntl(1, F_DUPFD, limit.rlim_cur - 1);
    printf("last: %d\n", last == (int)limit.rlim_cur - 1);
    printf("behind: %d\n", fcntl(1, F_DUPFD, limit.rlim_cur) < 0 ? errno == EINVAL : -1);
    close(last);
    limit.rlim_max = RLIM_INFINITY;
    printf("no end: %d", setrlimit(RLIMIT_NOFILE, &limit));
    printf(" %s\n", strerror(errno));
    limit.rlim_cur = limit.rlim_max = LIMIT;
    printf("lowered: %d\n", setrlimit(RLIMIT_NOFILE, &limit));
    getrlimit(RLIMIT_NOFILE, &limit);
    printf("%ld %ld %ld\n", (long)limit.rlim_cur, (long)limit.rlim_max, sysconf(_SC_OPEN_MAX));
    int count = 0;
    while (dup(1) >= 0) count++;
    printf("%d: %s\n", count, strerror(errno));
    close_range(3, LIMIT - 1, 0);
}

int main(int argc, char **argv) {
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (argc > 1) {
        printf("executed:");
        list("/proc/self/fd");
        return 0;
    }
    symlink("/proc/self/fd", "links");
    char own[64];
    sprintf(own, "/proc/%d/task/%d/fd", getpid(), getpid());
    symlink(own, "own");
    int open = 0;
    for (int number = 3; number < LIMIT; number++) open += fcntl(number, F_GETFD) >= 0;
    printf("open: %d\n", open);
    shell(513);
    shell(1);
    limits();
    int good = 0, named = 0, some = 0;
    /* Those that come first behind some limit or other, and where engines have put theirs. */
    const int places[] = {512, 1024 - 64, 4096 - 64, 16384 - 64, 20000 - 64, 65536 - 64};
    for (unsigned i = 0; i < sizeof places / sizeof *places; i++)
        for (int number = places[i]; number < places[i] + 16; number++) {
            if (number >= LIMIT) good += calls(number);
            named += paths(number);
        }
    printf("calls: %d, paths: %d\n", good, named);
    for (int number = 3; number < END; number++)
        some += fcntl(number, F_GETFD) >= 0 || write(number, "damage", 6) >= 0 || close(number) >= 0;
    printf("others: %d\n", some);
    fd_set *set = calloc(1, END / 8);
    for (int number = LIMIT; number < END; number++) ((long *)set)[number / 64] |= 1ul << number % 64;
    struct timeval none = {0};
    printf("select: %d\n", select(END, NULL, NULL, set, &none));
    printf("range: %d\n", close_range(3, ~0u, 0));
    printf("behind: %d %d\n", close_range(20000, ~0u, 0), close_range(20000, 30000, 64) < 0);
    printf("here:");
    list("/proc/self/fd");
    printf("here:");
    list("/dev/fd");
    printf("known:");
    list("/proc/self/fdinfo");
    printf("mine:");
    list(own);
    fflush(stdout);
    if (fork() == 0) {
        close_range(3, ~0u, 0);
        execv(argv[0], (char *[]){argv[0], "again", NULL});
        _exit(97);
    }
    int status;
    wait(&status);
    return WEXITSTATUS(status);
}
