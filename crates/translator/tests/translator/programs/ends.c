/* Ends in the way of its second argument. */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

static int deep(int n) { volatile char frame[4096]; frame[n & 4095] = n; return deep(n + 1) + frame[0]; }

static void *end_process(void *argument) { exit(33); }
static void *wait_for_ever(void *argument) { for (;;) pause(); }

int main(int count, char **words) {
    struct rlimit none = { 0, 0 };
    setrlimit(RLIMIT_CORE, &none);
    pthread_t thread;
    switch (atoi(words[2])) {
    case 0: *(volatile int *)8 = 1; break;
    case 1: ((void (*)(void))16)(); break;
    case 2: __builtin_trap(); break;
    case 3: asm volatile("int3"); break;
    case 4: asm volatile("xor %%ecx, %%ecx\n idiv %%ecx" : : : "rax", "rcx", "rdx"); break;
    case 5: deep(0); break;
    case 6: raise(SIGTERM); break;
    case 7: kill(getpid(), SIGKILL); break;
    case 8: pthread_create(&thread, 0, end_process, 0); pause(); break;
    case 9: pthread_create(&thread, 0, wait_for_ever, 0); exit(12);
    /* Into the middle of an instruction: its last byte is a return. */
    case 10: {
        unsigned char code[] = { 0x48, 0x05, 0xb8, 7, 0, 0, 0, 0xc3 };
        asm volatile("" : : "r"(code) : "memory");
        return ((int (*)(void))(code + 2))();
    }
    case 11: { signal(SIGSEGV, SIG_IGN); *(volatile int *)8 = 1; } break;
    case 12: { sigset_t all; sigfillset(&all); sigprocmask(SIG_SETMASK, &all, 0); *(volatile int *)8 = 1; } break;
    case 13: asm volatile("mov $0x900000000000000, %%rax\n jmp *%%rax" : : : "rax"); break;
    }
    return 0;
}
