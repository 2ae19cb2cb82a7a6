/* The first process of the guest: prepares the system, starts programs in the background and one that it waits for, passes on
 * what that writes, and leaves its status, output and files on a disk for the host. The job is the file /.job, as
 * crates/system/src/job.rs writes it: strings that end with a zero byte, each after a letter for its kind. */
#define _GNU_SOURCE
#include <errno.h>
#include <dirent.h>
#include <fcntl.h>
#include <grp.h>
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
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "network.h"

/* Instructions that do nothing, by which the recorder finds the program's beginning and end. */
#define BEGIN __asm__ volatile("lda $31,0x504c($31)" ::: "memory")
#define END __asm__ volatile("lda $31,0x504d($31)" ::: "memory")

enum { WORDS = 4096, COMMANDS = 64, PATH = 4096 };
/* Bytes of each stream of output that are passed on while the program runs, as a serial line is slow. */
enum { PASSED = 1 << 18 };
struct command { char *program, *arguments[WORDS + 1]; int count; };
static struct command commands[COMMANDS];
static pid_t background[COMMANDS];
static char *folder, *disk, *input = "/dev/null", *network, *offloads, *environment[WORDS + 1], *outputs[WORDS], *awaited[WORDS], *awaited_text[WORDS];
static int command_count, environment_count, output_count, awaited_count, user;
static int to_host;

static void power_off(void) {
    fflush(stdout);
    tcdrain(1);
    sync();
    reboot(RB_POWER_OFF);
    for (;;) pause();
}

void die(const char *what) {
    printf("init: %s: %s\n", what, strerror(errno));
    power_off();
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
        struct command *last = &commands[command_count ? command_count - 1 : 0];
        if (*word == 'p' && command_count < COMMANDS) commands[command_count++].program = value;
        else if (*word == 'a' && last->count < WORDS) last->arguments[last->count++] = value;
        else if (*word == 'd') folder = value;
        else if (*word == 'k') disk = value;
        else if (*word == 'i') input = value;
        else if (*word == 'u') user = atoi(value);
        else if (*word == 'n') network = value;
        else if (*word == 'f') offloads = value;
        else if (*word == 'w' && awaited_count < WORDS) awaited[awaited_count++] = value;
        else if (*word == 'x' && awaited_count) awaited_text[awaited_count - 1] = value;
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

/* Copies what is in a folder to another, with owners and permissions. */
static void copy_folder(const char *from, const char *to) {
    static char part[1 << 16];
    char source[PATH], target[PATH];
    DIR *entries = opendir(from);
    if (!entries) die(from);
    for (struct dirent *entry; (entry = readdir(entries));) {
        if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..")) continue;
        struct stat status;
        snprintf(source, PATH, "%s/%s", from, entry->d_name), snprintf(target, PATH, "%s/%s", to, entry->d_name);
        if (lstat(source, &status)) die(source);
        if (S_ISLNK(status.st_mode)) {
            ssize_t length = readlink(source, part, sizeof part - 1);
            part[length < 0 ? 0 : length] = 0;
            if (symlink(part, target)) die(target);
            continue;
        }
        if (S_ISDIR(status.st_mode)) {
            if (mkdir(target, 0700)) die(target);
            copy_folder(source, target);
        } else {
            int in = open(source, O_RDONLY), out = open(target, O_WRONLY | O_CREAT, 0600);
            if (in < 0 || out < 0) die(target);
            for (ssize_t n; (n = read(in, part, sizeof part)) > 0;)
                if (write(out, part, n) != n) die(target);
            close(in), close(out);
        }
        if (chown(target, status.st_uid, status.st_gid) || chmod(target, status.st_mode & 07777)) die(target);
    }
    closedir(entries);
}

/* Mounts the disk where the job wants it, with the files that were put there; nothing of it is in memory then. */
static void mount_disk(void) {
    struct stat status;
    if (!disk) return;
    mkdir("/.disk", 0700);
    if (mount("/dev/vdb", "/.disk", "ext4", 0, NULL) || stat(disk, &status)) die("/dev/vdb");
    copy_folder(disk, "/.disk");
    if (chown("/.disk", status.st_uid, status.st_gid) || chmod("/.disk", status.st_mode & 07777)) die("/.disk");
    if (mount("/.disk", disk, NULL, MS_MOVE, NULL)) die(disk);
    sync();
    int caches = open("/proc/sys/vm/drop_caches", O_WRONLY);
    if (caches < 0 || write(caches, "3", 1) != 1) die("drop_caches");
    close(caches);
}

/* What the program wrote since the last call goes to the second serial line: a letter, the number of bytes, the bytes. */
static void pass_on(int line, const char *path, char letter, off_t *passed) {
    static char part[1 << 12];
    int file = open(path, O_RDONLY);
    for (ssize_t n; file >= 0 && *passed < PASSED && (n = pread(file, part, sizeof part, *passed)) > 0; *passed += n) {
        uint32_t length = n;
        char head[5] = {letter, length, length >> 8, length >> 16, length >> 24};
        if (write(line, head, sizeof head) != sizeof head || write(line, part, n) != n) break;
    }
    close(file);
}

static int serial_line(void) {
    struct termios raw;
    int line = open("/dev/ttyS1", O_RDWR | O_NOCTTY);
    if (line < 0 || tcgetattr(line, &raw)) die("/dev/ttyS1");
    cfmakeraw(&raw);
    if (tcsetattr(line, TCSANOW, &raw)) die("/dev/ttyS1");
    return line;
}

/* Starts a command; the last one is the program. */
static pid_t start(int number) {
    int is_program = number + 1 == command_count;
    pid_t child = fork();
    if (child < 0) die("fork");
    if (child) return child;
    if (!is_program) enter_peer_namespace();
    struct command *command = &commands[number];
    int output = open(is_program ? "/.stdout" : "/.stderr", O_WRONLY | O_CREAT | O_APPEND, 0666);
    int errors = open("/.stderr", O_WRONLY | O_CREAT | O_APPEND, 0666), in = open(is_program ? input : "/dev/null", O_RDONLY);
    if (in < 0) die(input);
    dup2(in, 0), dup2(output, 1), dup2(errors, 2);
    for (int i = 3; i < 16; i++) close(i);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    if (chdir(folder)) die(folder);
    setsid();
    if (user && (setgroups(0, NULL) || setgid(user) || setuid(user))) die("setuid");
    if (is_program) BEGIN;
    execve(command->program, command->arguments, environment);
    dprintf(2, "%s: %s\n", command->program, strerror(errno));
    _exit(errno == ENOENT ? 127 : 126);
}

/* Whether a file is there and has a text in its first part; any text if there is none. */
static int has_text(const char *path, const char *text) {
    static char part[1 << 16];
    if (!text) return !access(path, F_OK);
    int file = open(path, O_RDONLY);
    ssize_t length = file < 0 ? -1 : read(file, part, sizeof part);
    close(file);
    return length > 0 && memmem(part, length, text, strlen(text));
}

/* Ends the guest if a program in the background has failed; what programs wrote is the reason. */
static void check_background(void) {
    int status, number = 0;
    pid_t ended = waitpid(-1, &status, WNOHANG);
    while (number + 1 < command_count && background[number] != ended) number++;
    if (ended <= 0 || !status || number + 1 == command_count) return;
    size_t length;
    printf("%sinit: %s in the background ended with %s %d\n", contents("/.stderr", &length), commands[number].program,
           WIFSIGNALED(status) ? "signal" : "status", WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
    power_off();
}

/* Waits until the files are there that programs in the background make. */
static void await_files(void) {
    for (int i = 0, pauses = 0; i < awaited_count; pauses++) {
        if (has_text(awaited[i], awaited_text[i])) {
            i++;
            continue;
        }
        check_background();
        errno = ETIMEDOUT;
        if (pauses == 2400) die(awaited[i]);
        usleep(50000);
    }
}

/* Works until the clock has ticked, so that the program sees the next ticks at the same instructions in every run: how long the kernel
 * waited for devices before depends on the host. */
static void await_tick(void) {
    struct timespec before, now;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &before);
    do clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    while (now.tv_sec == before.tv_sec && now.tv_nsec == before.tv_nsec);
}

/* Waits for the program, and passes its output on until then. */
static int await_program(pid_t child, int line) {
    sigset_t ends;
    sigemptyset(&ends);
    sigaddset(&ends, SIGCHLD);
    off_t output = 0, errors = 0;
    int status;
    for (;;) {
        for (pid_t ended; (ended = waitpid(-1, &status, WNOHANG)) > 0;)
            if (ended == child) return status;
        pass_on(line, "/.stdout", 'o', &output);
        pass_on(line, "/.stderr", 'e', &errors);
        sigtimedwait(&ends, NULL, &(struct timespec){.tv_nsec = 200000000});
    }
}

int main(void) {
    prepare();
    read_job();
    mount_disk();
    if (network) prepare_network(network, offloads);
    int line = serial_line();
    /* A signal that is blocked is not lost between looking and waiting. */
    sigset_t ends;
    sigemptyset(&ends);
    sigaddset(&ends, SIGCHLD);
    sigprocmask(SIG_BLOCK, &ends, NULL);
    if (!command_count) die("/.job");
    for (int number = 0; number + 1 < command_count; number++) background[number] = start(number);
    await_files();
    await_tick();
    int status = await_program(start(command_count - 1), line);
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
    power_off();
}
