/* Code that the program makes: prints the same in every run. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static sigjmp_buf back;
static void leave(int signal) { siglongjmp(back, signal); }

/* mov eax, value; ret */
static void write_function(unsigned char *at, int value) {
    at[0] = 0xb8;
    memcpy(at + 1, &value, 4);
    at[5] = 0xc3;
}

static int call(void *at) { return ((int (*)(void))at)(); }

int main(int count, char **words) {
    freopen(words[1], "w", stdout);
    int all = PROT_READ | PROT_WRITE | PROT_EXEC, flags = MAP_PRIVATE | MAP_ANONYMOUS, sum = 0;
    unsigned char *page = mmap(0, 8192, all, flags, -1, 0);
    for (int i = 0; i < 300; i++) write_function(page + 16 * (i % 20), i), sum += call(page + 16 * (i % 20));
    printf("rewritten %d\n", sum);
    /* Written by the kernel. */
    int ends[2];
    unsigned char code[8];
    pipe(ends);
    write_function(code, 4242);
    write(ends[1], code, 6);
    long got = read(ends[0], page, 6);
    printf("read %ld %d\n", got, call(page));
    /* Not writable while it runs. */
    for (int i = 0; i < 5; i++) {
        mprotect(page, 4096, PROT_READ | PROT_WRITE);
        write_function(page, 100 + i);
        mprotect(page, 4096, PROT_READ | PROT_EXEC);
        printf("protected %d\n", call(page));
    }
    /* A function that changes an instruction of its own: movb $8, 1(%rip of the next one); mov $1, %eax; ret */
    unsigned char own[] = { 0xc6, 0x05, 1, 0, 0, 0, 8, 0xb8, 1, 0, 0, 0, 0xc3 };
    mprotect(page, 4096, all);
    memcpy(page + 512, own, sizeof own);
    printf("own %d", call(page + 512));
    page[512 + 6] = 9;
    printf(" %d\n", call(page + 512));
    /* A loop that counts in its own page: mov $1000, %ecx; 1: incl 64(%rip); dec %ecx; jnz 1b; mov ..., %eax; ret */
    unsigned char loop[] = { 0xb9, 232, 3, 0, 0, 0xff, 0x05, 64, 0, 0, 0, 0xff, 0xc9, 0x75, 0xf6, 0x8b, 0x05, 54, 0, 0, 0, 0xc3 };
    memset(page + 1024, 0, 256);
    memcpy(page + 1024, loop, sizeof loop);
    printf("data %d\n", call(page + 1024));
    /* Moved, unmapped and mapped again. */
    write_function(page, 31);
    call(page);
    unsigned char *moved = mremap(page, 8192, 16384, MREMAP_MAYMOVE | MREMAP_FIXED, (void *)0x200000000000);
    printf("moved %d\n", call(moved));
    signal(SIGSEGV, leave);
    if (!sigsetjmp(back, 1)) printf("unmapped %d\n", call(page));
    else printf("unmapped\n");
    mmap(page, 4096, all, flags | MAP_FIXED, -1, 0);
    write_function(page, 32);
    printf("mapped %d\n", call(page));
    /* Far from everything: nothing else fits within 2 GB. lea 9(%rip), %rax; add 2(%rip), %rax; ret */
    unsigned char *wide = mmap(0, 5ul << 30, PROT_NONE, flags | MAP_NORESERVE, -1, 0), *far = wide + (5ul << 29);
    unsigned char relative[] = { 0x8b, 0x05, 10, 0, 0, 0, 0x03, 0x05, 8, 0, 0, 0, 0xff, 0x25, 6, 0, 0, 0 };
    mprotect(far, 4096, all);
    memcpy(far, relative, sizeof relative);
    int numbers[] = { 40, 2 };
    memcpy(far + 16, relative + 16, 2);
    memcpy(far, (unsigned char[]){ 0x8b, 0x05, 58, 0, 0, 0, 0x03, 0x05, 56, 0, 0, 0, 0xff, 0x25, 54, 0, 0, 0 }, 18);
    memcpy(far + 64, numbers, 8);
    void *target = far + 128;
    memcpy(far + 72, &target, 8);
    far[128] = 0xc3;
    printf("far %d\n", call(far));
    printf("end\n");
    return 0;
}
