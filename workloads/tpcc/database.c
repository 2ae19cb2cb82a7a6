/* SQLite, with every error fatal. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "tpcc.h"

sqlite3 *db;

void fail(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    fflush(stdout);
    fputs("tpcc: ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    exit(1);
}

void fail_in_database(const char *what) {
    fail("%s: %s (SQLite error %d)", what, sqlite3_errmsg(db), sqlite3_extended_errcode(db));
}

void open_database(const char *path, int flags) {
    if (sqlite3_open_v2(path, &db, flags, NULL) != SQLITE_OK)
        fail("cannot open %s: %s", path, sqlite3_errmsg(db));
}

void close_database(void) {
    if (sqlite3_close(db) != SQLITE_OK) fail_in_database("closing the database");
}

void execute(const char *sql) {
    if (sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK) fail_in_database(sql);
}

sqlite3_stmt *prepare(const char *sql) {
    sqlite3_stmt *statement;
    if (sqlite3_prepare_v3(db, sql, -1, SQLITE_PREPARE_PERSISTENT, &statement, NULL) != SQLITE_OK)
        fail_in_database(sql);
    return statement;
}

void step(sqlite3_stmt *statement) {
    if (sqlite3_step(statement) != SQLITE_DONE) fail_in_database(sqlite3_sql(statement));
    sqlite3_reset(statement);
}

bool next_row(sqlite3_stmt *statement) {
    switch (sqlite3_step(statement)) {
    case SQLITE_ROW: return true;
    case SQLITE_DONE: sqlite3_reset(statement); return false;
    default: fail_in_database(sqlite3_sql(statement));
    }
}

void only_row(sqlite3_stmt *statement) {
    if (sqlite3_step(statement) != SQLITE_ROW) fail_in_database(sqlite3_sql(statement));
}

int64_t query_integer(const char *sql) {
    sqlite3_stmt *statement = prepare(sql);
    only_row(statement);
    int64_t value = sqlite3_column_int64(statement, 0);
    sqlite3_finalize(statement);
    return value;
}

void bind_integers(sqlite3_stmt *statement, const int64_t *values, unsigned long count) {
    for (unsigned long i = 0; i < count; i++) sqlite3_bind_int64(statement, (int)i + 1, values[i]);
}

void bind_text(sqlite3_stmt *statement, int parameter, const char *text) {
    sqlite3_bind_text(statement, parameter, text, -1, SQLITE_STATIC);
}
