/* Integer arithmetic of every width, divisions (software on Alpha), shifts, carries. */
#include <inttypes.h>
#include <stdio.h>

static uint64_t state = 1;

static uint64_t next(void) {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return state >> (state & 63);
}

int main(void) {
    uint64_t sum = 0;
    for (int i = 0; i < 500; i++) {
        uint64_t a = next(), b = next() | 1;
        int64_t sa = (int64_t)a, sb = (int64_t)b | 1;
        sum = sum * 31 + a / b + a % b;
        sum ^= (uint64_t)(sa / (sb == -1 ? 1 : sb)) ^ (uint64_t)(sa % (sb == -1 ? 1 : sb));
        sum += (uint32_t)a / (uint32_t)(b | 1) + (uint64_t)((int32_t)a % (int32_t)((b >> 1) % 1000 + 1));
        sum ^= a << (b & 63) ^ a >> (b & 31) ^ (uint64_t)(sa >> (b & 15));
        unsigned __int128 wide = (unsigned __int128)a * b;
        sum += (uint64_t)(wide >> 64) + (uint64_t)(wide / (b | 3));
        sum += (uint64_t)__builtin_popcountll(a) + (uint64_t)__builtin_clzll(a | 1) + (uint64_t)__builtin_ctzll(b);
    }
    printf("%016" PRIx64 "\n", sum);
    return 0;
}
