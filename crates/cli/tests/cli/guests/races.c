/* A name that another process exchanges while it is opened: the program gets one file or the other, and never one that it
 * did not open itself, such as those of its emulator, or of its child's, beyond the limit of descriptors. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { NUMBERS = 64, OPENS = 5000 };
static char folder[] = "/tmp/races-XXXXXX";
static unsigned long first;

/* The link leads to a file, to an own descriptor, and to one of those that the program or its child does not have. */
static void exchange(void) {
    int child = getpid();
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (unsigned long i = 0;; i++) {
        char name[64], process[16] = "self";
        if (i / NUMBERS % 2) snprintf(process, sizeof process, "%d", child);
        snprintf(name, sizeof name, "/proc/%s/fd/%lu", process, first + i % NUMBERS);
        symlink(name, "theirs"), rename("theirs", "link");
        symlink(i % 2 ? "file" : "/proc/self/fd/0", "own"), rename("own", "link");
    }
}

/* A folder, a device and the pipes of the output cannot be truncated: whatever can is not the program's. */
static void exchange_for_truncate(void) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (unsigned long i = 0;; i++) {
        char name[64];
        snprintf(name, sizeof name, "/proc/self/fd/%lu", first + i % NUMBERS);
        symlink(name, "theirs"), rename("theirs", "link");
        symlink(i % 2 ? "/tmp" : "/dev/null", "own"), rename("own", "link");
    }
}

static pid_t start(void (*what)(void)) {
    pid_t child = fork();
    if (child == 0) what();
    return child;
}

static void end(pid_t child) {
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
}

static void truncates(void) {
    int truncated = 0, refused = 0;
    for (int i = 0; i < OPENS; i++) {
        if (truncate("link", 0) == 0) truncated++;
        else refused += errno == EISDIR || errno == EINVAL || errno == ETXTBSY;
    }
    printf("truncate: %d, others %d\n", refused > 0, truncated);
}

static void opens(const char *how, int flags) {
    /* The command has its output in common with the program. */
    struct stat found, known[6];
    int opened = 0, missing = 0, others = 0;
    stat("file", &known[0]), fstat(0, &known[1]), stat("/proc", &known[2]), stat("/proc/self/exe", &known[3]);
    fstat(1, &known[4]), fstat(2, &known[5]);
    for (int i = 0; i < OPENS; i++) {
        int descriptor = open("link", flags);
        if (descriptor < 0) {
            missing++;
            continue;
        }
        fstat(descriptor, &found);
        int one = 0;
        while (one < 6 && (known[one].st_ino != found.st_ino || known[one].st_dev != found.st_dev)) one++;
        if (one < 6) opened++;
        else others++;
        close(descriptor);
    }
    printf("%s: %d %d, others %d\n", how, opened > 0, opened + missing + others == OPENS, others);
}

static void *nothing(void *unused) {
    pause();
    return unused;
}

int main(void) {
    struct rlimit limit;
    pthread_t thread;
    setvbuf(stdout, NULL, _IOLBF, 0);
    getrlimit(RLIMIT_NOFILE, &limit);
    first = limit.rlim_max;
    chdir(mkdtemp(folder));
    close(0);
    open("input", O_RDWR | O_CREAT, 0600);
    close(open("file", O_RDWR | O_CREAT, 0600));
    symlink("file", "link");
    pid_t child = start(exchange);
    opens("read", O_RDONLY);
    opens("by path", O_PATH);
    pthread_create(&thread, NULL, nothing, NULL);
    opens("with threads", O_RDONLY);
    opens("by path with threads", O_PATH);
    end(child);
    /* The child may have left one of them. */
    unlink("own"), unlink("theirs");
    symlink("/tmp", "own"), rename("own", "link");
    child = start(exchange_for_truncate);
    truncates();
    end(child);
    const char *all[] = {"file", "link", "theirs", "own", "input"};
    for (int i = 0; i < 5; i++) unlink(all[i]);
    chdir("/"), rmdir(folder);
    return 0;
}
