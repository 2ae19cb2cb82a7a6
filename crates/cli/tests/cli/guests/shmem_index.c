/* A server with an index of its shared memory as PostgreSQL has one, a hash table: two processes change two of its structures. Its image is
   called postgres. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

typedef struct HASHELEMENT {
    struct HASHELEMENT *link;
    uint32_t hashvalue;
} HASHELEMENT;
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
typedef struct {
    char key[48];
    void *location;
    size_t size;
    size_t allocated_size;
} ShmemIndexEnt;

static HTAB *ShmemIndex;
static char *memory;

static void *allocate(size_t size) {
    char *block = memory;
    memory += (size + 127) & ~(size_t)127;
    return block;
}

__attribute__((noinline)) void *ShmemInitStruct(const char *name, size_t size, char *found) {
    HASHELEMENT *element = allocate(16 + sizeof(ShmemIndexEnt));
    ShmemIndexEnt *entry = (ShmemIndexEnt *)((char *)element + 16);
    HASHBUCKET *bucket = &ShmemIndex->dir[0][strlen(name) % (ShmemIndex->hctl->max_bucket + 1)];
    strcpy(entry->key, name);
    entry->size = entry->allocated_size = size;
    entry->location = allocate(size);
    element->link = *bucket;
    *bucket = element;
    *found = 0;
    return entry->location;
}

int main(void) {
    char found;
    memory = mmap(NULL, 1 << 16, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ShmemIndex = malloc(sizeof *ShmemIndex);
    ShmemIndex->hctl = allocate(sizeof(HASHHDR));
    ShmemIndex->hctl->max_bucket = 2;
    ShmemIndex->dir = allocate(sizeof(HASHSEGMENT));
    ShmemIndex->dir[0] = allocate(3 * sizeof(HASHBUCKET));
    volatile long *descriptors = ShmemInitStruct("Buffer Descriptors", 4096, &found);
    volatile long *control = ShmemInitStruct("XLOG Ctl", 512, &found);
    /* In the same bucket as the first one, and never used. */
    ShmemInitStruct("Backend Statistics", 64, &found);
    fork();
    for (unsigned long i = 0;; i++) {
        descriptors[i % 512]++;
        control[8]++;
    }
}
