/* A server of PostgreSQL, by libpq: each statement is prepared once, under a name, and executed with its parameters. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <libpq-fe.h>

#include "tpcc.h"

enum {
    MOST_PARAMETERS = 24,
    PATIENCE = 120,     /* seconds until a server must answer that starts */
    NAME_ROOM = 32,
};

struct query {
    char name[NAME_ROOM];
    char *sql;
    int parameters;
    char *values[MOST_PARAMETERS];
    PGresult *result;
    int row;
};

static PGconn *connection;

_Noreturn static void fail_in_database(const char *what) {
    fail("%s: %s", what, PQerrorMessage(connection));
}

void open_database(const char *where, int64_t cache_pages) {
    (void)cache_pages;
    for (int second = 0;; second++) {
        connection = PQconnectdb(where);
        if (PQstatus(connection) == CONNECTION_OK) return;
        if (second == PATIENCE) fail("cannot connect to %s: %s", where, PQerrorMessage(connection));
        PQfinish(connection);
        nanosleep(&(struct timespec){.tv_sec = 1}, NULL);
    }
}

void create_database(const char *where) {
    open_database(where, 0);
    execute_all("SET client_min_messages = warning;"
                "DROP TABLE IF EXISTS warehouse, district, customer, history, new_orders, orders, order_lines, item, stock");
}

void finish_loading(void) {
    execute("VACUUM ANALYZE");
    execute("CHECKPOINT");
}

void close_database(void) {
    PQfinish(connection);
}

/* Takes a result that has to be a success. */
static PGresult *checked(PGresult *result, const char *sql) {
    ExecStatusType status = PQresultStatus(result);
    if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK) fail_in_database(sql);
    return result;
}

void execute_all(const char *sql) {
    PQclear(checked(PQexec(connection, sql), sql));
}

void execute(const char *sql) {
    execute_all(sql);
}

/* Parameters are ?1, ?2 or, one after another, ?; PostgreSQL's are $1, $2. Returns the number of the last one. */
static int write_parameters(const char *sql, char *text) {
    int last = 0;
    for (; *sql != '\0'; sql++) {
        if (*sql != '?') {
            *text++ = *sql;
            continue;
        }
        char *end;
        long number = strtol(sql + 1, &end, 10);
        if (end == sql + 1) number = last + 1;
        if (number > last) last = (int)number;
        text += sprintf(text, "$%ld", number);
        sql = end - 1;
    }
    *text = '\0';
    return last;
}

query *prepare_as(const char *name, const char *sql) {
    query *statement = calloc(1, sizeof *statement);
    char *text = malloc(4 * strlen(sql) + 1);
    if (statement == NULL || text == NULL) fail("not enough memory");
    statement->parameters = write_parameters(sql, text);
    if (statement->parameters > MOST_PARAMETERS) fail("too many parameters: %s", sql);
    statement->sql = text;
    snprintf(statement->name, sizeof statement->name, "%s", name);
    PQclear(checked(PQprepare(connection, statement->name, text, 0, NULL), text));
    return statement;
}

query *prepare(const char *sql) {
    static int number;
    char name[NAME_ROOM];
    snprintf(name, sizeof name, "statement_%d", number++);
    return prepare_as(name, sql);
}

void finalize(query *statement) {
    char sql[NAME_ROOM + 16];
    reset(statement);
    snprintf(sql, sizeof sql, "DEALLOCATE %s", statement->name);
    execute(sql);
    for (int i = 0; i < statement->parameters; i++) free(statement->values[i]);
    free(statement->sql);
    free(statement);
}

void reset(query *statement) {
    PQclear(statement->result);
    statement->result = NULL;
}

/* Executes the statement, if it was not since it was reset. */
static void run_statement(query *statement) {
    if (statement->result != NULL) return;
    const char *const *values = (const char *const *)statement->values;
    PGresult *result = PQexecPrepared(connection, statement->name, statement->parameters, values, NULL, NULL, 0);
    statement->result = checked(result, statement->sql);
    statement->row = -1;
}

int64_t step(query *statement) {
    run_statement(statement);
    int64_t changed = strtoll(PQcmdTuples(statement->result), NULL, 10);
    reset(statement);
    return changed;
}

bool next_row(query *statement) {
    run_statement(statement);
    if (++statement->row < PQntuples(statement->result)) return true;
    reset(statement);
    return false;
}

void only_row(query *statement) {
    if (!next_row(statement)) fail("no row: %s", statement->sql);
}

int64_t query_integer(const char *sql) {
    query *statement = prepare(sql);
    only_row(statement);
    int64_t value = column_integer(statement, 0);
    finalize(statement);
    return value;
}

int64_t column_integer(query *statement, int column) {
    return strtoll(PQgetvalue(statement->result, statement->row, column), NULL, 10);
}

const char *column_text(query *statement, int column) {
    bool is_null = PQgetisnull(statement->result, statement->row, column);
    return is_null ? NULL : PQgetvalue(statement->result, statement->row, column);
}

/* Takes a value that was allocated. */
static void bind(query *statement, int parameter, char *value) {
    free(statement->values[parameter - 1]);
    statement->values[parameter - 1] = value;
}

void bind_integer(query *statement, int parameter, int64_t value) {
    char text[24];
    snprintf(text, sizeof text, "%" PRId64, value);
    bind_text(statement, parameter, text);
}

void bind_null(query *statement, int parameter) {
    bind(statement, parameter, NULL);
}

void bind_text(query *statement, int parameter, const char *text) {
    char *copy = strdup(text);
    if (copy == NULL) fail("not enough memory");
    bind(statement, parameter, copy);
}

void bind_integers(query *statement, const int64_t *values, unsigned long count) {
    for (unsigned long i = 0; i < count; i++) bind_integer(statement, (int)i + 1, values[i]);
}

void mark_steady_state(void) {
    execute("SELECT pg_backend_pid()");
}

/* The server has a process for this. */
void checkpoint(void) {}

uint64_t take_page_hits(void) {
    return 0;
}

uint64_t take_page_misses(void) {
    return 0;
}
