/* Files with statements, rows, errors. */
#include "rows.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void fail(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    fflush(stdout);
    fputs("tpch: ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    exit(1);
}

char *read_text(const char *path) {
    FILE *file = fopen(path, "r");
    char *text = NULL;
    size_t room = 0;
    /* Files have no zeros: all of a file is one piece. */
    if (file == NULL || getdelim(&text, &room, '\0', file) <= 0) fail("cannot read %s: %s", path, strerror(errno));
    fclose(file);
    return text;
}

static void end_column(bool is_last) {
    putchar(is_last ? '\n' : '|');
}

void print_number(double number, bool is_last) {
    printf("%.17g", number);
    end_column(is_last);
}

void print_text(const char *text, bool is_last) {
    fputs(text == NULL ? "NULL" : text, stdout);
    end_column(is_last);
}
