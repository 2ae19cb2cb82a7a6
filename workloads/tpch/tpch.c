/* TPC-H on SQLite: loads its tables, and executes queries that are in files. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "rows.h"
#include "sqlite3.h"

enum { MOST_COLUMNS = 16 };

static const char usage[] =
    "Usage: tpch load DATABASE FOLDER    make the database: FOLDER has schema-sqlite.sql, TABLE.tbl and indexes.sql\n"
    "       tpch run DATABASE FILE...    execute each file, a statement, and print its rows\n"
    "\n"
    "The TPC-H benchmark on SQLite. Its results are not those of an audited TPC-H.\n"
    "Exit status: 0, 1 if something failed, 2 for a usage error.\n";

static const char *const tables[] = {"region", "nation", "part", "supplier", "partsupp", "customer", "orders", "lineitem"};

static sqlite3 *db;

_Noreturn static void fail_in_database(const char *what) {
    fail("%s: %s (SQLite error %d)", what, sqlite3_errmsg(db), sqlite3_extended_errcode(db));
}

static void execute(const char *sql) {
    if (sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK) fail_in_database(sql);
}

static sqlite3_stmt *prepare(const char *sql) {
    sqlite3_stmt *statement;
    if (sqlite3_prepare_v2(db, sql, -1, &statement, NULL) != SQLITE_OK) fail_in_database(sql);
    return statement;
}

/* Reads a file of the folder, which may have comments and several statements, and executes it. */
static void execute_file(const char *folder, const char *name) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    char *sql = read_text(path);
    execute(sql);
    free(sql);
}

/* Inserts the rows of a file, in which columns are separated by '|'. */
static void load_table(const char *folder, const char *table) {
    char path[4096], sql[256];
    snprintf(path, sizeof path, "%s/%s.tbl", folder, table);
    FILE *file = fopen(path, "r");
    if (file == NULL) fail("cannot read %s: %s", path, strerror(errno));
    snprintf(sql, sizeof sql, "SELECT * FROM %s", table);
    sqlite3_stmt *columns = prepare(sql);
    int count = sqlite3_column_count(columns);
    sqlite3_finalize(columns);
    if (count > MOST_COLUMNS) fail("%s has too many columns", table);
    int length = snprintf(sql, sizeof sql, "INSERT INTO %s VALUES (?", table);
    for (int column = 1; column < count; column++) length += snprintf(sql + length, sizeof sql - length, ",?");
    snprintf(sql + length, sizeof sql - length, ")");
    sqlite3_stmt *insert = prepare(sql);
    char *line = NULL;
    size_t room = 0;
    for (long row = 1; getline(&line, &room, file) > 0; row++) {
        char *rest = line;
        line[strcspn(line, "\n")] = '\0';
        for (int column = 1; column <= count; column++) {
            char *value = strsep(&rest, "|");
            if (value == NULL || (column == count) != (rest == NULL)) fail("%s: row %ld does not have %d columns", path, row, count);
            sqlite3_bind_text(insert, column, value, -1, SQLITE_STATIC);
        }
        if (sqlite3_step(insert) != SQLITE_DONE) fail_in_database(path);
        sqlite3_reset(insert);
    }
    if (ferror(file)) fail("cannot read %s: %s", path, strerror(errno));
    fclose(file);
    free(line);
    sqlite3_finalize(insert);
}

static void load(const char *path, const char *folder) {
    if (unlink(path) != 0 && errno != ENOENT) fail("cannot replace %s: %s", path, strerror(errno));
    if (sqlite3_open(path, &db) != SQLITE_OK) fail_in_database(path);
    /* Nothing to recover while loading: an interrupted load is started again. */
    execute("PRAGMA page_size=4096; PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; PRAGMA cache_size=-1048576; BEGIN");
    execute_file(folder, "schema-sqlite.sql");
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) load_table(folder, tables[i]);
    execute_file(folder, "indexes.sql");
    execute("COMMIT; ANALYZE");
}

/* Executes a query. This is the unit of work. */
__attribute__((noinline)) void tpch_query(const char *sql) {
    sqlite3_stmt *statement = prepare(sql);
    int columns = sqlite3_column_count(statement), step;
    while ((step = sqlite3_step(statement)) == SQLITE_ROW)
        for (int column = 0; column < columns; column++) {
            /* All digits of a number: builds must agree in every bit. */
            if (sqlite3_column_type(statement, column) == SQLITE_FLOAT)
                print_number(sqlite3_column_double(statement, column), column + 1 == columns);
            else
                print_text((const char *)sqlite3_column_text(statement, column), column + 1 == columns);
        }
    if (step != SQLITE_DONE) fail_in_database(sql);
    sqlite3_finalize(statement);
}

int main(int argc, char **argv) {
    if (argc == 2 && strcmp(argv[1], "--help") == 0) return fputs(usage, stdout) < 0;
    if (argc == 4 && strcmp(argv[1], "load") == 0) {
        load(argv[2], argv[3]);
    } else if (argc >= 4 && strcmp(argv[1], "run") == 0) {
        if (sqlite3_open_v2(argv[2], &db, SQLITE_OPEN_READONLY, NULL) != SQLITE_OK) fail_in_database(argv[2]);
        /* The database fits the page cache, as do temporary tables the memory. */
        execute("PRAGMA cache_size=-1048576; PRAGMA temp_store=MEMORY; PRAGMA mmap_size=0");
        for (int i = 3; i < argc; i++) {
            char *sql = read_text(argv[i]);
            tpch_query(sql);
            free(sql);
        }
    } else {
        fputs(usage, stderr);
        return 2;
    }
    if (sqlite3_close(db) != SQLITE_OK) fail_in_database("closing the database");
    if (fflush(stdout) != 0) fail("cannot write: %s", strerror(errno));
    return 0;
}
