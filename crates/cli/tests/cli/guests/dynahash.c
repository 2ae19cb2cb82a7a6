/* The hash table of shmem_index.c. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef struct HASHELEMENT HASHELEMENT;
typedef HASHELEMENT *HASHBUCKET;
typedef HASHBUCKET *HASHSEGMENT;
typedef struct HASHHDR {
    long entries;
    uint32_t max_bucket;
} HASHHDR;
typedef struct HTAB {
    HASHHDR *hctl;
    HASHSEGMENT *dir;
} HTAB;

HTAB *make_table(void *header, HASHSEGMENT *segments, HASHBUCKET *buckets) {
    HTAB *table = malloc(sizeof *table);
    table->hctl = header;
    table->hctl->max_bucket = 2;
    table->dir = segments;
    table->dir[0] = buckets;
    return table;
}

HASHBUCKET *bucket_of(HTAB *table, const char *name) {
    return &table->dir[0][strlen(name) % (table->hctl->max_bucket + 1)];
}
