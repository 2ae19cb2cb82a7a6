/* Files, folders, pipes and mapped files, and the errors of calls that fail. Works in the current folder. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

/* Numbers of errors differ between systems, their texts do not. */
#define SHOW(CALL)                                                                    \
    do {                                                                              \
        errno = 0;                                                                    \
        long result = (long)(CALL);                                                   \
        printf("%s = %ld%s%s\n", #CALL, result, result == -1 ? " " : "", result == -1 ? strerror(errno) : ""); \
    } while (0)

static int by_name(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

static void list(const char *path) {
    DIR *folder = opendir(path);
    char *names[64];
    int count = 0;
    for (struct dirent *entry; (entry = readdir(folder)) != NULL;)
        if (count < 64) names[count++] = strdup(entry->d_name);
    closedir(folder);
    qsort(names, (size_t)count, sizeof *names, by_name);
    printf("%s:", path);
    for (int i = 0; i < count; i++) printf(" %s", names[i]), free(names[i]);
    puts("");
}

static void reading_and_writing(void) {
    char buffer[64] = "";
    struct stat status;
    int f = open("one", O_RDWR | O_CREAT | O_EXCL, 0640);
    SHOW(write(f, "hello, world\n", 13));
    SHOW(lseek(f, 7, SEEK_SET));
    SHOW(read(f, buffer, sizeof buffer));
    SHOW(strncmp(buffer, "world\n", 6));
    SHOW(pwrite(f, "W", 1, 7));
    SHOW(pread(f, buffer, 5, 7));
    printf("%.5s\n", buffer);
    SHOW(lseek(f, 100, SEEK_END));
    SHOW(lseek(f, -1, SEEK_SET));
    SHOW(fstat(f, &status));
    printf("%o %ld %d %d\n", status.st_mode & 07777, (long)status.st_size, (int)status.st_nlink, S_ISREG(status.st_mode));
    SHOW(ftruncate(f, 5));
    SHOW(lseek(f, 0, SEEK_END));
    struct iovec parts[2] = {{"ab", 2}, {"cde", 3}};
    SHOW(writev(f, parts, 2));
    SHOW(fcntl(f, F_GETFL) & (O_ACCMODE | O_APPEND));
    SHOW(fcntl(f, F_SETFL, O_APPEND));
    SHOW((fcntl(f, F_GETFL) & O_APPEND) == O_APPEND);
    SHOW(fcntl(f, F_SETFD, FD_CLOEXEC));
    SHOW(fcntl(f, F_GETFD));
    SHOW(fsync(f));
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 1, .l_len = 2};
    SHOW(fcntl(f, F_SETLK, &lock));
    SHOW(close(f));
    SHOW(close(f));
    SHOW(read(f, buffer, 1));
}

static void names(void) {
    char buffer[64] = "";
    struct stat status;
    SHOW(mkdir("folder", 0755));
    SHOW(mkdir("folder", 0755));
    SHOW(rename("one", "folder/two"));
    SHOW(link("folder/two", "folder/three"));
    SHOW(symlink("two", "folder/link"));
    SHOW(readlink("folder/link", buffer, sizeof buffer));
    printf("%s\n", buffer);
    SHOW(lstat("folder/link", &status));
    SHOW(S_ISLNK(status.st_mode) != 0);
    SHOW(stat("folder/link", &status));
    printf("%ld %d\n", (long)status.st_size, (int)status.st_nlink);
    SHOW(chmod("folder/two", 0600));
    SHOW(access("folder/two", R_OK | W_OK));
    list("folder");
    SHOW(chdir("folder"));
    SHOW(chdir(".."));
    SHOW(rmdir("folder"));
    SHOW(unlink("folder/link"));
    SHOW(unlink("folder/two"));
    SHOW(unlink("folder/three"));
    SHOW(rmdir("folder"));
    SHOW(stat("folder", &status));
}

static void failures(void) {
    char name[300];
    struct stat status;
    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = 0;
    SHOW(open("missing", O_RDONLY));
    SHOW(open(name, O_RDONLY));
    SHOW(open("/dev/null/x", O_RDONLY));
    SHOW(open(".", O_WRONLY));
    SHOW(symlink("loop", "loop"));
    SHOW(stat("loop", &status));
    SHOW(unlink("loop"));
    SHOW(write(-1, "", 1));
    SHOW(lseek(0, 0, 99));
    SHOW(chdir("missing"));
    SHOW(fcntl(0, 9999));
    SHOW(open((const char *)8, O_RDONLY));
}

static void pipes(void) {
    int ends[2], copy;
    char buffer[16] = "";
    SHOW(pipe(ends));
    copy = dup(ends[1]);
    SHOW(write(copy, "through", 7));
    struct pollfd poller = {.fd = ends[0], .events = POLLIN};
    SHOW(poll(&poller, 1, 0));
    SHOW(poller.revents == POLLIN);
    SHOW(read(ends[0], buffer, sizeof buffer));
    puts(buffer);
    SHOW(poll(&poller, 1, 0));
    SHOW(lseek(ends[0], 0, SEEK_SET));
    SHOW(fcntl(ends[0], F_SETFL, O_NONBLOCK));
    SHOW(read(ends[0], buffer, 1));
    SHOW(dup2(copy, 20));
    SHOW(close(copy) | close(20) | close(ends[1]));
    SHOW(read(ends[0], buffer, 1));
    SHOW(close(ends[0]));
}

static void mapping(void) {
    int f = open("mapped", O_RDWR | O_CREAT | O_TRUNC, 0600);
    SHOW(ftruncate(f, 20000));
    char *shared = mmap(NULL, 20000, PROT_READ | PROT_WRITE, MAP_SHARED, f, 0);
    char *private = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE, f, 8192);
    if (shared == MAP_FAILED || private == MAP_FAILED) puts("not mapped");
    strcpy(shared + 8190, "across pages");
    SHOW(strcmp(private, "ross pages"));
    strcpy(private, "own");
    char buffer[16] = "";
    SHOW(msync(shared, 20000, MS_SYNC));
    SHOW(pread(f, buffer, 12, 8190));
    puts(buffer);
    SHOW(munmap(private, 8192));
    SHOW(mprotect(shared, 8192, PROT_READ));
    SHOW(munmap(shared, 20000));
    SHOW(munmap((void *)1, 8192));
    SHOW(mmap(NULL, 0, PROT_READ, MAP_PRIVATE, f, 0));
    SHOW(close(f));
    SHOW(unlink("mapped"));
}

static void streams(void) {
    FILE *stream = fopen("stream", "w+");
    for (int i = 0; i < 3000; i++) fprintf(stream, "%d\n", i * i);
    fseek(stream, 0, SEEK_SET);
    long sum = 0, value;
    while (fscanf(stream, "%ld", &value) == 1) sum += value;
    printf("%ld %ld\n", sum, ftell(stream));
    fclose(stream);
    SHOW(remove("stream"));
}

int main(void) {
    umask(022);
    reading_and_writing();
    names();
    failures();
    pipes();
    mapping();
    streams();
    return 0;
}
