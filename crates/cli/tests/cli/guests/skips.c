/* Loads that fault now and then, in the middle of what runs most; a handler passes over each. */
#define _GNU_SOURCE
#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>

enum { PAGE = 8192, ROUNDS = 20000 };
static char *pages;

static void skip(int signal, siginfo_t *info, void *context) {
    (void)signal, (void)info;
    ((ucontext_t *)context)->uc_mcontext.sc_pc += 4;
}

/* Words of the first page; of the second, which may not be read, if `number` says so. */
#define WORD(number, every)                                                                         \
    ({                                                                                              \
        long word = 0, offset = (number) * 24 % PAGE + ((number) % (every) == 0 ? PAGE : 0);        \
        __asm__ volatile("addq %1,0,%1\n\tldq %0,0(%1)\n\taddq %0,1,%0" : "+r"(word) : "r"(pages + offset)); \
        word;                                                                                       \
    })

static long __attribute__((noinline)) walk(void) {
    long sum = 0;
    for (long i = 1; i <= ROUNDS; i++) {
        if (i & 4)
            sum += WORD(i, 97);
        else
            sum -= WORD(i, 101);
        if (sum & 1)
            sum += i;
    }
    return sum;
}

int main(void) {
    struct sigaction action = {.sa_sigaction = skip, .sa_flags = SA_SIGINFO};
    sigaction(SIGSEGV, &action, 0);
    pages = mmap(0, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mprotect(pages + PAGE, PAGE, PROT_NONE);
    return walk() == 1;
}
