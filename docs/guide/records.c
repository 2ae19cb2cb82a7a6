/* Adds up what is in a file of records, each 13 bytes long: a kind, an article and an amount. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LENGTH = 13 };

static int64_t amount_by_cast(const char *record) { return *(const int64_t *)(record + 5); }

static int64_t amount_by_copy(const char *record) {
    int64_t amount;
    memcpy(&amount, record + 5, sizeof amount);
    return amount;
}

int main(int count, char **arguments) {
    int records = count > 1 ? atoi(arguments[1]) : 1000;
    char *file = malloc((size_t)records * LENGTH);
    for (int i = 0; i < records; i++) {
        int64_t amount = i;
        memcpy(file + i * LENGTH + 5, &amount, sizeof amount);
    }
    int64_t sum = 0;
    for (int i = 0; i < records; i++) sum += amount_by_cast(file + i * LENGTH);
    for (int i = 0; i < records; i++) sum -= amount_by_copy(file + i * LENGTH);
    printf("%d records, a difference of %lld\n", records, (long long)sum);
    free(file);
    return 0;
}
