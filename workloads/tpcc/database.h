/* What the program needs of a database: SQLite in this process, or, compiled with POSTGRESQL, a server of PostgreSQL. Every
 * error is fatal. */
#ifndef DATABASE_H
#define DATABASE_H

#include <stdbool.h>
#include <stdint.h>

#ifdef POSTGRESQL

/* Identifiers, numbers and money alike. */
#define INTEGER "BIGINT"
#define IN_PRIMARY_KEY ""
#define DATABASE "PostgreSQL"
#define DATABASE_ARGUMENT "CONNECTION"
#define DATABASE_MEANING "a connection string of libpq, such as 'host=/tmp port=5432 dbname=tpcc'"
enum { HAS_PAGE_COUNTS = false };

/* A prepared statement, with its parameters and its result. */
typedef struct query query;

void finalize(query *statement);
void reset(query *statement);
int64_t column_integer(query *statement, int column);
/* NULL for no value. */
const char *column_text(query *statement, int column);
void bind_integer(query *statement, int parameter, int64_t value);
void bind_null(query *statement, int parameter);
void bind_text(query *statement, int parameter, const char *text);
static inline void bind_copy(query *statement, int parameter, const char *text) {
    bind_text(statement, parameter, text);
}

#else

#include "sqlite3.h"

#define INTEGER "INTEGER"
#define IN_PRIMARY_KEY "WITHOUT ROWID"
#define DATABASE "SQLite"
#define DATABASE_ARGUMENT "FILE"
#define DATABASE_MEANING "a file"
enum { HAS_PAGE_COUNTS = true };

typedef sqlite3_stmt query;

static inline void finalize(query *statement) {
    sqlite3_finalize(statement);
}
static inline void reset(query *statement) {
    sqlite3_reset(statement);
}
static inline int64_t column_integer(query *statement, int column) {
    return sqlite3_column_int64(statement, column);
}
static inline const char *column_text(query *statement, int column) {
    return (const char *)sqlite3_column_text(statement, column);
}
static inline void bind_integer(query *statement, int parameter, int64_t value) {
    sqlite3_bind_int64(statement, parameter, value);
}
static inline void bind_null(query *statement, int parameter) {
    sqlite3_bind_null(statement, parameter);
}
/* The text must stay until the statement has run. */
void bind_text(query *statement, int parameter, const char *text);
static inline void bind_copy(query *statement, int parameter, const char *text) {
    sqlite3_bind_text(statement, parameter, text, -1, SQLITE_TRANSIENT);
}

#endif

/* Replaces the database by an empty one, which is loaded then. */
void create_database(const char *where);
/* What was loaded is used from now on. */
void finish_loading(void);
/* Opens a loaded database, with a page cache of so many pages if that is to be chosen; 0 for the usual one. */
void open_database(const char *where, int64_t cache_pages);
void close_database(void);

void execute(const char *sql);
/* Several statements. */
void execute_all(const char *sql);
query *prepare(const char *sql);
/* Prepares a statement with a name. */
query *prepare_as(const char *name, const char *sql);
/* Runs a statement that yields no row. Returns how many rows it has inserted, updated or deleted, if it is one that does. */
int64_t step(query *statement);
/* Advances to the next row; resets the statement after the last one. */
bool next_row(query *statement);
/* Advances to the only row of a statement; the caller resets it. */
void only_row(query *statement);
int64_t query_integer(const char *sql);
/* Binds integers to the first parameters. */
#define BIND(statement, ...)                                                                            \
    bind_integers((statement), (const int64_t[]){__VA_ARGS__},                                          \
                  sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t))
void bind_integers(query *statement, const int64_t *values, unsigned long count);

/* Brings the log into the database, if this is not done by others. */
void checkpoint(void);

/* Shows a server's process that a steady state has begun. */
void mark_steady_state(void);
/* Hits and misses of the page cache since the last call, where they are known. */
uint64_t take_page_hits(void);
uint64_t take_page_misses(void);

#endif
