/* Queries whose plans have several nodes: with the argument `explain` it prints their plans, otherwise it executes them. */
#include <stdio.h>
#include <string.h>
#include "sqlite3.h"

static const char *const SETUP =
    "CREATE TABLE customer(id INTEGER PRIMARY KEY, name TEXT, region INTEGER);"
    "CREATE TABLE orders(id INTEGER PRIMARY KEY, customer INTEGER, amount INTEGER);"
    "CREATE INDEX orders_customer ON orders(customer);"
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 60)"
    " INSERT INTO customer SELECT i, 'name ' || i, i % 7 FROM n;"
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 400)"
    " INSERT INTO orders SELECT i, i % 60 + 1, i * 7 % 100 FROM n;";

static const char *const QUERIES[] = {
    "SELECT c.name, o.amount FROM customer c, orders o WHERE o.customer = c.id AND c.region = 3 ORDER BY o.amount",
    "SELECT region, count(*), sum(id) FROM customer GROUP BY region",
    "SELECT id FROM orders WHERE customer = 5 UNION SELECT id FROM customer WHERE region < 2",
    "SELECT name FROM customer WHERE id IN (SELECT customer FROM orders WHERE amount > 90)",
};

int main(int argc, char **argv) {
  sqlite3 *database;
  int explains = argc > 1 && !strcmp(argv[1], "explain");
  if (sqlite3_open(":memory:", &database) || sqlite3_exec(database, SETUP, 0, 0, 0)) return 1;
  for (unsigned q = 0; q < sizeof QUERIES / sizeof *QUERIES; q++) {
    char text[400];
    sqlite3_stmt *statement;
    int rows = 0;
    snprintf(text, sizeof text, "%s%s", explains ? "EXPLAIN QUERY PLAN " : "", QUERIES[q]);
    if (sqlite3_prepare_v2(database, text, -1, &statement, 0)) return 2;
    while (sqlite3_step(statement) == SQLITE_ROW) {
      rows++;
      if (explains)
        printf("%u|%d|%d|%s\n", q, sqlite3_column_int(statement, 0), sqlite3_column_int(statement, 1),
               (const char *)sqlite3_column_text(statement, 3));
    }
    sqlite3_finalize(statement);
    if (!explains) printf("%d rows\n", rows);
  }
  return sqlite3_close(database);
}
