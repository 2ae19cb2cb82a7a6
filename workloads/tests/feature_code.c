/* flags: -ldl */
/* Code that changes while the program runs: functions written anew at the same place, each of them hot;
 * code replaced before each call; code whose protection changes; a library that is loaded, used,
 * unloaded and loaded again. The same source is the library, with -DLIBRARY. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#ifdef LIBRARY

static long state = 5;
long step(long by) { return state += by; }
long hot(long count) {
    long sum = 0;
    for (long i = 0; i < count; i++) sum = sum * 3 + i;
    return sum;
}

#else

enum { PAGE = 65536 };
typedef long function(long);

/* Writes a function that returns its argument plus `addend`, or times it, and makes it visible. */
#ifdef __alpha__
static size_t write_add(void *at, int addend) {
    uint32_t code[] = {0x20100000 | (addend & 0xffff), 0x6bfa8001}; /* lda $0,addend($16); ret */
    memcpy(at, code, sizeof code);
    return sizeof code;
}
static size_t write_multiply(void *at, int factor) {
    uint32_t code[] = {0x4c001400 | 16u << 21 | (factor & 0xff) << 13, 0x6bfa8001}; /* mulq $16,factor,$0; ret */
    memcpy(at, code, sizeof code);
    return sizeof code;
}
static void barrier(void) { asm volatile("call_pal 0x86" : : : "memory"); }
#elif defined __riscv
/* lui t0,%hi(value); addiw t0,t0,%lo(value); an operation on a0 and t0; ret */
static size_t write_operation(void *at, int value, uint32_t operation) {
    uint32_t code[] = {(value + 0x800u) >> 12 << 12 | 0x2b7, (uint32_t)value << 20 | 0x2829b, operation, 0x8067};
    memcpy(at, code, sizeof code);
    return sizeof code;
}
static size_t write_add(void *at, int addend) { return write_operation(at, addend, 0x00550533); }
static size_t write_multiply(void *at, int factor) { return write_operation(at, factor, 0x02550533); }
static void barrier(void) { asm volatile("fence.i" : : : "memory"); }
#else
static size_t write_add(void *at, int addend) {
    unsigned char code[] = {0x48, 0x8d, 0x87, 0, 0, 0, 0, 0xc3}; /* lea addend(%rdi),%rax; ret */
    memcpy(code + 3, &addend, 4);
    memcpy(at, code, sizeof code);
    return sizeof code;
}
static size_t write_multiply(void *at, int factor) {
    unsigned char code[] = {0x48, 0x69, 0xc7, 0, 0, 0, 0, 0xc3}; /* imul factor,%rdi,%rax; ret */
    memcpy(code + 3, &factor, 4);
    memcpy(at, code, sizeof code);
    return sizeof code;
}
static void barrier(void) { asm volatile("" : : : "memory"); }
#endif

static void *map(size_t bytes, int protection) {
    return mmap(NULL, bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

static long call_often(function *volatile *called, int times) {
    long value = 1;
    for (int i = 0; i < times; i++) value = (*called)(value) & 0xffffff;
    return value;
}

/* The same place, another function each time, each called until it is hot. */
static void rewritten(void) {
    char *code = map(PAGE, PROT_READ | PROT_WRITE | PROT_EXEC);
    function *volatile called = (function *)code;
    long sum = 0;
    for (int round = 0; round < 300; round++) {
        if (round % 3 == 2) write_multiply(code, round % 100 + 2);
        else write_add(code, round * 7 - 500);
        barrier();
        sum = sum * 31 + call_often(&called, 2000);
    }
    for (int round = 0; round < 2000; round++) {
        write_add(code, round % 1000);
        barrier();
        sum = sum * 31 + called(round);
    }
    printf("rewritten: %016lx\n", (unsigned long)sum);
    munmap(code, PAGE);
}

/* Mapped anew each time, at the same address, without a barrier: the calls themselves suffice. */
static void mapped_anew(void) {
    char *code = map(PAGE, PROT_READ | PROT_WRITE | PROT_EXEC);
    function *volatile called = (function *)(code + 64);
    long sum = 0;
    for (int round = 0; round < 200; round++) {
        munmap(code, PAGE);
        int protection = PROT_READ | PROT_WRITE | (round % 2 ? PROT_EXEC : 0);
        if (mmap(code, PAGE, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != code) puts("not mapped");
        write_add(code + 64, round * 11);
        mprotect(code, PAGE, PROT_READ | PROT_EXEC);
        sum = sum * 31 + call_often(&called, 2000);
    }
    printf("mapped anew: %016lx\n", (unsigned long)sum);
    munmap(code, PAGE);
}

/* A file's code, seen at the same address in turn from two files, and changed through another view,
 * which qemu-alpha does not notice: for it the barrier does nothing. */
static void through_files(void) {
    long sum = 0;
    int files[2];
    char *views[2], *code = map(PAGE, PROT_NONE);
    function *volatile called = (function *)code;
    for (int i = 0; i < 2; i++) {
        char name[] = "codeXXXXXX";
        files[i] = mkstemp(name);
        unlink(name);
        if (ftruncate(files[i], PAGE) != 0) puts("no file");
        views[i] = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, files[i], 0);
        write_add(views[i], 1000 + i);
    }
    for (int round = 0; round < 100; round++) {
        mmap(code, PAGE, PROT_READ | PROT_EXEC, MAP_SHARED | MAP_FIXED, files[round % 2], 0);
        sum = sum * 31 + call_often(&called, 1000);
        write_multiply(views[round % 2], 2 + round);
        barrier();
        sum = sum * 31 + call_often(&called, 1000);
        write_add(views[round % 2], round);
        barrier();
    }
    printf("[not qemu] through files: %016lx\n", (unsigned long)sum);
}

/* Many functions, in pages of their own and sharing one; some are changed between rounds. */
static void many(void) {
    enum { FUNCTIONS = 512, APART = 128 };
    char *code = map(FUNCTIONS * APART, PROT_READ | PROT_WRITE | PROT_EXEC);
    long sum = 0;
    for (int i = 0; i < FUNCTIONS; i++) write_add(code + i * APART, i);
    barrier();
    for (int round = 0; round < 60; round++) {
        for (int i = 0; i < FUNCTIONS; i++) sum = sum * 3 + ((function *volatile)(code + i * APART))(round);
        write_multiply(code + round * 37 % FUNCTIONS * APART, round);
        barrier();
    }
    printf("many: %016lx\n", (unsigned long)sum);
    munmap(code, FUNCTIONS * APART);
}

/* Code that must not run, and may again. */
static sigjmp_buf back;
static char *volatile fault;
static function *volatile guarded;

static void leave(int signal, siginfo_t *information, void *context) {
    (void)signal, (void)context;
    fault = information->si_addr;
    siglongjmp(back, 1);
}

static void allow(int signal, siginfo_t *information, void *context) {
    (void)signal, (void)context;
    fault = information->si_addr;
    mprotect((void *)guarded, PAGE, PROT_READ | PROT_EXEC);
}

static void guard(void) {
    char *code = map(PAGE, PROT_READ | PROT_WRITE | PROT_EXEC);
    struct sigaction action = {.sa_sigaction = leave, .sa_flags = SA_SIGINFO};
    volatile long left = 0, allowed = 0, sum = 0;
    guarded = (function *)code;
    write_add(code, 3);
    barrier();
    for (volatile int round = 0; round < 50; round++) {
        sum += call_often(&guarded, 1000);
        mprotect(code, PAGE, PROT_NONE);
        fault = NULL;
        action.sa_sigaction = leave;
        sigaction(SIGSEGV, &action, NULL);
        if (sigsetjmp(back, 1) == 0) sum += guarded(5);
        left += fault == code;
        fault = NULL;
        action.sa_sigaction = allow;
        sigaction(SIGSEGV, &action, NULL);
        sum += call_often(&guarded, 1000);
        allowed += fault == code;
    }
    munmap(code, PAGE);
    action.sa_sigaction = leave;
    sigaction(SIGSEGV, &action, NULL);
    fault = NULL;
    if (sigsetjmp(back, 1) == 0) sum += guarded(5);
    printf("guarded: left %ld, allowed %ld, gone %d, %ld\n", left, allowed, fault == code, sum);
}

static void library(void) {
    long sum = 0;
    for (int round = 0; round < 20; round++) {
        void *handle = dlopen("../library.so", RTLD_NOW);
        if (!handle) {
            puts(dlerror());
            return;
        }
        function *step = (function *)dlsym(handle, "step"), *hot = (function *)dlsym(handle, "hot");
        for (int i = 0; i < 500; i++) sum = sum * 5 + step(i);
        sum += hot(20000);
        dlclose(handle);
        /* Something else where the library was. */
        char *other = map(4 * PAGE, PROT_READ | PROT_WRITE | PROT_EXEC);
        write_add(other, round);
        barrier();
        function *volatile called = (function *)other;
        sum += call_often(&called, 1000);
        munmap(other, 4 * PAGE);
    }
    printf("library: %016lx\n", (unsigned long)sum);
}

int main(void) {
    setvbuf(stdout, NULL, _IOLBF, 0);
    rewritten();
    mapped_anew();
    through_files();
    many();
    guard();
    library();
    return 0;
}

#endif
