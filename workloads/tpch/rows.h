/* What both programs need: files with statements, rows, errors. */
#ifndef ROWS_H
#define ROWS_H

#include <stdbool.h>

/* Ends the program with status 1, and says why. */
_Noreturn void fail(const char *format, ...);

/* The contents of a file. */
char *read_text(const char *path);

/* Prints a column of a row: all digits of a number. */
void print_number(double number, bool is_last);
void print_text(const char *text, bool is_last);

#endif
