/* Preloaded into the host's programs that a guest's program starts, so that these can start guests'
 * programs again: sh for system() and popen(), scripts, make, env, xargs.
 *
 * The host's kernel refuses a guest's image (ENOEXEC). Each function of the C library that starts a
 * program therefore looks at the file first, and if it is such an image, or a script whose
 * interpreter is one, starts the engine with it. Everything else passes unchanged.
 *
 * PATHLENGTH_RUN holds the engine's command, words separated by SEPARATOR; the words that follow are
 * the program's name (argv[0]), "--", its path and its other arguments.
 *
 * These functions are called between vfork and exec: no allocation, no locks, only the stack. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define EXPORTED __attribute__((visibility("default")))
#define SEPARATOR "\x1f"
enum { MOST_WORDS = 16, DEEPEST_SCRIPT = 4, START_OF_FILE = 256 };
/* The machines of the guests in ELF headers: Alpha's, and RISC-V's. */
enum { ALPHA = 0x9026, RISCV = 243 };

extern char **environ;

static char *command[MOST_WORDS];
static size_t words;
/* As this process found them: "PATHLENGTH_RUN=..." and "LD_PRELOAD=...". */
static char *run, *preload;
/* LD_PRELOAD without this library: what a guest's program is to find, if anything. */
static char *others;

static int (*real_execve)(const char *, char *const[], char *const[]);
static int (*real_execvpe)(const char *, char *const[], char *const[]);
typedef int spawn(pid_t *, const char *, const posix_spawn_file_actions_t *, const posix_spawnattr_t *,
                  char *const[], char *const[]);
static spawn *real_posix_spawn, *real_posix_spawnp;

/* The environment's entry NAME=..., where `name` ends with the equals sign. */
static char *entry(char *const *environment, const char *name) {
    for (; environment != NULL && *environment != NULL; environment++)
        if (strncmp(*environment, name, strlen(name)) == 0) return *environment;
    return NULL;
}

__attribute__((constructor)) static void initialize(void) {
    real_execve = dlsym(RTLD_NEXT, "execve");
    real_execvpe = dlsym(RTLD_NEXT, "execvpe");
    real_posix_spawn = dlsym(RTLD_NEXT, "posix_spawn");
    real_posix_spawnp = dlsym(RTLD_NEXT, "posix_spawnp");
    char *set = entry(environ, "PATHLENGTH_RUN="), *loaded = entry(environ, "LD_PRELOAD=");
    if (set == NULL || loaded == NULL) return;
    /* The program may change its environment: these are copies. */
    run = strdup(set);
    preload = strdup(loaded);
    char *list = strdup(strchr(set, '=') + 1), *state = NULL;
    if (run == NULL || preload == NULL || list == NULL) return;
    for (char *word = strtok_r(list, SEPARATOR, &state); word != NULL && words < MOST_WORDS;
         word = strtok_r(NULL, SEPARATOR, &state))
        command[words++] = word;
    char *colon = strchr(preload, ':');
    if (colon != NULL && asprintf(&others, "LD_PRELOAD=%s", colon + 1) < 0) others = NULL;
}

static int may_execute(const char *path) {
    struct stat status;
    return access(path, X_OK) == 0 && stat(path, &status) == 0 && S_ISREG(status.st_mode);
}

static int is_guests(unsigned machine) {
    return machine == ALPHA || machine == RISCV;
}

/* Whether the path is an image of a guest, or a script that one interprets. */
static int runs_on_engine(const char *path) {
    unsigned char start[START_OF_FILE + 1];
    for (int depth = 0; words > 0 && depth <= DEEPEST_SCRIPT && may_execute(path); depth++) {
        int file = open(path, O_RDONLY | O_CLOEXEC);
        if (file < 0) return 0;
        ssize_t size = read(file, start, START_OF_FILE);
        close(file);
        if (size < 2) return 0;
        start[size] = '\0';
        if (size >= (ssize_t)sizeof(Elf64_Ehdr) && memcmp(start, ELFMAG, SELFMAG) == 0)
            return start[EI_CLASS] == ELFCLASS64 && is_guests(start[18] | start[19] << 8);
        if (start[0] != '#' || start[1] != '!') return 0;
        char *interpreter = (char *)start + 2;
        interpreter += strspn(interpreter, " \t");
        interpreter[strcspn(interpreter, " \t\n")] = '\0';
        path = memmove(start, interpreter, strlen(interpreter) + 1);
    }
    return 0;
}

static size_t count(char *const *strings) {
    size_t n = 0;
    while (strings != NULL && strings[n] != NULL) n++;
    return n;
}

/* Bytes of room for the arguments with the engine's before them, and for a changed environment. */
#define ARGUMENTS(given) (words + count(given) + 4)
#define ENVIRONMENT(given) (count(given) + 3)

static void engine_arguments(char **to, const char *path, char *const *given) {
    memcpy(to, command, words * sizeof *to);
    to += words;
    *to++ = given != NULL && given[0] != NULL ? given[0] : (char *)path;
    *to++ = (char *)"--";
    *to++ = (char *)path;
    if (given != NULL && given[0] != NULL)
        for (given++; *given != NULL; given++) *to++ = *given;
    *to = NULL;
}

/* The environment for a guest's program: without what is for the host's programs. */
static void engine_environment(char **to, char *const *given) {
    for (; given != NULL && *given != NULL; given++) {
        if (strncmp(*given, "PATHLENGTH_RUN=", 15) == 0) continue;
        if (strcmp(*given, preload) != 0) *to++ = *given;
        else if (others != NULL) *to++ = others;
    }
    *to = NULL;
}

/* The environment for a host program: with what lets it start guests' programs, even if the caller
 * starts from an empty one. */
static void host_environment(char **to, char *const *given) {
    char *const missing[] = {entry(given, "PATHLENGTH_RUN=") == NULL ? run : NULL,
                             entry(given, "LD_PRELOAD=") == NULL ? preload : NULL};
    for (; given != NULL && *given != NULL; given++) *to++ = *given;
    for (int i = 0; i < 2; i++)
        if (missing[i] != NULL) *to++ = missing[i];
    *to = NULL;
}

/* Finds a program along PATH, as execvp does. */
static const char *search(const char *file, char found[PATH_MAX]) {
    const char *path = getenv("PATH");
    if (strchr(file, '/') != NULL) return file;
    if (path == NULL) path = "/bin:/usr/bin";
    for (;; path++) {
        size_t length = strcspn(path, ":");
        const char *folder = length == 0 ? "." : path;
        int size = snprintf(found, PATH_MAX, "%.*s/%s", length == 0 ? 1 : (int)length, folder, file);
        if (size > 0 && size < PATH_MAX && may_execute(found)) return found;
        path += length;
        if (*path == '\0') return file;
    }
}

/* Starts `path` in the engine, or `file` by `otherwise`. */
static int execute(int (*otherwise)(const char *, char *const[], char *const[]), const char *path,
                   const char *file, char *const *arguments, char *const *environment) {
    char *changed[ENVIRONMENT(environment)];
    if (runs_on_engine(path)) {
        char *all[ARGUMENTS(arguments)];
        engine_arguments(all, path, arguments);
        engine_environment(changed, environment);
        return real_execve(command[0], all, changed);
    }
    host_environment(changed, environment);
    return otherwise(file, arguments, changed);
}

EXPORTED int execve(const char *path, char *const arguments[], char *const environment[]) {
    return execute(real_execve, path, path, arguments, environment);
}

EXPORTED int execv(const char *path, char *const arguments[]) { return execve(path, arguments, environ); }

EXPORTED int execvpe(const char *file, char *const arguments[], char *const environment[]) {
    char found[PATH_MAX];
    return execute(real_execvpe, search(file, found), file, arguments, environment);
}

EXPORTED int execvp(const char *file, char *const arguments[]) { return execvpe(file, arguments, environ); }

/* The arguments of execl and its like as an array `list`; `rest` is then after NULL. */
#define LIST(first)                                                             \
    va_list counted, rest;                                                      \
    size_t n = 1;                                                               \
    va_start(counted, first);                                                   \
    while (va_arg(counted, char *) != NULL) n++;                                \
    va_end(counted);                                                            \
    char *list[n + 1];                                                          \
    list[0] = (char *)first;                                                    \
    va_start(rest, first);                                                      \
    for (size_t i = 1; i <= n; i++) list[i] = va_arg(rest, char *)

EXPORTED int execl(const char *path, const char *first, ...) {
    LIST(first);
    va_end(rest);
    return execve(path, list, environ);
}

EXPORTED int execlp(const char *file, const char *first, ...) {
    LIST(first);
    va_end(rest);
    return execvpe(file, list, environ);
}

EXPORTED int execle(const char *path, const char *first, ...) {
    LIST(first);
    char *const *environment = va_arg(rest, char *const *);
    va_end(rest);
    return execve(path, list, environment);
}

static int start(spawn *otherwise, pid_t *child, const char *path, const char *file,
                 const posix_spawn_file_actions_t *actions, const posix_spawnattr_t *attributes,
                 char *const *arguments, char *const *environment) {
    char *changed[ENVIRONMENT(environment)];
    if (runs_on_engine(path)) {
        char *all[ARGUMENTS(arguments)];
        engine_arguments(all, path, arguments);
        engine_environment(changed, environment);
        return real_posix_spawn(child, command[0], actions, attributes, all, changed);
    }
    host_environment(changed, environment);
    return otherwise(child, file, actions, attributes, arguments, changed);
}

EXPORTED int posix_spawn(pid_t *child, const char *path, const posix_spawn_file_actions_t *actions,
                         const posix_spawnattr_t *attributes, char *const arguments[],
                         char *const environment[]) {
    return start(real_posix_spawn, child, path, path, actions, attributes, arguments, environment);
}

EXPORTED int posix_spawnp(pid_t *child, const char *file, const posix_spawn_file_actions_t *actions,
                          const posix_spawnattr_t *attributes, char *const arguments[],
                          char *const environment[]) {
    char found[PATH_MAX];
    return start(real_posix_spawnp, child, search(file, found), file, actions, attributes, arguments,
                 environment);
}
