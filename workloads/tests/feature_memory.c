/* flags: -lrt */
/* Memory: addresses of mappings and what they replace, mapped files, mappings that move, shrink and grow, the heap, and
 * memory that processes share. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PAGE = 65536, ANONYMOUS = MAP_PRIVATE | MAP_ANONYMOUS, BOTH = PROT_READ | PROT_WRITE };

static sigjmp_buf back;
static void leave(int signal) { siglongjmp(back, signal); }

/* What a byte holds: its value, or a letter for the signal that reading it raises. */
static const char *peek(const char *at) {
    static char text[8][8];
    static int next;
    char *result = text[next++ % 8];
    int signal = sigsetjmp(back, 1);
    if (signal == 0) sprintf(result, "%d", *(volatile const char *)at);
    else strcpy(result, signal == SIGBUS ? "bus" : "segv");
    return result;
}

static int writable(char *at) {
    if (sigsetjmp(back, 1) != 0) return 0;
    *(volatile char *)at = *(volatile char *)at;
    return 1;
}

/* The result of a call that should fail, or not. */
static void tell(const char *what, int failed) {
    int error = errno;
    printf("%s: %s\n", what, failed ? strerror(error) : "good");
}

static char *map(size_t bytes) {
    char *at = mmap(NULL, bytes, BOTH, ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) abort();
    return at;
}

static int file_of(size_t bytes) {
    char name[] = "memoryXXXXXX";
    int file = mkstemp(name);
    unlink(name);
    for (size_t at = 0; at < bytes; at += PAGE) {
        char number = (char)(at / PAGE + 1);
        if (pwrite(file, &number, 1, at) != 1) abort();
    }
    if (ftruncate(file, bytes)) abort();
    return file;
}

static void places(void) {
    char *area = map(8 * PAGE);
    memset(area, 1, 8 * PAGE);
    munmap(area + 2 * PAGE, PAGE);
    printf("hole: %s %s %s\n", peek(area + 2 * PAGE - 1), peek(area + 2 * PAGE), peek(area + 3 * PAGE));
    char *hint = mmap(area + 2 * PAGE, PAGE, BOTH, ANONYMOUS, -1, 0);
    printf("hint: %d\n", hint == area + 2 * PAGE);
    hint = mmap(area + 4 * PAGE, PAGE, BOTH, ANONYMOUS, -1, 0);
    printf("taken hint: %d %d\n", hint == area + 4 * PAGE, area[4 * PAGE]);
    munmap(hint, PAGE);
    tell("[not qemu] occupied", mmap(area + PAGE, PAGE, BOTH, ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) == MAP_FAILED);
    munmap(area + 5 * PAGE, PAGE);
    hint = mmap(area + 5 * PAGE, PAGE, BOTH, ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    printf("not replaced: %d %s\n", hint == area + 5 * PAGE, peek(hint));
    mmap(area + PAGE, 3 * PAGE, PROT_READ, ANONYMOUS | MAP_FIXED, -1, 0);
    printf("fixed: %s %s %s %s, %d\n", peek(area), peek(area + PAGE), peek(area + 3 * PAGE), peek(area + 4 * PAGE),
           writable(area + PAGE));
    munmap(area, 8 * PAGE);
    munmap(area, 8 * PAGE);
    printf("gone: %s %s\n", peek(area), peek(area + 7 * PAGE));
    tell("no length", mmap(NULL, 0, BOTH, ANONYMOUS, -1, 0) == MAP_FAILED);
    tell("no kind", mmap(NULL, PAGE, BOTH, MAP_ANONYMOUS, -1, 0) == MAP_FAILED);
    tell("not aligned", mmap(area + 1, PAGE, BOTH, ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED);
    tell("no file", mmap(NULL, PAGE, BOTH, MAP_PRIVATE, 99, 0) == MAP_FAILED);
    tell("too much", mmap(NULL, 1ul << 60, BOTH, ANONYMOUS, -1, 0) == MAP_FAILED);
    tell("no unmapping of nothing", munmap(area, 0));
    tell("unaligned unmapping", munmap(area + 5, PAGE));
}

static void protections(void) {
    char *area = map(4 * PAGE);
    memset(area, 7, 4 * PAGE);
    const int kinds[] = {PROT_NONE, PROT_READ, BOTH, PROT_READ | PROT_EXEC};
    for (int i = 0; i < 4; i++) {
        tell("protect", mprotect(area + PAGE, 2 * PAGE, kinds[i]));
        printf("%s %s %d %d\n", peek(area + PAGE), peek(area + 3 * PAGE - 1), writable(area + PAGE),
               writable(area + 3 * PAGE));
    }
    munmap(area + 2 * PAGE, PAGE);
    tell("protect a hole", mprotect(area + PAGE, 3 * PAGE, PROT_READ));
    tell("protect unaligned", mprotect(area + 1, PAGE, PROT_READ));
    tell("[not qemu] advise a hole", madvise(area, 4 * PAGE, MADV_WILLNEED));
    tell("advise", madvise(area, PAGE, MADV_DONTNEED));
    printf("not needed: %s %s\n", peek(area), peek(area + 3 * PAGE));
    tell("[not qemu] no such advice", madvise(area, PAGE, 12345));
    char vector[64] = "";
    tell("resident", mincore(area, PAGE, (void *)vector));
    tell("locked", mlock(area, 100));
    tell("unlocked", munlock(area, 100));
    munmap(area, 4 * PAGE);
}

static void files(void) {
    int file = file_of(3 * PAGE);
    char *shared = mmap(NULL, 3 * PAGE, BOTH, MAP_SHARED, file, 0), byte;
    char *private = mmap(NULL, 2 * PAGE, BOTH, MAP_PRIVATE, file, PAGE);
    printf("file: %d %d %d, %d %d\n", shared[0], shared[PAGE], shared[2 * PAGE], private[0], private[PAGE]);
    private[0] = 50;
    shared[2 * PAGE] = 60;
    tell("sync", msync(shared, 3 * PAGE, MS_SYNC));
    if (pread(file, &byte, 1, 2 * PAGE) != 1) abort();
    printf("written: %d %d, %d %d\n", shared[PAGE], private[0], byte, private[PAGE]);
    byte = 70;
    if (pwrite(file, &byte, 1, 2 * PAGE + 5) != 1 || pwrite(file, &byte, 1, PAGE + 5) != 1) abort();
    printf("seen: %d, %d\n", shared[2 * PAGE + 5], private[5]); /* a copy stays as it was */
    close(file);
    printf("closed: %d %s\n", shared[0], peek(private));
    madvise(private, PAGE, MADV_DONTNEED);
    printf("copy forgotten: %d\n", private[0]);
    munmap(shared, 3 * PAGE), munmap(private, 2 * PAGE);
    file = file_of(100);
    private = mmap(NULL, 2 * PAGE, BOTH, MAP_PRIVATE, file, 0);
    printf("short: %s %s\n", peek(private), peek(private + 200));
    munmap(private, 2 * PAGE);
    int readable = open("/proc/self/fd/0", O_RDONLY), narrow = open("narrow", O_CREAT | O_WRONLY, 0600);
    tell("write to a readable file", mmap(NULL, PAGE, BOTH, MAP_SHARED, open("/etc/passwd", O_RDONLY), 0) == MAP_FAILED);
    tell("[not qemu] map a file for writing only", mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, narrow, 0) == MAP_FAILED);
    tell("map a directory", mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, open("/", O_RDONLY), 0) == MAP_FAILED);
    close(readable), close(narrow), close(file);
}

static void moves(void) {
    char *area = map(4 * PAGE);
    for (int i = 0; i < 4; i++) area[i * PAGE] = i + 1;
    char *larger = mremap(area, 4 * PAGE, 16 * PAGE, MREMAP_MAYMOVE);
    printf("grown: %d %d %d\n", larger[0], larger[3 * PAGE], larger[15 * PAGE]);
    char *smaller = mremap(larger, 16 * PAGE, 2 * PAGE, 0);
    printf("shrunk: %d %s %s\n", smaller == larger, peek(smaller + PAGE), peek(smaller + 2 * PAGE));
    char *target = map(2 * PAGE);
    char *moved = mremap(smaller, 2 * PAGE, 2 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, target);
    printf("moved: %d %d %s\n", moved == target, moved[PAGE], peek(smaller));
    tell("onto itself", mremap(moved, 2 * PAGE, 2 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, moved + PAGE) == MAP_FAILED);
    tell("nothing there", mremap(smaller, PAGE, 2 * PAGE, MREMAP_MAYMOVE) == MAP_FAILED);
    tell("[not qemu] to nothing", mremap(moved, PAGE, 0, MREMAP_MAYMOVE) == MAP_FAILED);
    munmap(moved, 2 * PAGE);
    /* Many that grow by turns, as an allocator has them. */
    char *blocks[10];
    long sum = 0;
    for (int i = 0; i < 10; i++) memset(blocks[i] = map(PAGE), i, PAGE);
    for (int round = 1; round < 8; round++)
        for (int i = 0; i < 10; i++) {
            blocks[i] = mremap(blocks[i], round * PAGE, (round + 1) * PAGE, MREMAP_MAYMOVE);
            memset(blocks[i] + round * PAGE, i + round, PAGE);
        }
    for (int i = 0; i < 10; i++)
        for (int at = 0; at < 8 * PAGE; at += 1000) sum = sum * 3 + blocks[i][at];
    printf("grown by turns: %016lx\n", (unsigned long)sum);
    for (int i = 0; i < 10; i++) munmap(blocks[i], 8 * PAGE);
}

static void heap(void) {
    char *start = sbrk(0);
    printf("[not qemu] heap: %d", brk(start + 5 * PAGE));
    memset(start, 3, 5 * PAGE);
    printf(" %d", brk(start + PAGE));
    printf(" %s %s", peek(start + PAGE - 1), peek(start + 4 * PAGE));
    printf(" %d", brk(start + 3 * PAGE));
    printf(" %s\n", peek(start + 2 * PAGE + 100));
    tell("too far", brk((void *)(1ul << 50)));
    brk(start + 12345);
    printf("odd: %d\n", sbrk(0) == start + 12345);
    brk(start);
}

/* A value that goes round between processes through each kind of memory that they can share. */
static void relay(const char *what, volatile int *shared) {
    fflush(stdout);
    *shared = 0;
    pid_t child = fork();
    if (child == 0) {
        for (int i = 1; i < 400; i += 2) {
            while (*shared != i) sched_yield();
            *shared = i + 1;
        }
        _exit(0);
    }
    for (int i = 0; i < 400; i += 2) {
        while (*shared != i) sched_yield();
        *shared = i + 1;
    }
    waitpid(child, NULL, 0);
    printf("shared, %s: %d\n", what, *shared);
}

static void sharing(void) {
    relay("anonymous", mmap(NULL, PAGE, BOTH, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    relay("a file", mmap(NULL, PAGE, BOTH, MAP_SHARED, file_of(PAGE), 0));
    char name[64];
    sprintf(name, "/feature-memory-%d", getpid());
    int object = shm_open(name, O_CREAT | O_EXCL | O_RDWR, 0600);
    if (object < 0 || ftruncate(object, PAGE)) abort();
    tell("exists", shm_open(name, O_CREAT | O_EXCL | O_RDWR, 0600) < 0);
    relay("POSIX", mmap(NULL, PAGE, BOTH, MAP_SHARED, object, 0));
    shm_unlink(name);
    object = memfd_create("feature", MFD_ALLOW_SEALING);
    if (ftruncate(object, PAGE)) abort();
    relay("memfd", mmap(NULL, PAGE, BOTH, MAP_SHARED, object, 0));
    tell("sealed", fcntl(object, F_ADD_SEALS, F_SEAL_GROW));
    tell("grown", ftruncate(object, 2 * PAGE));
    int id = shmget(IPC_PRIVATE, PAGE, IPC_CREAT | 0600);
    char *first = shmat(id, NULL, 0), *second = mmap(NULL, PAGE, PROT_NONE, ANONYMOUS, -1, 0);
    relay("System V", (int *)first);
    munmap(second, PAGE);
    second = shmat(id, second, 0);
    second[9] = 9;
    printf("attached twice: %d %d\n", first != second, first[9]);
    shmctl(id, IPC_RMID, NULL);
    shmdt(first);
    printf("detached: %s %s\n", peek(first + 9), peek(second + 9));
    /* What a child writes to private memory stays there. */
    char *private = map(4 * PAGE);
    if (fork() == 0) {
        memset(private, 1, 4 * PAGE);
        _exit(0);
    }
    wait(NULL);
    printf("private: %s\n", peek(private));
    private[0] = 5;
    madvise(private, PAGE, MADV_DONTFORK);
    madvise(private + PAGE, PAGE, MADV_WIPEONFORK);
    private[PAGE] = 6;
    fflush(stdout);
    if (fork() == 0) {
        printf("[not qemu] in a child: %s %s\n", peek(private), peek(private + PAGE));
        fflush(stdout);
        _exit(0);
    }
    wait(NULL);
}

/* A great many mappings and a great deal of memory, of which little is used. */
static void many(void) {
    enum { COUNT = 3000 };
    static char *maps[COUNT];
    long sum = 0;
    for (int i = 0; i < COUNT; i++) {
        maps[i] = mmap(NULL, PAGE, i % 2 ? BOTH : PROT_READ, ANONYMOUS, -1, 0);
        if (i % 2) maps[i][i] = (char)i;
    }
    for (int i = 0; i < COUNT; i += 3) munmap(maps[i], PAGE);
    for (int i = 0; i < COUNT; i++) sum += i % 3 ? maps[i][i] : 1;
    for (int i = 0; i < COUNT; i++) munmap(maps[i], PAGE);
    char *sparse = mmap(NULL, 1l << 38, BOTH, ANONYMOUS | MAP_NORESERVE, -1, 0);
    for (long at = 0; at < 1l << 38; at += 1l << 32) sparse[at] = (char)(at >> 32);
    for (long at = 0; at < 1l << 38; at += 1l << 32) sum = sum * 3 + sparse[at];
    munmap(sparse, 1l << 38);
    printf("many: %ld\n", sum);
}

int main(void) {
    struct sigaction action = {.sa_handler = leave};
    setvbuf(stdout, NULL, _IOLBF, 0);
    sigaction(SIGSEGV, &action, NULL);
    sigaction(SIGBUS, &action, NULL);
    places();
    protections();
    files();
    moves();
    heap();
    sharing();
    many();
    return 0;
}
