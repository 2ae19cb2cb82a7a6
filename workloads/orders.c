/* orders: order entry on SQLite, with three mistakes that are planted, each of which can be cured by itself.
 *
 * A company has items in stock. The load phase stores them, and keeps a record of each in memory. A transaction orders a few
 * items: it looks at their records, takes them from the stock, writes the orders, and commits. The mistakes are those that an
 * OLTP system was found to have when it was ported to a new processor (Oracle Rdb, 2005):
 *
 *   --records packed|aligned       records without padding, whose fields are at any address; or each at a multiple of its size
 *   --commit scan|touched          a commit looks at every record for those of its transaction; or at a list of these alone
 *   --statements compiled|prepared each statement is compiled when it is executed; or once
 *
 * Units of work: orders_load(), and orders_transaction(), BEGIN to COMMIT.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sqlite3.h"

enum { ITEMS_IN_ORDER = 4 };

/* Where the fields of a record are. */
struct layout {
    size_t kind, item, quantity, next, size;
};

static const struct layout PACKED = {.kind = 0, .item = 1, .quantity = 9, .next = 17, .size = 25};
static const struct layout ALIGNED = {.item = 0, .quantity = 8, .next = 16, .kind = 24, .size = 32};

/* The kinds of records. */
enum { UNTOUCHED, TOUCHED };

enum statement { BEGIN, COMMIT, INSERT_ITEM, TAKE_ITEM, INSERT_ORDER, STATEMENTS };

static const char *const TEXTS[STATEMENTS] = {
    [BEGIN] = "BEGIN IMMEDIATE",
    [COMMIT] = "COMMIT",
    [INSERT_ITEM] = "INSERT INTO items (item, quantity, name) VALUES (?1, ?2, 'item')",
    [TAKE_ITEM] = "UPDATE items SET quantity = quantity - ?2 WHERE item = ?1",
    [INSERT_ORDER] = "INSERT INTO orders (item, quantity) VALUES (?1, ?2)",
};

static const struct layout *layout = &PACKED;
static bool scans = true, compiles = true;
static sqlite3 *database;
static sqlite3_stmt *prepared[STATEMENTS];
static char *records;
static int64_t items = 2000, transactions = 200;
/* The first record of the list of those that the open transaction has touched. */
static char *touched;

static void fail(const char *what)
{
    fprintf(stderr, "orders: %s: %s\n", what, database ? sqlite3_errmsg(database) : strerror(errno));
    exit(EXIT_FAILURE);
}

static int64_t *number(char *record, size_t field)
{
    return (int64_t *)(record + field);
}

static char *record_of(int64_t item)
{
    return records + (size_t)(item - 1) * layout->size;
}

/* Executes a statement with up to two numbers. */
static void execute(enum statement which, int64_t first, int64_t second)
{
    sqlite3_stmt *statement = prepared[which];
    if (!statement && sqlite3_prepare_v2(database, TEXTS[which], -1, &statement, NULL) != SQLITE_OK)
        fail("prepare");
    if (sqlite3_bind_parameter_count(statement) == 2) {
        sqlite3_bind_int64(statement, 1, first);
        sqlite3_bind_int64(statement, 2, second);
    }
    if (sqlite3_step(statement) != SQLITE_DONE)
        fail(TEXTS[which]);
    if (compiles) {
        sqlite3_finalize(statement);
    } else {
        sqlite3_reset(statement);
        prepared[which] = statement;
    }
}

/* The transaction's records are not touched any more. */
static void release_records(void)
{
    if (scans) {
        for (int64_t item = 1; item <= items; item++) {
            char *record = record_of(item);
            if (record[layout->kind] == TOUCHED)
                record[layout->kind] = UNTOUCHED;
        }
        return;
    }
    while (touched) {
        char *record = touched;
        touched = (char *)*number(record, layout->next);
        record[layout->kind] = UNTOUCHED;
    }
}

static void touch(char *record)
{
    if (record[layout->kind] == TOUCHED)
        return;
    record[layout->kind] = TOUCHED;
    *number(record, layout->next) = (int64_t)touched;
    touched = record;
}

void orders_load(void)
{
    execute(BEGIN, 0, 0);
    for (int64_t item = 1; item <= items; item++) {
        char *record = record_of(item);
        *number(record, layout->item) = item;
        *number(record, layout->quantity) = 1000;
        execute(INSERT_ITEM, *number(record, layout->item), *number(record, layout->quantity));
    }
    execute(COMMIT, 0, 0);
}

void orders_transaction(const int64_t ordered[ITEMS_IN_ORDER])
{
    execute(BEGIN, 0, 0);
    touched = NULL;
    for (int i = 0; i < ITEMS_IN_ORDER; i++) {
        char *record = record_of(ordered[i]);
        if (*number(record, layout->quantity) < 1)
            *number(record, layout->quantity) = 1000;
        *number(record, layout->quantity) -= 1;
        touch(record);
        execute(TAKE_ITEM, *number(record, layout->item), 1);
        execute(INSERT_ORDER, *number(record, layout->item), 1);
    }
    execute(COMMIT, 0, 0);
    release_records();
}

/* A choice between two words. */
static bool chosen(const char *option, const char *value, const char *first, const char *second)
{
    if (value && strcmp(value, first) == 0)
        return true;
    if (!value || strcmp(value, second) != 0) {
        fprintf(stderr, "orders: %s is %s or %s\n", option, first, second);
        exit(2);
    }
    return false;
}

static int64_t count(const char *option, const char *value)
{
    int64_t number = value ? strtoll(value, NULL, 10) : 0;
    if (number < 1) {
        fprintf(stderr, "orders: %s is a number from 1\n", option);
        exit(2);
    }
    return number;
}

int main(int argc, char **argv)
{
    const char *path = NULL;
    for (int i = 1; i < argc; i++) {
        const char *option = argv[i], *value = i + 1 < argc ? argv[i + 1] : NULL;
        if (strcmp(option, "--records") == 0)
            layout = chosen(option, value, "packed", "aligned") ? &PACKED : &ALIGNED;
        else if (strcmp(option, "--commit") == 0)
            scans = chosen(option, value, "scan", "touched");
        else if (strcmp(option, "--statements") == 0)
            compiles = chosen(option, value, "compiled", "prepared");
        else if (strcmp(option, "--items") == 0)
            items = count(option, value);
        else if (strcmp(option, "--transactions") == 0)
            transactions = count(option, value);
        else if (!path && option[0] != '-') {
            path = option;
            continue;
        } else {
            path = NULL;
            break;
        }
        i++;
    }
    if (!path) {
        fprintf(stderr, "usage: orders [--records packed|aligned] [--commit scan|touched] "
                        "[--statements compiled|prepared] [--items N] [--transactions N] DATABASE\n");
        return 2;
    }
    unlink(path);
    records = calloc((size_t)items, layout->size);
    if (!records || sqlite3_open(path, &database) != SQLITE_OK)
        fail(path);
    if (sqlite3_exec(database,
                     "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;"
                     "CREATE TABLE items (item INTEGER PRIMARY KEY, quantity INTEGER, name TEXT);"
                     "CREATE TABLE orders (number INTEGER PRIMARY KEY, item INTEGER, quantity INTEGER)",
                     NULL, NULL, NULL) != SQLITE_OK)
        fail("schema");
    orders_load();
    uint64_t random = 1;
    for (int64_t i = 0; i < transactions; i++) {
        int64_t ordered[ITEMS_IN_ORDER];
        for (int k = 0; k < ITEMS_IN_ORDER; k++) {
            random = random * 6364136223846793005u + 1442695040888963407u;
            ordered[k] = 1 + (int64_t)((random >> 33) % (uint64_t)items);
        }
        orders_transaction(ordered);
    }
    for (int i = 0; i < STATEMENTS; i++)
        sqlite3_finalize(prepared[i]);
    sqlite3_close(database);
    return EXIT_SUCCESS;
}
