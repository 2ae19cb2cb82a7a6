/* Opening files while another thread runs: the numbers of descriptors, new files, links to nowhere, folders, pipes, limits. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static int first;

/* The number above the first one, or the error. */
static void opened(const char *what, int file) {
    if (file < 0) printf("%s: %s\n", what, strerror(errno));
    else printf("%s: %d %d\n", what, file - first, fcntl(file, F_GETFD));
}

static void files(void) {
    char path[] = "/tmp/thread-files-XXXXXX", text[8] = "";
    struct stat status;
    first = dup(0);
    close(first);
    chdir(mkdtemp(path));
    int file;
    opened("missing", open("file", O_RDONLY));
    opened("new", file = open("file", O_CREAT | O_RDWR | O_CLOEXEC, 0640));
    printf("mode %o, written %zd\n", fstat(file, &status) == 0 ? status.st_mode : 0, write(file, "text", 4));
    close(file);
    opened("exclusive", open("file", O_CREAT | O_EXCL | O_RDWR, 0600));
    opened("again", file = open("file", O_CREAT | O_RDONLY, 0600));
    printf("read %zd %s, %zd\n", read(file, text, 4), text, write(file, "x", 1));
    opened("next", open("file", O_WRONLY | O_APPEND));
    close(file), close(file + 1);
    symlink("target", "link"), symlink("loop", "loop"), symlink("link", "twice"), symlink("none/file", "nowhere");
    opened("through a link", file = open("twice", O_CREAT | O_WRONLY, 0600)), close(file);
    printf("made: %d\n", access("target", F_OK));
    opened("a link", open("link", O_RDONLY | O_NOFOLLOW));
    opened("a loop", open("loop", O_CREAT | O_WRONLY, 0600));
    opened("no folder", open("nowhere", O_CREAT | O_WRONLY, 0600));
    opened("folder", file = open(".", O_RDONLY | O_DIRECTORY)), close(file);
    opened("folder to write", open(".", O_WRONLY));
    opened("new folder", open(".", O_CREAT | O_RDONLY, 0600));
    opened("no folder but a file", open("file", O_RDONLY | O_DIRECTORY));
    opened("emptied", file = open("file", O_WRONLY | O_TRUNC)), close(file);
    printf("size %ld\n", stat("file", &status) == 0 ? (long)status.st_size : -1);
    opened("/proc [not qemu]", file = open("/proc/self/maps", O_RDONLY | O_CLOEXEC)), close(file);
    opened("itself", file = open("/proc/self/exe", O_RDONLY)), close(file);
    mkfifo("pipe", 0600);
    opened("pipe", file = open("pipe", O_RDONLY | O_NONBLOCK));
    opened("other end", open("pipe", O_WRONLY)), close(file + 1), close(file);
    opened("no reader", open("pipe", O_WRONLY | O_NONBLOCK));
    opened("by path", file = open("file", O_PATH)), close(file);
    chmod("file", 0);
    struct rlimit before, one;
    getrlimit(RLIMIT_NOFILE, &before);
    one = before, one.rlim_cur = first + 1;
    setrlimit(RLIMIT_NOFILE, &one);
    opened("the last", file = open("target", O_RDONLY));
    opened("too many", open("target", O_RDONLY));
    close(file);
    setrlimit(RLIMIT_NOFILE, &before);
    const char *all[] = {"file", "link", "loop", "twice", "nowhere", "target", "pipe"};
    for (int i = 0; i < 7; i++) unlink(all[i]);
    chdir("/"), rmdir(path);
}

static pthread_mutex_t until = PTHREAD_MUTEX_INITIALIZER;

static void *wait_for_end(void *unused) {
    pthread_mutex_lock(&until);
    return unused;
}

int main(void) {
    setvbuf(stdout, NULL, _IOLBF, 0);
    files();
    pthread_t other;
    pthread_mutex_lock(&until);
    pthread_create(&other, NULL, wait_for_end, NULL);
    files();
    pthread_mutex_unlock(&until);
    pthread_join(other, NULL);
    return 0;
}
