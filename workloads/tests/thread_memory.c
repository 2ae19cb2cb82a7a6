/* flags: -pthread */
/* What one thread does to memory while others use it: protection, unmapping, mapping anew,
 * and instructions written by one thread and executed by others. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

enum { READERS = 3, PAGE = 8192, PAGES = 4, ROUNDS = 100 };

static char *area;
static _Atomic int stop, ready;
static _Thread_local sigjmp_buf back;
static _Thread_local char *volatile expected;
static _Atomic long strange;

static void fault(int signal, siginfo_t *information, void *context) {
    (void)signal, (void)context;
    if ((char *)information->si_addr != expected) strange++;
    siglongjmp(back, 1);
}

/* Each quadword holds 0, fresh from the kernel, or its own address. */
static void *look(void *number) {
    volatile long wrong = 0, round = 0;
    while (!stop) {
        round++;
        char *at = area + (round * 7 + (long)number) * 64 % (PAGES * PAGE);
        expected = at;
        if (sigsetjmp(back, 1) == 0) {
            uint64_t found = *(volatile uint64_t *)at;
            wrong += found != 0 && found != (uint64_t)at;
            *(volatile uint64_t *)at = (uint64_t)at;
        }
        if (round == 1) ready++;
    }
    return (void *)wrong;
}

static void change(int round) {
    char *page = area + round % PAGES * PAGE;
    const int private = MAP_PRIVATE | MAP_ANONYMOUS, all = PROT_READ | PROT_WRITE;
    switch (round % 5) {
    case 0: mprotect(page, PAGE, PROT_NONE); break;
    case 1: mprotect(area, PAGES * PAGE, all); break;
    case 2: munmap(page, PAGE); break;
    case 3: mmap(area, PAGES * PAGE, all, private | MAP_FIXED, -1, 0); break;
    case 4: mprotect(page, PAGE, PROT_READ); break;
    }
    sched_yield();
}

static void mappings(void) {
    pthread_t threads[READERS];
    long wrong = 0;
    struct sigaction action = {.sa_sigaction = fault, .sa_flags = SA_SIGINFO};
    sigaction(SIGSEGV, &action, NULL);
    area = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (long i = 0; i < READERS; i++) pthread_create(&threads[i], NULL, look, (void *)i);
    while (ready < READERS) sched_yield();
    for (int round = 0; round < ROUNDS; round++) change(round);
    stop = 1;
    for (int i = 0; i < READERS; i++) {
        void *result;
        pthread_join(threads[i], &result);
        wrong += (long)result;
    }
    signal(SIGSEGV, SIG_DFL);
    printf("mappings: %ld wrong, %ld strange\n", wrong, strange);
}

/* A function that returns a number. The writer's barrier alone must do, also for the first thread, which
 * makes no system call meanwhile. */
static int (*code)(void);
static _Atomic int version, seen[READERS];

static void write_code(int number) {
#ifdef __alpha__
    uint32_t words[] = {0x201f0000 | number, 0x6bfa8001}; /* lda $0,number($31); ret $31,($26),1 */
    memcpy(code, words, sizeof words);
    __asm__ volatile("call_pal 0x86" ::: "memory");
#elif defined __riscv
    /* lui a0,%hi(number); addiw a0,a0,%lo(number); ret */
    uint32_t words[] = {(number + 0x800u) >> 12 << 12 | 0x537, (uint32_t)number << 20 | 0x5051b, 0x8067};
    memcpy(code, words, sizeof words);
    __asm__ volatile("fence.i" ::: "memory");
#else
    uint8_t bytes[] = {0xb8, number, number >> 8, 0, 0, 0xc3}; /* mov eax, number; ret */
    memcpy(code, bytes, sizeof bytes);
#endif
}

static void *execute(void *number) {
    long wrong = 0;
    for (int last = 0; last < ROUNDS;) {
        int now = version;
        if (now == last) {
            if (number) sched_yield();
            continue;
        }
        wrong += code() != now;
        last = seen[(long)number] = now;
    }
    return (void *)wrong;
}

static void instructions(void) {
    pthread_t threads[READERS];
    long wrong = 0;
    const int all = PROT_READ | PROT_WRITE | PROT_EXEC;
    code = (int (*)(void))mmap(NULL, PAGE, all, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (long i = 0; i < READERS; i++) pthread_create(&threads[i], NULL, execute, (void *)i);
    for (int now = 1; now <= ROUNDS; now++) {
        write_code(now);
        version = now;
        for (int i = 0; i < READERS; i++)
            while (seen[i] < now) sched_yield();
    }
    for (int i = 0; i < READERS; i++) {
        void *result;
        pthread_join(threads[i], &result);
        wrong += (long)result;
    }
    printf("instructions: %ld wrong\n", wrong);
}

int main(void) {
    setvbuf(stdout, NULL, _IOLBF, 0);
    mappings();
    instructions();
    return 0;
}
