/* TPC-H on PostgreSQL: asks a server the queries that are in files. Each query has a connection of its own, so that a process of
   the server executes this query and nothing else. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <libpq-fe.h>

#include "rows.h"

static const char usage[] =
    "Usage: tpch CONNECTION [-cNAME=VALUE]... FILE...    execute each file, a statement, and print its rows\n"
    "\n"
    "Settings hold for the next file only.\n"
    "In its connection a statement is executed twice: first by the extended protocol, which fills the caches of its server\n"
    "process, and then by the simple one, in exec_simple_query. Its rows are printed after \"FILE\" in a line of its own.\n";

/* Takes a result that has to be rows. */
static PGresult *checked(PGconn *connection, PGresult *result, const char *path) {
    if (PQresultStatus(result) != PGRES_TUPLES_OK) fail("%s: %s", path, PQerrorMessage(connection));
    return result;
}

/* Sets what an argument says. The protocol is the extended one, so that exec_simple_query executes nothing but the statement. */
static void set(PGconn *connection, const char *setting) {
    char sql[256];
    const char *value = strchr(setting, '=');
    if (value == NULL) fail("%s is not NAME=VALUE", setting);
    snprintf(sql, sizeof sql, "SET %.*s TO '%s'", (int)(value - setting), setting, value + 1);
    PGresult *result = PQexecParams(connection, sql, 0, NULL, NULL, NULL, NULL, 0);
    if (PQresultStatus(result) != PGRES_COMMAND_OK) fail("%s: %s", sql, PQerrorMessage(connection));
    PQclear(result);
}

/* The settings are those before the file's name. */
static void query(const char *where, char **settings, int count, const char *path) {
    char *sql = read_text(path);
    PGconn *connection = PQconnectdb(where);
    if (PQstatus(connection) != CONNECTION_OK) fail("cannot connect to %s: %s", where, PQerrorMessage(connection));
    for (int i = 0; i < count; i++) set(connection, settings[i] + 2);
    PQclear(checked(connection, PQexecParams(connection, sql, 0, NULL, NULL, NULL, NULL, 0), path));
    PGresult *result = checked(connection, PQexec(connection, sql), path);
    const char *name = strrchr(path, '/');
    printf("\"%s\"\n", name == NULL ? path : name + 1);
    int columns = PQnfields(result);
    for (int row = 0; row < PQntuples(result); row++)
        for (int column = 0; column < columns; column++)
            print_text(PQgetisnull(result, row, column) ? NULL : PQgetvalue(result, row, column), column + 1 == columns);
    PQclear(result);
    PQfinish(connection);
    free(sql);
}

int main(int argc, char **argv) {
    if (argc < 3) {
        fputs(usage, stderr);
        return 2;
    }
    for (int i = 2, settings = 0; i < argc; i++) {
        if (strncmp(argv[i], "-c", 2) == 0) {
            settings++;
            continue;
        }
        query(argv[1], &argv[i - settings], settings, argv[i]);
        settings = 0;
    }
    return fflush(stdout) != 0;
}
