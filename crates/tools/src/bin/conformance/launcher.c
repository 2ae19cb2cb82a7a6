/* Stands in the place of an Alpha program, PROGRAM, while a suite runs under qemu-alpha, so that the suite's
 * scripts, and other programs of the suite, can start it: executes PROGRAM.alpha by qemu-alpha (QEMU), with the same
 * name and arguments. */
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int main(int count, char **arguments) {
    static const char suffix[] = ".alpha";
    char program[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", program, sizeof program - sizeof suffix);
    if (length < 0) return 127;
    memcpy(program + length, suffix, sizeof suffix);
    char *words[count + 6];
    char **word = words;
    *word++ = QEMU;
    *word++ = "-L";
    *word++ = SYSROOT;
    *word++ = "-0";
    *word++ = count > 0 ? arguments[0] : program;
    *word++ = program;
    for (int i = 1; i < count; i++) *word++ = arguments[i];
    *word = NULL;
    execv(QEMU, words);
    perror(QEMU);
    return 127;
}
