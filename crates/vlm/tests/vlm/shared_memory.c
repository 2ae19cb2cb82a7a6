/* Shares memory with a child in the way that the argument names, and prints where the memory is. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/wait.h>
#include <unistd.h>

#define SIZE (32 << 20)

static const char *kind, *name = "/vlm-test";
static int segment;
static size_t size = SIZE;

static int is(const char *other) { return strcmp(kind, other) == 0; }

static void fail(const char *what)
{
    perror(what);
    if (is("posix"))
        shm_unlink(name);
    if (is("sysv"))
        shmctl(segment, IPC_RMID, NULL);
    exit(1);
}

static char *map(int flags, int file)
{
    char *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, flags, file, 0);
    if (memory == MAP_FAILED)
        fail("mmap");
    return memory;
}

static char *get(void)
{
    if (is("sysv")) {
        segment = shmget(IPC_PRIVATE, size, IPC_CREAT | SHM_HUGETLB | 0600);
        if (segment < 0)
            fail("shmget");
        char *memory = shmat(segment, NULL, 0);
        if (memory == (char *)-1)
            fail("shmat");
        return memory;
    }
    if (is("posix")) {
        int file = shm_open(name, O_RDWR | O_CREAT, 0600);
        if (file < 0 || ftruncate(file, (off_t)size) != 0)
            fail("shm_open");
        /* Written before it is mapped. */
        if (pwrite(file, "x", 1, 1000) != 1)
            fail("pwrite");
        return map(MAP_SHARED, file);
    }
    size = is("small") ? 4096 : size;
    return map((is("private") ? MAP_PRIVATE : MAP_SHARED) | MAP_ANONYMOUS | (is("hugetlb") ? MAP_HUGETLB : 0), -1);
}

/* Prints the line of the memory map with an address. */
static void print_map(const char *memory)
{
    char line[512];
    unsigned long begin, end;
    FILE *maps = fopen("/proc/self/maps", "r");
    while (fgets(line, sizeof line, maps) != NULL)
        if (sscanf(line, "%lx-%lx", &begin, &end) == 2 && begin <= (unsigned long)memory && (unsigned long)memory < end)
            fputs(line, stdout);
    fclose(maps);
    fflush(stdout);
}

int main(int count, char **arguments)
{
    kind = count > 1 ? arguments[1] : "";
    char *memory = get();
    print_map(memory);
    if (is("posix") && memory[1000] != 'x')
        return 2;
    for (size_t at = 0; at < size; at += 4096)
        if (memory[at] != 0)
            return 3;
    pid_t child = fork();
    if (child == 0) {
        if (is("posix")) {
            int file = shm_open(name, O_RDWR, 0);
            memory = map(MAP_SHARED, file);
        }
        if (is("sysv"))
            memory = shmat(segment, NULL, 0);
        memset(memory, 42, size);
        _exit(0);
    }
    waitpid(child, NULL, 0);
    printf("child wrote %d\n", memory[size - 1]);
    if (is("sysv")) {
        struct shmid_ds status;
        if (shmctl(segment, IPC_STAT, &status) != 0 || status.shm_nattch != 1 || shmdt(memory) != 0 ||
            shmctl(segment, IPC_RMID, NULL) != 0)
            return 4;
        return 0;
    }
    if (munmap(memory, size) != 0)
        return 5;
    return is("posix") ? shm_unlink(name) : 0;
}
