/* Reads words that are not aligned; some are in two lines of a cache, of which nothing else reads the second. */
enum { WORDS = 10000, DISTANCE = 125 };
static char bytes[WORDS * DISTANCE + 8];

__attribute__((noinline)) static long word_at(const char *address) {
    long word;
    __asm__ volatile("ldq %0,0(%1)" : "=r"(word) : "r"(address));
    return word;
}

int main(void) {
    long sum = 0;
    for (int i = 0; i < WORDS; i++) sum += word_at(bytes + (long)i * DISTANCE);
    return sum != 0;
}
