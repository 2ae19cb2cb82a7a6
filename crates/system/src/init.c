/* The first process of the guest: prepares the system, runs one program, and leaves its status, output and files on the
 * disk for the host. The job is the file /.job, as crates/system/src/job.rs writes it: strings that end with a zero byte,
 * each after a letter for its kind. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/random.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Instructions that do nothing, by which the recorder finds the program's beginning and end. */
#define BEGIN __asm__ volatile("lda $31,0x504c($31)" ::: "memory")
#define END __asm__ volatile("lda $31,0x504d($31)" ::: "memory")

enum { WORDS = 4096 };
static char *program, *folder, *arguments[WORDS + 1], *environment[WORDS + 1], *outputs[WORDS];
static int argument_count, environment_count, output_count;
static int to_host;

static void die(const char *what) {
    printf("init: %s: %s\n", what, strerror(errno));
    fflush(stdout);
    sync();
    reboot(RB_POWER_OFF);
    for (;;) pause();
}

static char *contents(const char *path, size_t *length) {
    int file = open(path, O_RDONLY);
    struct stat status;
    if (file < 0 || fstat(file, &status)) die(path);
    char *bytes = malloc(status.st_size + 1);
    size_t filled = 0;
    for (ssize_t n; (n = read(file, bytes + filled, status.st_size - filled)) > 0;) filled += n;
    close(file);
    bytes[filled] = 0;
    *length = filled;
    return bytes;
}

static void read_job(void) {
    size_t length;
    char *job = contents("/.job", &length);
    for (char *word = job; word < job + length; word += strlen(word) + 1) {
        char *value = word + 1;
        if (*word == 'p') program = value;
        else if (*word == 'd') folder = value;
        else if (*word == 'a' && argument_count < WORDS) arguments[argument_count++] = value;
        else if (*word == 'e' && environment_count < WORDS) environment[environment_count++] = value;
        else if (*word == 'o' && output_count < WORDS) outputs[output_count++] = value;
        else if (*word == 't') clock_settime(CLOCK_REALTIME, &(struct timespec){.tv_sec = strtoll(value, NULL, 10)});
    }
}

static void prepare(void) {
    mount("proc", "/proc", "proc", 0, NULL);
    mount("sysfs", "/sys", "sysfs", 0, NULL);
    mount("devtmpfs", "/dev", "devtmpfs", 0, NULL);
    mkdir("/dev/shm", 01777);
    mount("tmpfs", "/dev/shm", "tmpfs", 0, NULL);
    int console = open("/dev/console", O_RDWR);
    for (int i = 0; i < 3; i++) dup2(console, i);
    /* Images lie at the same addresses in every run. */
    int random = open("/proc/sys/kernel/randomize_va_space", O_WRONLY);
    if (random >= 0 && write(random, "0", 1) != 1) die("randomize_va_space");
    close(random);
    /* The kernel has its entropy now, the same in every run, and does not collect it in the program's first getrandom. */
    struct { struct rand_pool_info head; uint32_t seed[16]; } entropy = {{.entropy_count = 512, .buf_size = 64}, {1}};
    int pool = open("/dev/random", O_WRONLY);
    if (pool < 0 || ioctl(pool, RNDADDENTROPY, &entropy)) die("/dev/random");
    close(pool);
}

static void put(const void *bytes, size_t length) {
    for (const char *at = bytes; length;) {
        ssize_t n = write(to_host, at, length);
        if (n <= 0) die("/dev/vda");
        at += n, length -= n;
    }
}

static void put_number(uint64_t number) { put(&number, sizeof number); }

/* A file: the lengths of its name and its contents, both; a missing one has the length -1. */
static void put_file(const char *path) {
    static char part[1 << 16];
    int file = open(path, O_RDONLY);
    struct stat status;
    put_number(strlen(path));
    put(path, strlen(path));
    if (file < 0 || fstat(file, &status) || !S_ISREG(status.st_mode)) {
        put_number(-1);
    } else {
        put_number(status.st_size);
        uint64_t left = status.st_size;
        for (ssize_t n; left && (n = read(file, part, left < sizeof part ? left : sizeof part)) > 0; left -= n) put(part, n);
        /* A file that has become shorter. */
        memset(part, 0, sizeof part);
        for (; left; left -= left < sizeof part ? left : sizeof part) put(part, left < sizeof part ? left : sizeof part);
    }
    if (file >= 0) close(file);
}

static void run(void) {
    int input = open("/dev/null", O_RDONLY), output = open("/.stdout", O_WRONLY | O_CREAT | O_APPEND, 0666);
    int errors = open("/.stderr", O_WRONLY | O_CREAT | O_APPEND, 0666);
    dup2(input, 0), dup2(output, 1), dup2(errors, 2);
    for (int i = 3; i < 16; i++) close(i);
    if (chdir(folder)) die(folder);
    setsid();
    BEGIN;
    execve(program, arguments, environment);
    dprintf(2, "%s: %s\n", program, strerror(errno));
    _exit(errno == ENOENT ? 127 : 126);
}

int main(void) {
    prepare();
    read_job();
    pid_t child = fork();
    if (child < 0) die("fork");
    if (child == 0) run();
    int status = 0;
    for (pid_t ended; (ended = wait(&status)) != child;)
        if (ended < 0 && errno != EINTR) die("wait");
    END;
    kill(-1, SIGKILL);
    to_host = open("/dev/vda", O_WRONLY);
    if (to_host < 0) die("/dev/vda");
    put("PLRESULT", 8);
    put_number(status);
    put_number(2 + output_count);
    put_file("/.stdout");
    put_file("/.stderr");
    for (int i = 0; i < output_count; i++) put_file(outputs[i]);
    put("PLRESULT", 8);
    if (fsync(to_host)) die("/dev/vda");
    sync();
    reboot(RB_POWER_OFF);
    for (;;) pause();
}
