/* Registers at exceptions in compiled loops: each loop runs with known values in all registers but the stack pointer; when an instruction faults or traps, the handler compares them all,
 * and the program counter, with the expected values. Then it leaves by a jump, skips the
 * instruction, or repairs the cause and repeats the instruction. Natively nothing is compared. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

enum { PAGE = 65536, ROUNDS = 100000, BYTES = 13 * PAGE };
#define STRIDE 8

/* What may be done about an exception. */
enum { LEAVE, SKIP, REPAIR, WAYS };
static const char *const ways[] = {"leaves", "skips", "repairs"};

/* The loops. What an instruction may use: r16 walks through memory, r1 is its result or what it stores,
 * r5 and f2 are 0 when it is to fail, r6 and r7 are scratch. Behind it: its signal, how far from its label
 * the program counter is found, and whether it loads r1. */
#define CASES(CASE)                                                                                         \
    CASE(ldbu, "ldbu $1,0($16)", SIGSEGV, 0, 1)                                                             \
    CASE(ldwu, "ldwu $1,0($16)", SIGSEGV, 0, 1)                                                             \
    CASE(ldl, "ldl $1,0($16)", SIGSEGV, 0, 1)                                                               \
    CASE(ldq, "ldq $1,0($16)", SIGSEGV, 0, 1)                                                               \
    CASE(ldq_u, "ldq_u $1,3($16)", SIGSEGV, 0, 1)                                                           \
    CASE(ldl_l, "ldl_l $1,0($16)", SIGSEGV, 0, 1)                                                           \
    CASE(ldq_l, "ldq_l $1,0($16)", SIGSEGV, 0, 1)                                                           \
    CASE(lds, "lds $f1,0($16)", SIGSEGV, 0, 0)                                                              \
    CASE(ldt, "ldt $f1,0($16)", SIGSEGV, 0, 0)                                                              \
    CASE(stb, "stb $2,0($16)", SIGSEGV, 0, 0)                                                               \
    CASE(stw, "stw $2,0($16)", SIGSEGV, 0, 0)                                                               \
    CASE(stl, "stl $2,0($16)", SIGSEGV, 0, 0)                                                               \
    CASE(stq, "stq $2,0($16)", SIGSEGV, 0, 0)                                                               \
    CASE(stq_u, "stq_u $2,5($16)", SIGSEGV, 0, 0)                                                           \
    CASE(sts, "sts $f2,0($16)", SIGSEGV, 0, 0)                                                              \
    CASE(stt, "stt $f2,0($16)", SIGSEGV, 0, 0)                                                              \
    CASE(load_to_base, "mov $16,$7\n\tldq $7,0($7)", SIGSEGV, 4, 0)                                         \
    CASE(load_across, "lda $7,-3($16)\n\tldq $7,0($7)", SIGSEGV, 4, 0)                                      \
    CASE(store_across, "lda $7,-3($16)\n\tstl $2,0($7)", SIGSEGV, 4, 0)                                     \
    CASE(illegal, "bne $5,2f\n\t.long 0x04000000\n2:", SIGILL, 8, 0)                                        \
    CASE(breakpoint, "bne $5,2f\n\tcall_pal 0x80\n2:", SIGTRAP, 8, 0)                                       \
    CASE(bugcheck, "bne $5,2f\n\tcall_pal 0x81\n2:", SIGTRAP, 8, 0)                                         \
    CASE(addqv, "addqv $4,1,$6", SIGFPE, 4, 0)                                                              \
    CASE(overflow, "addqv $4,1,$6\n\ttrapb\n\tunop", SIGFPE, 4, 0)                                          \
    CASE(divt, "divt $f0,$f2,$f3\n\ttrapb", SIGFPE, 4, 0)                                                   \
    CASE(locked, "bne $5,2f\n\tlda $7,1($16)\n\tldq_l $7,0($7)\n2:", SIGBUS, 8, 0)

#ifdef __alpha__

typedef void loop(uint64_t *registers);

/* Registers: 31 integers, 31 floats, as the loop finds and, in the second half, leaves them. */
enum { REGISTERS = 62, POINTER = 16, LEFT = 17 };
static uint64_t registers[2 * REGISTERS];

asm(".arch ev6\n"
    ".macro integers op, from\n"
    ".irp r,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,19,20,21,22,23,24,25,26,27,28,29\n"
    "\t\\op $\\r,\\from+8*\\r($18)\n.endr\n.endm\n"
    ".macro floats op, from\n"
    ".irp r,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30\n"
    "\t\\op $f\\r,\\from+248+8*\\r($18)\n.endr\n.endm\n"
    ".macro saved iop, fop\n"
    ".irp r,9,10,11,12,13,14,15,26,29,18\n\t\\iop $\\r,8*\\r($30)\n.endr\n"
    ".irp r,2,3,4,5,6,7,8,9\n\t\\fop $f\\r,248+8*\\r($30)\n.endr\n.endm\n");

/* f2 counts down, r4 up; r2 counts rounds, r3 sums what was loaded. */
#define CASE(name, instruction, signal, offset, sum)                                                        \
    asm(".pushsection .text\n.align 4\n.globl loop_" #name "\nloop_" #name ":\n"                            \
        "\tlda $30,-512($30)\n\tmov $16,$18\n\tsaved stq,stt\n\tintegers ldq,0\n\tfloats ldt,0\n\tldq $18,144($18)\n" \
        "1:\taddq $2,1,$2\n\taddq $3,$1,$3\n\tsubt $f2,$f4,$f2\n\tsubq $5,1,$5\n"                           \
        ".globl at_" #name "\nat_" #name ":\n\t" instruction "\n"                                           \
        "\taddq $4,1,$4\n\tlda $16,8($16)\n\tsubq $17,1,$17\n\tbne $17,1b\n"                                \
        "\tldq $18,144($30)\n\tintegers stq,496\n\tfloats stt,496\n"                                        \
        "\tsaved ldq,ldt\n\tlda $30,512($30)\n\tret\n.popsection\n");                                       \
    extern loop loop_##name;                                                                                \
    extern char at_##name[];
CASES(CASE)
#undef CASE

static struct { uint64_t pc; int way, faults, wrong, right_place; } seen;
static uint64_t expected[REGISTERS];
static sigjmp_buf back;

static uint64_t bits(double value) { uint64_t bits; memcpy(&bits, &value, 8); return bits; }

static int differs(const uint64_t *integers, const uint64_t *floats) {
    int wrong = 0;
    for (int i = 0; i < 30; i++) wrong += i != 1 && i != 6 && i != 7 && integers[i] != expected[i];
    for (int i = 0; i < 31; i++) wrong += i != 1 && i != 3 && floats[i] != expected[31 + i];
    return wrong;
}

static void handler(int signal, siginfo_t *information, void *pointer) {
    mcontext_t *context = &((ucontext_t *)pointer)->uc_mcontext;
    seen.faults++;
    seen.right_place = context->sc_pc == (long)seen.pc;
    seen.wrong += differs((uint64_t *)context->sc_regs, (uint64_t *)context->sc_fpregs);
    (void)information;
    if (seen.way == LEAVE) siglongjmp(back, 1);
    if (seen.way == REPAIR) {
        char *page = (char *)(context->sc_regs[POINTER] & -PAGE);
        mprotect(page, PAGE, PROT_READ | PROT_WRITE);
        context->sc_regs[7] &= -8;
        context->sc_regs[19] = 12345;
        context->sc_fpregs[20] = bits(0.5);
    } else if (signal == SIGSEGV || signal == SIGBUS) {
        context->sc_pc += 4;
    }
    if (seen.way == SKIP) context->sc_regs[LEFT] = 1;
}

static void try(const char *name, loop *run, char *at, int signal, int offset, int sum, int way,
                char *area) {
    for (int i = 0; i < REGISTERS; i++) registers[i] = 0x0123456789abcdef * (uint64_t)(i + 1);
    for (int i = 31; i < REGISTERS; i++) registers[i] = bits(1.5 * i);
    registers[1] = 0;
    registers[2] = 1000;
    registers[3] = 77;
    registers[4] = INT64_MAX - ROUNDS;
    registers[5] = ROUNDS + 1;
    registers[POINTER] = (uint64_t)(area + BYTES - STRIDE * ROUNDS);
    registers[LEFT] = ROUNDS + 10;
    registers[31 + 2] = bits(ROUNDS + 1.0);
    registers[31 + 4] = bits(1.0);
    memcpy(expected, registers, sizeof expected);
    expected[2] += ROUNDS + 1;
    expected[3] += sum * ROUNDS;
    expected[4] += ROUNDS;
    expected[5] = 0;
    expected[POINTER] += STRIDE * ROUNDS;
    expected[LEFT] -= ROUNDS;
    expected[31 + 2] = bits(0.0);
    memset(&seen, 0, sizeof seen);
    seen.way = way;
    /* A fault is at the instruction, a trap behind it. */
    seen.pc = (uint64_t)at + offset;
    mprotect(area + BYTES, PAGE, PROT_READ | PROT_WRITE);
    for (int i = 0; i < (BYTES + PAGE) / 8; i++) ((uint64_t *)area)[i] = 1;
    if (signal == SIGSEGV) mprotect(area + BYTES, PAGE, PROT_NONE);
    if (sigsetjmp(back, 1) == 0) {
        run(registers);
        uint64_t *after = registers + REGISTERS;
        int rest = way == SKIP ? 1 : 10;
        expected[2] += rest - 1;
        expected[3] = after[3];
        expected[4] += rest;
        expected[5] -= rest - 1;
        expected[POINTER] += STRIDE * rest;
        expected[LEFT] = 0;
        expected[31 + 2] = bits(1.0 - rest);
        if (way == REPAIR) expected[19] = 12345, expected[31 + 20] = bits(0.5);
        expected[18] = after[18];
        seen.wrong += differs(after, after + 31);
    }
    printf("%s: %d %s, registers wrong %d, place %d\n", name, seen.faults, ways[way], seen.wrong, seen.right_place);
}

int main(void) {
    struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO};
    const int signals[] = {SIGSEGV, SIGBUS, SIGILL, SIGTRAP, SIGFPE};
    for (int i = 0; i < 5; i++) sigaction(signals[i], &action, NULL);
    char *area = mmap(NULL, BYTES + 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    area = (char *)(((uintptr_t)area + PAGE - 1) & -PAGE);
    for (int way = 0; way < WAYS; way++) {
#define CASE(name, instruction, signal, offset, sum) try(#name, loop_##name, at_##name, signal, offset, sum, way, area);
        CASES(CASE)
    }
    return 0;
}

#else

int main(void) {
    for (int way = 0; way < WAYS; way++) {
#define CASE(name, instruction, signal, offset, sum)                                                        \
    printf("%s: 1 %s, registers wrong 0, place 1\n", #name, ways[way]);
        CASES(CASE)
    }
    return 0;
}

#endif
