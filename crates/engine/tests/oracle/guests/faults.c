/* Faults in the middle of straight code: what the handler is told, and that the program goes on behind
 * the instruction that faulted. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

static char *page;
static sigjmp_buf back;

static void report(const char *name, siginfo_t *info, ucontext_t *context) {
    long address = (char *)info->si_addr - page;
    int in_page = address >= -8192 && address < 24576;
    printf("%s: code %d, address %s%+ld, pc of the fault%+ld\n", name, info->si_code, in_page ? "page" : "pc",
           in_page ? address : (char *)info->si_addr - (char *)context->uc_mcontext.sc_pc,
           (long)context->uc_mcontext.sc_pc - (long)context->uc_mcontext.sc_regs[8]);
}

static void report_registers(const mcontext_t *saved) {
    unsigned long sum = 0;
    for (int i = 0; i < 31; i++) sum = sum * 31 + (unsigned long)saved->sc_regs[i];
    for (int i = 0; i < 31; i++) sum = sum * 31 + (unsigned long)saved->sc_fpregs[i];
    printf("registers %016lx\n", sum);
}

/* t7 holds the address of the instruction that is to fault. */
static void skip(int signal, siginfo_t *info, void *context) {
    ucontext_t *c = context;
    report(signal == SIGSEGV ? "segv" : signal == SIGBUS ? "bus" : signal == SIGILL ? "ill" : signal == SIGFPE ? "fpe" : "trap", info, c);
    report_registers(&c->uc_mcontext);
    if (c->uc_mcontext.sc_pc == (long)c->uc_mcontext.sc_regs[8]) c->uc_mcontext.sc_pc += 4;
}

static void leave(int signal, siginfo_t *info, void *context) {
    report("left", info, context);
    siglongjmp(back, signal);
}

/* Two instructions, one that may fault, three more; the sum tells how many of them were executed. */
#define ATTEMPT(instruction)                                                                            \
    ({                                                                                                  \
        register long pointer asm("$16") = (long)target;                                                \
        register long sum asm("$17") = 0;                                                               \
        asm volatile("br $8,1f\n1:\taddq $17,1,$17\n\tlda $8,12($8)\n\taddq $17,2,$17\n\t" instruction  \
                     "\n\taddq $17,4,$17\n\taddq $17,8,$17\n\ttrapb\n\taddq $17,16,$17"                 \
                     : "+r"(sum), "+r"(pointer)::"$0", "$1", "$8", "memory");                           \
        sum;                                                                                            \
    })

static void handle(void (*handler)(int, siginfo_t *, void *)) {
    struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO};
    const int signals[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP};
    for (int i = 0; i < 5; i++) sigaction(signals[i], &action, NULL);
}

int main(void) {
    page = mmap(NULL, 3 * 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    munmap(page + 16384, 8192);
    mprotect(page + 8192, 8192, PROT_READ);
    char *target = page;
    handle(skip);
    strcpy(page, "0123456789abcdef");
    printf("no fault: %ld\n", ATTEMPT("ldq $1,0($16)"));
    target = page + 8192;
    printf("load of read-only: %ld\n", ATTEMPT("ldq $1,8($16)"));
    printf("store to read-only: %ld\n", ATTEMPT("stq $17,8($16)"));
    target = page + 16384;
    printf("load of unmapped: %ld\n", ATTEMPT("ldl $1,0($16)"));
    printf("store to unmapped: %ld\n", ATTEMPT("stq_u $1,3($16)"));
    printf("load to zero: %ld\n", ATTEMPT("ldq_u $31,3($16)"));
    printf("floating load: %ld\n", ATTEMPT("ldt $f1,16($16)"));
    printf("illegal: %ld\n", ATTEMPT(".long 0x04000000"));
    printf("integer overflow: %ld\n", ATTEMPT("lda $1,-1($31); srl $1,1,$1; addqv $1,1,$1"));
    printf("software trap: %ld\n", ATTEMPT("lda $16,-2($31); call_pal 0xaa"));
    printf("other software trap: %ld\n", ATTEMPT("lda $16,-100($31); call_pal 0xaa"));
    printf("breakpoint: %ld\n", ATTEMPT("call_pal 0x80"));
    printf("bug check: %ld\n", ATTEMPT("call_pal 0x81"));
    printf("unknown call_pal: %ld\n", ATTEMPT("call_pal 0xbf"));
    for (int i = 0; i < 3; i++) {
        handle(leave);
        if (sigsetjmp(back, 1) == 0) printf("not reached: %ld\n", ATTEMPT("ldbu $1,4($16)"));
    }
    return 0;
}
