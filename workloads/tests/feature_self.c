/* not under qemu-alpha 7.2: it cannot execute an Alpha program, and /proc/self describes qemu */
/* /proc/self: the program's name, arguments, environment, memory and descriptors, and nothing of the emulator's. */
#define _GNU_SOURCE
#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;
static char data[1 << 20];
static int initialised = 3;

static long contents(const char *path) {
    int file = open(path, O_RDONLY);
    long got, size = 0;
    if (file < 0) return -1;
    while ((got = read(file, data + size, sizeof data - 1 - size)) > 0) size += got;
    data[size] = 0;
    close(file);
    return size;
}

static void executable(const char *name) {
    char link[4096] = "", *real = realpath(name, NULL);
    struct stat one, other;
    long size = readlink("/proc/self/exe", link, sizeof link - 1);
    printf("exe: %d %d", size == (long)strlen(real), strcmp(link, real) == 0);
    stat("/proc/self/exe", &one), stat(name, &other);
    printf(" %d", one.st_ino == other.st_ino && one.st_dev == other.st_dev);
    int file = open("/proc/self/exe", O_RDONLY);
    Elf64_Ehdr header;
    printf(" %d", read(file, &header, sizeof header) == sizeof header && memcmp(header.e_ident, ELFMAG, 4) == 0);
#ifdef __alpha__
    printf(" %d\n", header.e_machine == 0x9026);
#elif defined __riscv
    printf(" %d\n", header.e_machine == EM_RISCV);
#else
    printf(" %d\n", header.e_machine == EM_X86_64);
#endif
    close(file);
    char path[64];
    sprintf(path, "/proc/%d/exe", getpid());
    memset(link, 0, sizeof link);
    printf("by number: %d", readlink(path, link, sizeof link - 1) == size);
    printf(" %d\n", strcmp(link, real) == 0);
}

static void strings(char **arguments) {
    long size = contents("/proc/self/cmdline");
    char *at = data;
    int same = 1;
    for (int i = 0; arguments[i]; at += strlen(at) + 1, i++) same &= strcmp(at, arguments[i]) == 0;
    printf("cmdline: %d %d\n", same, at == data + size);
    size = contents("/proc/self/environ");
    at = data;
    same = 1;
    for (int i = 0; environ[i]; at += strlen(at) + 1, i++) same &= strcmp(at, environ[i]) == 0;
    printf("environ: %d %d\n", same, at == data + size);
    contents("/proc/self/comm");
    printf("comm: %s", data);
}

static void auxiliary(void) {
    long size = contents("/proc/self/auxv"), same = 0, count = 0;
    uint64_t *entry = (uint64_t *)data;
    const uint64_t kinds[] = {AT_PAGESZ, AT_ENTRY, AT_PHDR, AT_PHNUM, AT_BASE, AT_RANDOM, AT_UID};
    for (int i = 0; i < 7; i++)
        for (long e = 0; e < size / 16 && entry[2 * e] != AT_NULL; e++)
            if (entry[2 * e] == kinds[i]) count++, same += entry[2 * e + 1] == getauxval(kinds[i]);
    printf("auxv: %d %ld %ld\n", size % 16 == 0, count, same);
    printf("page size: %d\n", getauxval(AT_PAGESZ) == (unsigned long)sysconf(_SC_PAGESIZE));
}

/* The mapping that holds an address, as /proc/self/maps has it. */
static int mapping(const void *address, char *protection, char *name) {
    FILE *maps = fopen("/proc/self/maps", "r");
    char line[5000];
    while (fgets(line, sizeof line, maps)) {
        unsigned long start, end;
        name[0] = 0;
        sscanf(line, "%lx-%lx %4s %*s %*s %*s %4000[^\n]", &start, &end, protection, name);
        if ((unsigned long)address >= start && (unsigned long)address < end) {
            fclose(maps);
            return 1;
        }
    }
    fclose(maps);
    return 0;
}

static void maps(const char *program) {
    char protection[8], name[4096], *real = realpath(program, NULL), local;
    int file = open("mapped", O_CREAT | O_RDWR, 0600);
    if (ftruncate(file, 65536)) abort();
    char *shared = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    char *none = mmap(NULL, 65536, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char *heap = sbrk(65536);
    const struct { const char *what; const void *address; } places[] = {
        {"code", (void *)contents}, {"data", &initialised}, {"stack", &local}, {"heap", heap},
        {"library", (void *)getauxval(AT_BASE)}, {"file", shared}, {"nothing", none}};
    for (unsigned i = 0; i < sizeof places / sizeof *places; i++) {
        int found = mapping(places[i].address, protection, name);
        const char *kind = strcmp(name, real) == 0 ? "the program" : name[0] == '/' ? "a file" : name;
        printf("%s: %d %s, %s\n", places[i].what, found, i == 4 ? "" : protection, kind);
    }
    munmap(none, 65536);
    printf("unmapped: %d\n", mapping(none, protection, name));
    /* In ascending order, and nothing of what runs the program. */
    FILE *lines = fopen("/proc/self/maps", "r");
    unsigned long last = 0, start, end;
    int ordered = 1, foreign = 0;
    char line[5000];
    while (fgets(line, sizeof line, lines)) {
        sscanf(line, "%lx-%lx", &start, &end);
        ordered &= start >= last && end > start;
        last = end;
        foreign += strstr(line, "examples/run") || strstr(line, "pathlength");
    }
    printf("ordered: %d, foreign %d\n", ordered, foreign);
}

static int compare(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }

static void descriptors(void) {
    int numbers[100], count = 0, pipes[2];
    char path[64], link[4096] = "";
    struct dirent *entry;
    if (pipe(pipes)) abort();
    dup2(pipes[1], 40);
    DIR *directory = opendir("/proc/self/fd");
    while ((entry = readdir(directory)) && count < 100)
        if (entry->d_name[0] != '.') numbers[count++] = atoi(entry->d_name);
    closedir(directory);
    qsort(numbers, count, sizeof *numbers, compare);
    printf("descriptors:");
    for (int i = 0; i < count; i++) printf(" %d", numbers[i]);
    sprintf(path, "/proc/self/fd/%d", 40);
    printf(", %d %.5s\n", readlink(path, link, sizeof link - 1) > 0, link);
}

static void status(void) {
    char name[64] = "", state = 0, *at;
    int process = 0, threads = 0, parent = 0;
    contents("/proc/self/status");
    if ((at = strstr(data, "Name:"))) sscanf(at, "Name: %63s", name);
    if ((at = strstr(data, "State:"))) sscanf(at, "State: %c", &state);
    if ((at = strstr(data, "\nPid:"))) sscanf(at, " Pid: %d", &process);
    if ((at = strstr(data, "PPid:"))) sscanf(at, "PPid: %d", &parent);
    if ((at = strstr(data, "Threads:"))) sscanf(at, "Threads: %d", &threads);
    printf("status: %s %c %d %d %d\n", name, state, process == getpid(), parent == getppid(), threads);
    contents("/proc/self/stat");
    printf("stat: %d", atoi(data) == getpid());
    at = strrchr(data, ')');
    printf(" %.*s\n", (int)(at ? at - strchr(data, '(') + 1 : 0), strchr(data, '('));
    char directory[4096] = "", link[4096] = "";
    long size = getcwd(directory, sizeof directory) ? (long)strlen(directory) : -1;
    printf("cwd: %d\n", readlink("/proc/self/cwd", link, sizeof link - 1) == size);
    DIR *tasks = opendir("/proc/self/task");
    int count = 0;
    for (struct dirent *entry; (entry = readdir(tasks));) count += entry->d_name[0] != '.';
    printf("tasks: %d\n", count);
}

/* What is found by going up and up is what is called the root, as getcwd expects where a path is too long. */
static void root(void) {
    struct stat above, here, named;
    int folder = open(".", O_RDONLY | O_DIRECTORY);
    do {
        int parent = openat(folder, "..", O_RDONLY | O_DIRECTORY);
        fstat(folder, &here);
        fstat(parent, &above);
        close(folder);
        folder = parent;
    } while (here.st_ino != above.st_ino || here.st_dev != above.st_dev);
    const char *names[] = {"/", "//", "/.", "/./../"};
    for (unsigned i = 0; i < sizeof names / sizeof *names; i++)
        printf("root: %d\n", stat(names[i], &named) == 0 && named.st_ino == here.st_ino && named.st_dev == here.st_dev);
}

/* The executable's name and file, by whatever leads to the link. */
static void links(const char *name) {
    char path[64], *real = realpath(name, NULL);
    struct stat one, other;
    stat(name, &other);
    symlink("/proc/self", "/tmp/feature-self-link");
    sprintf(path, "/proc/%d/task/%d/exe", getpid(), getpid());
    const char *absolute[] = {"/proc/../proc/self/./exe", "//proc//self//exe", "/proc/thread-self/exe", path,
                              "/proc/self/root/proc/self/exe", "/tmp/feature-self-link/exe"};
    int folders[] = {AT_FDCWD, open("/proc/self", O_RDONLY | O_DIRECTORY), open("/proc", O_PATH)};
    for (int i = 0; i < 8; i++) {
        const char *at = i < 6 ? absolute[i] : i == 6 ? "exe" : "self/exe";
        int folder = folders[i < 6 ? 0 : i - 5];
        char link[4096] = "";
        struct statx extended;
        readlinkat(folder, at, link, sizeof link - 1);
        int file = openat(folder, at, O_RDONLY);
        printf("link %d: %d %d", i, strcmp(link, real) == 0, fstat(file, &one) == 0 && one.st_ino == other.st_ino);
        printf(" %d", fstatat(folder, at, &one, 0) == 0 && one.st_ino == other.st_ino);
        printf(" %d", statx(folder, at, 0, STATX_INO, &extended) == 0 && extended.stx_ino == other.st_ino);
        printf(" %d", fstatat(folder, at, &one, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(one.st_mode));
        printf(" %d %d\n", faccessat(folder, at, X_OK, 0), openat(folder, at, O_RDONLY | O_NOFOLLOW));
        close(file);
    }
    unlink("/tmp/feature-self-link");
    char link[4096] = "";
    int file = open("/proc/self/exe", O_PATH | O_NOFOLLOW);
    readlinkat(file, "", link, sizeof link - 1);
    printf("the link itself: %d\n", strcmp(link, real) == 0);
    close(file), close(folders[1]), close(folders[2]);
    fflush(stdout);
    if (fork() == 0) {
        sprintf(path, "/proc/%d/exe", getppid());
        memset(link, 0, sizeof link);
        readlink(path, link, sizeof link - 1);
        printf("the parent's: %d\n", strcmp(link, real) == 0);
        fflush(stdout);
        _exit(0);
    }
    wait(NULL);
}

static void flags_of(const char *what, int file) {
    char path[64], *at;
    unsigned shown = 0;
    for (int own = 0; own < 2; own++) {
        sprintf(path, own ? "/proc/self/fdinfo/%d" : "/proc/%d/fdinfo/%d", own ? file : getpid(), file);
        contents(path);
        if ((at = strstr(data, "flags:"))) shown = strtoul(at + 6, NULL, 8);
        unsigned set = fcntl(file, F_GETFL) | (fcntl(file, F_GETFD) ? O_CLOEXEC : 0);
        printf("flags of %s: %d\n", what, (shown & ~0100000 & ~0400000) == (set & ~0100000 & ~0400000));
    }
    close(file);
}

/* Executes itself by a descriptor that execve closes, of a file with or without a name. */
static void executed(const char *what, const char *source, int way) {
    static char bytes[1 << 20];
    fflush(stdout);
    if (fork() == 0) {
        char path[64], *arguments[] = {"by descriptor", "executed", NULL}, *none[] = {NULL};
        int original = open(source, O_RDONLY | O_CLOEXEC), file = original;
        if (way > 0) {
            int copy = way == 1 ? memfd_create("copy", MFD_CLOEXEC) : open("/tmp/feature-self-copy", O_CREAT | O_RDWR, 0700);
            for (long got; (got = read(original, bytes, sizeof bytes)) > 0;) write(copy, bytes, got);
            file = copy;
            if (way == 2) {
                file = open("/tmp/feature-self-copy", O_RDONLY | O_CLOEXEC);
                close(copy), unlink("/tmp/feature-self-copy");
            }
        }
        sprintf(path, "/proc/self/fd/%d", file);
        if (what) execve(path, arguments, none);
        fexecve(file, arguments, none);
        _exit(98);
    }
    int result;
    wait(&result);
    printf("executed %d: %x\n", way, result);
}

int main(int argc, char **argv) {
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (argc == 1) {
        /* Once more, with arguments to find. */
        fflush(stdout);
        pid_t child = fork();
        int result;
        if (child == 0) {
            execve(argv[0], (char *[]){argv[0], "two words", "", "last", NULL}, (char *[]){"COLOUR=blue", "EMPTY=", NULL});
            _exit(97);
        }
        waitpid(child, &result, 0);
        return WEXITSTATUS(result);
    }
    if (strcmp(argv[1], "executed") == 0) {
        char link[4096] = "";
        readlink("/proc/self/exe", link, sizeof link - 1);
        return strstr(link, "deleted") ? 6 : 5;
    }
    executable(argv[0]);
    links(argv[0]);
    strings(argv);
    auxiliary();
    maps(argv[0]);
    descriptors();
    status();
    root();
    flags_of("appending", open("/dev/null", O_RDWR | O_APPEND));
    flags_of("not waiting", open("/dev/null", O_RDONLY | O_NONBLOCK | O_CLOEXEC));
    flags_of("a folder", open("/tmp", O_RDONLY | O_DIRECTORY));
    flags_of("a path", open("/tmp", O_PATH));
    flags_of("a socket", socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0));
    for (int way = 0; way < 6; way++) executed(way % 2 ? "path" : NULL, argv[0], way / 2);
    return 0;
}
