/* Files and directories, made, read, mapped, listed and removed in the working directory. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

int main(void) {
    umask(022);
    mkdir("folder", 0755);
    FILE *out = fopen("folder/file", "w");
    for (int i = 0; i < 500; i++) fprintf(out, "line %d\n", i);
    fclose(out);
    struct stat status;
    stat("folder/file", &status);
    printf("%ld bytes, mode %o\n", (long)status.st_size, status.st_mode);
    int fd = open("folder/file", O_RDWR);
    char *text = mmap(NULL, (size_t)status.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    int lines = 0;
    for (long i = 0; i < status.st_size; i++) lines += text[i] == '\n';
    text[0] = 'L';
    msync(text, (size_t)status.st_size, MS_SYNC);
    munmap(text, (size_t)status.st_size);
    char start[8] = "";
    pread(fd, start, 6, 0);
    lseek(fd, -4, SEEK_END);
    char end[8] = "";
    ssize_t got = read(fd, end, sizeof end - 1);
    printf("%d lines, from '%s' to '%.3s' (%zd)\n", lines, start, end, got);
    ftruncate(fd, 10);
    fsync(fd);
    close(fd);
    printf("open again: %d", open("folder/none", O_RDONLY));
    printf(" %s\n", strerror(errno));
    rename("folder/file", "folder/other");
    DIR *folder = opendir("folder");
    int entries = 0;
    for (struct dirent *entry; (entry = readdir(folder));) entries++;
    closedir(folder);
    printf("%d entries\n", entries);
    unlink("folder/other");
    return rmdir("folder");
}
