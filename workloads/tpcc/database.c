/* SQLite. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tpcc.h"

static sqlite3 *db;

_Noreturn static void fail_in_database(const char *what) {
    fail("%s: %s (SQLite error %d)", what, sqlite3_errmsg(db), sqlite3_extended_errcode(db));
}

static void open_file(const char *path, int flags) {
    if (sqlite3_open_v2(path, &db, flags, NULL) != SQLITE_OK)
        fail("cannot open %s: %s", path, sqlite3_errmsg(db));
}

void create_database(const char *where) {
    if (unlink(where) != 0 && errno != ENOENT) fail("cannot replace %s: %s", where, strerror(errno));
    open_file(where, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE);
    /* Nothing to recover while loading: an interrupted load is started again. */
    execute_all("PRAGMA page_size=4096; PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; PRAGMA cache_size=-1048576;");
}

void finish_loading(void) {
    execute("PRAGMA journal_mode=WAL");
}

void open_database(const char *where, int64_t cache_pages) {
    open_file(where, SQLITE_OPEN_READWRITE);
    if (cache_pages == 0) return;
    /* As in tpcb.c: durable commits, checkpoints between transactions, no memory-mapped files. */
    execute_all("PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA wal_autocheckpoint=0; PRAGMA mmap_size=0;"
                "PRAGMA temp_store=MEMORY;");
    char pragma[64];
    snprintf(pragma, sizeof pragma, "PRAGMA cache_size=%" PRId64, cache_pages);
    execute(pragma);
}

void close_database(void) {
    if (sqlite3_close(db) != SQLITE_OK) fail_in_database("closing the database");
}

void execute(const char *sql) {
    if (sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK) fail_in_database(sql);
}

void execute_all(const char *sql) {
    execute(sql);
}

sqlite3_stmt *prepare(const char *sql) {
    sqlite3_stmt *statement;
    if (sqlite3_prepare_v3(db, sql, -1, SQLITE_PREPARE_PERSISTENT, &statement, NULL) != SQLITE_OK)
        fail_in_database(sql);
    return statement;
}

sqlite3_stmt *prepare_as(const char *name, const char *sql) {
    (void)name;
    return prepare(sql);
}

int64_t step(sqlite3_stmt *statement) {
    if (sqlite3_step(statement) != SQLITE_DONE) fail_in_database(sqlite3_sql(statement));
    int64_t changed = sqlite3_changes(db);
    sqlite3_reset(statement);
    return changed;
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

void mark_steady_state(void) {}

void checkpoint(void) {
    if (sqlite3_wal_checkpoint_v2(db, NULL, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL) != SQLITE_OK)
        fail_in_database("checkpoint");
}

static uint64_t take_counter(int which) {
    int value, highest;
    sqlite3_db_status(db, which, &value, &highest, true);
    return (uint64_t)(unsigned)value;
}

uint64_t take_page_hits(void) {
    return take_counter(SQLITE_DBSTATUS_CACHE_HIT);
}

uint64_t take_page_misses(void) {
    return take_counter(SQLITE_DBSTATUS_CACHE_MISS);
}
