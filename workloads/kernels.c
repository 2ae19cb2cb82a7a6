/* kernels: loops of the kinds that BYTEmark (nbench) has, each written anew and small: sorting of numbers and of strings,
 * bit fields, floating point in integers, a block cipher, Huffman coding, a neural net, and a system of linear equations.
 *
 * usage: kernels [ROUNDS]    prints a sum for each, the same on every machine
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NUMBERS = 8000, STRINGS = 1000, BITS = 1 << 16, TEXT = 20000, LAYER = 24, EQUATIONS = 40 };

static uint64_t state;

static uint32_t draw(uint32_t bound)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((state >> 33) % bound);
}

/* Heap sort of numbers. */
static void sift(int32_t *heap, int root, int end)
{
    int32_t value = heap[root];
    for (int child; (child = 2 * root + 1) < end; root = child) {
        if (child + 1 < end && heap[child + 1] > heap[child])
            child++;
        if (value >= heap[child])
            break;
        heap[root] = heap[child];
    }
    heap[root] = value;
}

static uint64_t sort_numbers(void)
{
    static int32_t numbers[NUMBERS];
    uint64_t sum = 0;
    for (int i = 0; i < NUMBERS; i++)
        numbers[i] = (int32_t)draw(1 << 30);
    for (int i = NUMBERS / 2; i-- > 0;)
        sift(numbers, i, NUMBERS);
    for (int end = NUMBERS; end-- > 1;) {
        int32_t largest = numbers[0];
        numbers[0] = numbers[end];
        numbers[end] = largest;
        sift(numbers, 0, end);
    }
    for (int i = 0; i < NUMBERS; i++)
        sum = sum * 31 + (uint32_t)numbers[i];
    return sum;
}

static int compare(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static uint64_t sort_strings(void)
{
    static char text[STRINGS][32];
    char *order[STRINGS];
    uint64_t sum = 0;
    for (int i = 0; i < STRINGS; i++) {
        int length = 4 + (int)draw(27);
        for (int at = 0; at < length; at++)
            text[i][at] = (char)('a' + draw(26));
        text[i][length] = 0;
        order[i] = text[i];
    }
    qsort(order, STRINGS, sizeof *order, compare);
    for (int i = 0; i < STRINGS; i++)
        sum = sum * 31 + (unsigned char)order[i][1];
    return sum;
}

/* Sets, clears and complements runs of bits. */
static uint64_t bit_fields(void)
{
    static uint64_t map[BITS / 64];
    uint64_t sum = 0;
    for (int i = 0; i < 1500; i++) {
        uint32_t from = draw(BITS), length = draw(200), how = draw(3);
        for (uint32_t bit = from; bit < from + length && bit < BITS; bit++) {
            uint64_t mask = (uint64_t)1 << bit % 64;
            if (how == 0)
                map[bit / 64] |= mask;
            else if (how == 1)
                map[bit / 64] &= ~mask;
            else
                map[bit / 64] ^= mask;
        }
    }
    for (int i = 0; i < BITS / 64; i++)
        sum = sum * 31 + map[i];
    return sum;
}

/* Numbers of a 31-bit mantissa, normalized, and an exponent: products and quotients by shifts and additions. */
struct number {
    uint32_t mantissa;
    int32_t exponent;
};

static struct number normalized(uint64_t mantissa, int32_t exponent)
{
    while (mantissa >> 31) {
        mantissa >>= 1;
        exponent++;
    }
    while (mantissa && !(mantissa >> 30)) {
        mantissa <<= 1;
        exponent--;
    }
    return (struct number){(uint32_t)mantissa, exponent};
}

static struct number product(struct number a, struct number b)
{
    uint64_t sum = 0;
    for (int bit = 0; bit < 31; bit++)
        if (b.mantissa >> bit & 1)
            sum += (uint64_t)a.mantissa << bit;
    return normalized(sum, a.exponent + b.exponent);
}

static struct number quotient(struct number a, struct number b)
{
    uint64_t rest = a.mantissa, digits = 0;
    for (int bit = 0; bit < 40; bit++) {
        digits <<= 1;
        if (rest >= b.mantissa) {
            rest -= b.mantissa;
            digits |= 1;
        }
        rest <<= 1;
    }
    return normalized(digits, a.exponent - b.exponent - 39);
}

static uint64_t emulate(void)
{
    struct number value = normalized(12345, 0);
    uint64_t sum = 0;
    for (int i = 0; i < 1500; i++) {
        value = product(value, normalized(1 + draw(1 << 20), -10));
        value = quotient(value, normalized(1 + draw(1 << 20), -10));
        sum = sum * 31 + value.mantissa + (uint32_t)value.exponent;
    }
    return sum;
}

/* A block cipher of sums, products modulo 65537 and exclusive ors of 16 bits, as IDEA's rounds are. */
static uint16_t multiply(uint16_t a, uint16_t b)
{
    uint64_t whole = (uint64_t)(a ? a : 65536) * (b ? b : 65536) % 65537;
    return (uint16_t)whole;
}

static uint64_t cipher(void)
{
    static uint16_t text[4000];
    uint16_t key[52];
    uint64_t sum = 0;
    for (int i = 0; i < 52; i++)
        key[i] = (uint16_t)draw(65536);
    for (int i = 0; i < 4000; i++)
        text[i] = (uint16_t)draw(65536);
    for (int block = 0; block < 4000; block += 4) {
        uint16_t *x = &text[block];
        for (int round = 0; round < 8; round++) {
            const uint16_t *k = &key[6 * round];
            uint16_t a = multiply(x[0], k[0]), b = (uint16_t)(x[1] + k[1]);
            uint16_t c = (uint16_t)(x[2] + k[2]), d = multiply(x[3], k[3]);
            uint16_t e = multiply(a ^ c, k[4]), f = multiply((uint16_t)((b ^ d) + e), k[5]);
            e = (uint16_t)(e + f);
            x[0] = a ^ f;
            x[1] = c ^ f;
            x[2] = b ^ e;
            x[3] = d ^ e;
        }
        sum = sum * 31 + x[0] + x[3];
    }
    return sum;
}

/* Huffman's code of a text of few letters: the tree by repeated search of the two rarest, then the text's bits. */
static uint64_t huffman(void)
{
    static unsigned char text[TEXT];
    uint64_t weight[64] = {0}, sum = 0;
    int parent[64], side[64], nodes = 32;
    for (int i = 0; i < TEXT; i++) {
        text[i] = (unsigned char)draw(1 + draw(32));
        weight[text[i]]++;
    }
    for (int i = 0; i < 64; i++)
        parent[i] = -1;
    for (; nodes < 63; nodes++) {
        for (int which = 0; which < 2; which++) {
            int rarest = -1;
            for (int i = 0; i < nodes; i++)
                if (parent[i] < 0 && (rarest < 0 || weight[i] < weight[rarest]))
                    rarest = i;
            parent[rarest] = nodes;
            side[rarest] = which;
            weight[nodes] += weight[rarest];
        }
    }
    for (int i = 0; i < TEXT; i++)
        for (int node = text[i]; parent[node] >= 0; node = parent[node])
            sum = sum * 2 + (uint64_t)side[node] + (sum >> 63);
    return sum;
}

/* A net of two layers learns a permutation; its activation is a quotient, so that no library decides the result. */
static uint64_t learn(void)
{
    static double first[LAYER][LAYER], second[LAYER][LAYER];
    double error = 0;
    for (int i = 0; i < LAYER; i++)
        for (int j = 0; j < LAYER; j++) {
            first[i][j] = draw(2000) / 1000.0 - 1.0;
            second[i][j] = draw(2000) / 1000.0 - 1.0;
        }
    for (int step = 0; step < 120; step++) {
        double hidden[LAYER], out[LAYER], back[LAYER] = {0};
        int shown = step % LAYER;
        error = 0;
        for (int i = 0; i < LAYER; i++) {
            double sum = first[i][shown];
            hidden[i] = sum / (1.0 + (sum < 0 ? -sum : sum));
        }
        for (int i = 0; i < LAYER; i++) {
            double sum = 0, wanted = i == (shown * 7 + 3) % LAYER;
            for (int j = 0; j < LAYER; j++)
                sum += second[i][j] * hidden[j];
            out[i] = wanted - sum / (1.0 + (sum < 0 ? -sum : sum));
            error += out[i] * out[i];
            for (int j = 0; j < LAYER; j++) {
                back[j] += out[i] * second[i][j];
                second[i][j] += 0.1 * out[i] * hidden[j];
            }
        }
        for (int i = 0; i < LAYER; i++)
            first[i][shown] += 0.1 * back[i];
    }
    return (uint64_t)(error * 1e6);
}

/* Linear equations by elimination, with the diagonal large. */
static uint64_t solve(void)
{
    static double a[EQUATIONS][EQUATIONS + 1];
    double sum = 0;
    for (int i = 0; i < EQUATIONS; i++) {
        for (int j = 0; j <= EQUATIONS; j++)
            a[i][j] = draw(1000) / 1000.0;
        a[i][i] += EQUATIONS;
    }
    for (int i = 0; i < EQUATIONS; i++)
        for (int row = i + 1; row < EQUATIONS; row++) {
            double factor = a[row][i] / a[i][i];
            for (int j = i; j <= EQUATIONS; j++)
                a[row][j] -= factor * a[i][j];
        }
    for (int i = EQUATIONS; i-- > 0;) {
        for (int j = i + 1; j < EQUATIONS; j++)
            a[i][EQUATIONS] -= a[i][j] * a[j][EQUATIONS];
        a[i][EQUATIONS] /= a[i][i];
        sum += a[i][EQUATIONS];
    }
    return (uint64_t)(sum * 1e6);
}

static const struct {
    const char *name;
    uint64_t (*run)(void);
} KERNELS[] = {
    {"numeric sort", sort_numbers}, {"string sort", sort_strings}, {"bit fields", bit_fields},
    {"floating-point emulation", emulate}, {"cipher", cipher}, {"Huffman", huffman},
    {"neural net", learn}, {"linear equations", solve},
};

int main(int argc, char **argv)
{
    long rounds = argc > 1 ? strtol(argv[1], NULL, 10) : 1;
    for (size_t i = 0; i < sizeof KERNELS / sizeof *KERNELS; i++) {
        uint64_t sum = 0;
        state = 1 + i;
        for (long round = 0; round < rounds; round++)
            sum = sum * 31 + KERNELS[i].run();
        printf("%-24s %016llx\n", KERNELS[i].name, (unsigned long long)sum);
    }
    return 0;
}
