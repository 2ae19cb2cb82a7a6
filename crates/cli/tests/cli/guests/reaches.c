/* Looks for descriptors that it did not open, by number and by path; says how many there were, and what of. Where there
 * is one, it writes to it by its number; but nothing here changes a file by its path, for it could be anything of the host's. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static int damage(int number) {
    int done = write(number, "damage", 6) >= 0;
    done += lseek(number, 0, SEEK_SET) >= 0;
    done += fcntl(number, F_SETFL, 0) == 0;
    done += dup2(1, number) >= 0;
    return done + (close(number) == 0);
}

static int look_by_path(const char *folder) {
    char path[300];
    int done = 0;
    DIR *directory = opendir(folder);
    for (struct dirent *entry; (entry = readdir(directory));) {
        int number = atoi(entry->d_name);
        if (entry->d_name[0] == '.' || number <= 2 || number == dirfd(directory)) continue;
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        char link[300] = "";
        readlink(path, link, sizeof link - 1);
        printf("%s: %s\n", path, link);
        done++;
    }
    closedir(directory);
    return done;
}

/* What a shell does for `echo hi 513>&-`: it keeps the number's descriptor elsewhere until nothing is there. */
static int shell(int number) {
    int rounds = 0;
    while (rounds < 100 && fcntl(number, F_GETFD) >= 0) {
        fcntl(number, F_DUPFD_CLOEXEC, 10);
        close(number);
        rounds++;
    }
    return rounds;
}

int main(void) {
    struct {
        int from, to;
    } spans[] = {{3, 2000}, {3900, 4200}, {16000, 16500}, {19800, 20100}, {65000, 66000}};
    int done = shell(513) + look_by_path("/proc/self/fd") + look_by_path("/dev/fd") + look_by_path("/proc/self/fdinfo");
    if (fork() == 0) _exit(0);
    for (unsigned i = 0; i < sizeof spans / sizeof *spans; i++)
        for (int number = spans[i].from; number < spans[i].to; number++) {
            /* Where it could have one of its own, only what is there. */
            if (number < sysconf(_SC_OPEN_MAX) && fcntl(number, F_GETFD) < 0) continue;
            done += damage(number);
        }
    done += close_range(3, ~0u, 0) != 0;
    printf("reached %d\n", done);
    return 0;
}
