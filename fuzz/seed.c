/* A program without a library, from which seeds are made: calls, a loop, loads and stores, variables with types, calls
   of the system. */
struct point { int x, y; double z[3]; };
struct point points[4];
long table[16];
static const char text[] = "seed\n";

__attribute__((noinline)) long work(long n) {
    long sum = 0;
    for (int i = 0; i < 16; i++) sum += table[i] += n * i;
    points[n & 3].x = (int)sum;
    return sum;
}

static long call(long number, long a, long b, long c) {
    register long v0 __asm__("$0") = number, a0 __asm__("$16") = a, a1 __asm__("$17") = b;
    register long a2 __asm__("$18") = c, a3 __asm__("$19");
    __asm__ volatile("callsys" : "+r"(v0), "=r"(a3) : "r"(a0), "r"(a1), "r"(a2) : "memory", "$1", "$20", "$21", "$22");
    return v0;
}

void begin(void) {
    long sum = 0;
    for (long n = 0; n < 5; n++) sum += work(n);
    call(4, 1, (long)text, sizeof text - 1);
    call(1, sum & 1, 0, 0);
}

__asm__(".globl _start\n_start: br $27, 1f\n1: ldgp $29, 0($27)\n lda $27, begin\n jsr $26, ($27)\n");
