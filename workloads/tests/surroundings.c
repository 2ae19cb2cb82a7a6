/* flags: -lutil */
/* Terminals, other programs, directory trees, file locks, limits, and /proc. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <glob.h>
#include <poll.h>
#include <pty.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/sysinfo.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

extern char **environ;

/* The result of a call and, if it failed, why. */
static void tell(const char *what, long result) {
    int error = errno;
    printf("%s: %ld %s\n", what, result, result < 0 ? strerror(error) : "");
}

static void terminals(void) {
    int outer, inner, waiting, on = 1;
    struct termios modes = {0}, set = {0};
    tell("openpty", openpty(&outer, &inner, NULL, NULL, NULL));
    tell("tcgetattr", tcgetattr(inner, &modes));
    printf("%d %d %d %d %d %d %d\n", !!(modes.c_lflag & ECHO), !!(modes.c_lflag & ICANON),
           !!(modes.c_oflag & OPOST), (modes.c_cflag & CSIZE) == CS8, modes.c_cc[VINTR], modes.c_cc[VEOF],
           cfgetospeed(&modes) == B38400);
    cfmakeraw(&modes);
    modes.c_cc[VMIN] = 1;
    modes.c_cc[VTIME] = 5;
    modes.c_oflag |= TAB3 | OPOST;
    cfsetspeed(&modes, B115200);
    tell("tcsetattr", tcsetattr(inner, TCSANOW, &modes));
    tcgetattr(inner, &set);
    printf("%d %d %d %d %d %d\n", set.c_iflag == modes.c_iflag, set.c_oflag == modes.c_oflag,
           set.c_cflag == modes.c_cflag, set.c_lflag == modes.c_lflag,
           memcmp(set.c_cc, modes.c_cc, 17) == 0, cfgetospeed(&set) == B115200);
    struct winsize size = {24, 80, 0, 0};
    tell("TIOCSWINSZ", ioctl(outer, TIOCSWINSZ, &size));
    memset(&size, 0, sizeof size);
    tell("TIOCGWINSZ", ioctl(inner, TIOCGWINSZ, &size));
    printf("%d %d %d\n", size.ws_row, size.ws_col, isatty(inner));
    tell("write", write(inner, "abc", 3));
    struct pollfd entry = {outer, POLLIN, 0};
    tell("poll", poll(&entry, 1, 20000));
    tell("FIONREAD", ioctl(outer, FIONREAD, &waiting));
    tell("FIONBIO", ioctl(inner, FIONBIO, &on));
    printf("%d %d\n", waiting, !!(fcntl(inner, F_GETFL) & O_NONBLOCK));
    tell("no terminal", ioctl(open("/dev/null", O_RDONLY), TIOCGWINSZ, &size));
}

static void other_programs(void) {
    char line[100] = {0}, *arguments[] = {"true", NULL};
    int status;
    FILE *shell = popen("echo from a shell; exit 3", "r");
    printf("%s", fgets(line, sizeof line, shell));
    printf("%d\n", WEXITSTATUS(pclose(shell)));
    printf("system: %d\n", WEXITSTATUS(system("exit 5")));
    pid_t child;
    tell("posix_spawnp", posix_spawnp(&child, "true", NULL, NULL, arguments, environ));
    waitpid(child, &status, 0);
    printf("%d\n", WEXITSTATUS(status));
    if (vfork() == 0) {
        execl("/bin/false", "false", (char *)NULL);
        _exit(9);
    }
    wait(&status);
    printf("%d\n", WEXITSTATUS(status));
    tell("no such program", execl("/nonexistent", "x", (char *)NULL));
    tell("no program", execl("/etc/passwd", "x", (char *)NULL));
    tell("a directory", execl("/etc", "x", (char *)NULL));
}

static int by_name(const FTSENT **a, const FTSENT **b) { return strcmp((*a)->fts_name, (*b)->fts_name); }

static void trees(void) {
    char *roots[] = {"tree", NULL};
    mkdir("tree", 0755);
    mkdir("tree/inner", 0700);
    close(open("tree/file", O_CREAT | O_WRONLY, 0644));
    close(creat("tree/inner/file", 0600));
    tell("symlink", symlink("file", "tree/link"));
    tell("link", link("tree/file", "tree/other"));
    FTS *walk = fts_open(roots, FTS_PHYSICAL, by_name);
    for (FTSENT *entry; (entry = fts_read(walk));)
        printf("%d %s %o\n", entry->fts_info, entry->fts_path, entry->fts_statp->st_mode);
    fts_close(walk);
    glob_t found;
    tell("glob", glob("tree/*", 0, NULL, &found));
    for (size_t i = 0; i < found.gl_pathc; i++) puts(found.gl_pathv[i]);
    struct statx wide;
    struct stat plain;
    tell("statx", statx(AT_FDCWD, "tree/file", 0, STATX_ALL, &wide));
    tell("stat", stat("tree/file", &plain));
    printf("%o %d %d\n", wide.stx_mode, wide.stx_ino == plain.st_ino, (int)plain.st_nlink);
    struct statvfs volume;
    struct statfs system_of_proc;
    tell("statvfs", statvfs("/", &volume));
    tell("statfs", statfs("/proc", &system_of_proc));
    printf("%d %lx\n", volume.f_blocks > 0 && volume.f_namemax == 255, (long)system_of_proc.f_type);
}

static void files(void) {
    int file = open("tree/file", O_RDWR | O_APPEND | O_SYNC | O_CLOEXEC), status;
    int flags = fcntl(file, F_GETFL);
    printf("%d %d %d %d\n", (flags & O_ACCMODE) == O_RDWR, !!(flags & O_APPEND), (flags & O_SYNC) == O_SYNC,
           fcntl(file, F_GETFD));
    tell("write", write(file, "0123456789", 10));
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 2, .l_len = 3};
    tell("F_SETLK", fcntl(file, F_SETLK, &lock));
    if (fork() == 0) {
        struct flock other = {.l_type = F_RDLCK, .l_whence = SEEK_SET};
        tell("F_GETLK", fcntl(file, F_GETLK, &other));
        printf("%d %d %d %d\n", other.l_type == F_WRLCK, (int)other.l_start, (int)other.l_len,
               other.l_pid == getppid());
        other = (struct flock){.l_type = F_RDLCK, .l_whence = SEEK_SET};
        tell("locked", fcntl(file, F_SETLK, &other));
        _exit(0);
    }
    wait(&status);
    tell("flock", flock(file, LOCK_EX | LOCK_NB));
    int again = open("tree/file", O_RDONLY), copy = open("tree/copy", O_WRONLY | O_CREAT, 0644);
    tell("locked", flock(again, LOCK_SH | LOCK_NB));
    off_t from = 2;
    tell("sendfile", sendfile(copy, file, &from, 4));
    tell("copy_file_range", copy_file_range(again, NULL, copy, NULL, 3, 0));
    tell("posix_fallocate", posix_fallocate(copy, 0, 5000));
    tell("size", lseek(copy, 0, SEEK_END));
    tell("before the start", lseek(copy, -100, SEEK_SET));
    tell("temporary", open(".", O_TMPFILE | O_RDWR, 0600) >= 0);
    tell("a link", open("tree/link", O_NOFOLLOW));
    tell("no directory", open("tree/file", O_DIRECTORY));
    tell("exists", open("tree/file", O_CREAT | O_EXCL, 0600));
    tell("not empty", rmdir("tree"));
    tell("bad buffer", write(copy, (void *)16, 5));
    tell("bad path", open((void *)8, O_RDONLY));
    tell("exchange", renameat2(AT_FDCWD, "tree/file", AT_FDCWD, "tree/copy", RENAME_EXCHANGE));
    printf("%d\n", system("rm -r tree"));
}

static void limits(void) {
    struct rlimit limit, set;
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = 64;
    tell("setrlimit", setrlimit(RLIMIT_NOFILE, &limit));
    int opened;
    while ((opened = dup(0)) >= 0) {}
    tell("dup", opened);
    for (int i = 20; i < 64; i++) close(i);
    limit = (struct rlimit){100000, 100000};
    tell("setrlimit", setrlimit(RLIMIT_FSIZE, &limit));
    getrlimit(RLIMIT_FSIZE, &set);
    getrlimit(RLIMIT_CORE, &limit);
    printf("%d %d\n", (int)set.rlim_cur, limit.rlim_max == RLIM_INFINITY);
}

static void about_itself(char *name) {
    char text[4096] = {0};
    int code = 0, stack = 0;
    tell("PR_SET_NAME", prctl(PR_SET_NAME, "renamed"));
    tell("PR_GET_NAME", prctl(PR_GET_NAME, text));
    puts(text);
    FILE *maps = fopen("/proc/self/maps", "r");
    while (fgets(text, sizeof text, maps)) {
        unsigned long start, end;
        sscanf(text, "%lx-%lx", &start, &end);
        unsigned long here = (unsigned long)by_name, local = (unsigned long)&code;
        if (here >= start && here < end) code = strchr(text, '/') != NULL;
        if (local >= start && local < end) stack = strstr(text, "[stack]") != NULL;
    }
    printf("maps: %d %d\n", code, stack);
    memset(text, 0, sizeof text);
    FILE *arguments = fopen("/proc/self/cmdline", "r");
    printf("arguments: %d\n", fread(text, 1, sizeof text - 1, arguments) > 0 && strcmp(text, name) == 0);
    char *exact = realpath("/proc/self/exe", NULL), *named = realpath(name, NULL);
    printf("program: %d\n", exact && named && strcmp(exact, named) == 0);
    double (*root)(double) = NULL;
    void *library = dlopen("libm.so.6.1", RTLD_NOW);
    if (!library) library = dlopen("libm.so.6", RTLD_NOW);
    if (library) root = (double (*)(double))dlsym(library, "sqrt");
    printf("square root: %.3f\n", root ? root(2) : 0);
    char *end = sbrk(0);
    printf("%d\n", sbrk(100000) == end);
    end[50000] = 1;
    printf("%d\n", sbrk(-100000) != (void *)-1);
    printf("%d\n", sbrk(0) == end);
    tell("too much", (long)sbrk(1l << 45));
}

int main(int count, char **arguments) {
    (void)count;
    setvbuf(stdout, NULL, _IOLBF, 0);
    terminals();
    other_programs();
    trees();
    files();
    about_itself(arguments[0]);
    limits();
    return 0;
}
