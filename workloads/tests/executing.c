/* not under qemu-alpha 7.2: it cannot execute Alpha programs */
/* Host programs that start this program again: through system, popen, posix_spawn, scripts, and the
 * host's own tools, with and without an environment. */
#define _GNU_SOURCE
#include <errno.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;
static char self[4096];

/* What the program does when it is started again: shows its surroundings. */
static int again(int argc, char **argv) {
    const char *parent = getenv("PARENT"), *colour = getenv("COLOUR"), *preload = getenv("LD_PRELOAD");
    char line[64] = "";
    printf("%s:", strrchr(argv[0], '/') ? strrchr(argv[0], '/') + 1 : argv[0]);
    for (int i = 1; i < argc; i++) printf(" [%s]", argv[i]);
    printf(" COLOUR=%s", colour ? colour : "none");
    printf(" hidden=%d", preload == NULL && getenv("PATHLENGTH_RUN") == NULL);
    if (parent) printf(" same process=%d", atoi(parent) == getpid());
    if (fgets(line, sizeof line, stdin)) printf(" input=%s", line);
    else puts("");
    return argc;
}

static void show(const char *what, int status) {
    printf("%s: %s %d\n", what, WIFEXITED(status) ? "exited" : "signalled",
           WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
    fflush(stdout);
}

static void shell(const char *command) {
    fflush(stdout);
    show(command, system(command));
}

static void piped(void) {
    char line[256];
    FILE *output = popen("\"$SELF\" from popen | tr a-z A-Z", "r");
    while (fgets(line, sizeof line, output)) fputs(line, stdout);
    show("read", pclose(output));
    fflush(stdout);
    FILE *input = popen("\"$SELF\" to popen", "w");
    fputs("a line\n", input);
    show("written", pclose(input));
}

static void spawned(char **arguments, char **environment) {
    pid_t child;
    int status = 0, error = posix_spawnp(&child, arguments[0], NULL, NULL, arguments, environment);
    if (error == 0) waitpid(child, &status, 0);
    show(strerror(error), status);
}

static void script(const char *name, const char *first, const char *rest) {
    FILE *file = fopen(name, "w");
    fprintf(file, "#!%s\n%s", first, rest);
    fclose(file);
    chmod(name, 0755);
}

int main(int argc, char **argv) {
    if (argc > 1 || getenv("SELF")) return again(argc, argv);
    if (realpath(argv[0], self) == NULL) return 99;
    unsetenv("LD_PRELOAD");
    setenv("SELF", self, 1);
    setenv("COLOUR", "blue", 1);
    shell("\"$SELF\" one 'two words' ''");
    shell("PARENT=$$ exec \"$SELF\" replaced");
    shell("env -i \"$SELF\" bare < /dev/null");
    shell("env -i sh -c \"exec '$SELF' bare again\" < /dev/null");
    shell("echo one two | xargs -n 1 \"$SELF\"");
    shell("cp \"$SELF\" here && PATH=.:$PATH && here found");
    shell("echo text | nice \"$SELF\" nicely | cat");
    shell("\"$SELF\" aside & wait $!");
    shell("true && /missing/program");
    piped();
    spawned((char *[]){"sh", "-c", "\"$SELF\" deep", NULL}, environ);
    spawned((char *[]){"env", "COLOUR=red", self, "painted", NULL}, environ);
    spawned((char *[]){"sh", "-c", "exec \"$0\" alone", self, NULL}, (char *[]){"COLOUR=grey", NULL});
    script("by-sh", "/bin/sh", "\"$SELF\" in a script \"$@\"\n");
    script("by-self", self, "");
    script("by-option", self, "");
    char first[5000];
    snprintf(first, sizeof first, "%s an option", self);
    script("by-option", first, "");
    shell("./by-sh with arguments");
    shell("./by-self");
    shell("./by-option more");
    spawned((char *[]){"./by-sh", NULL}, environ);
    spawned((char *[]){"./by-option", "direct", NULL}, environ);
    return 0;
}
