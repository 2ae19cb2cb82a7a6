/* tpcc: the TPC-C benchmark on SQLite's C interface or on PostgreSQL's, after revision 5.11 of its specification.
 *
 * database.h   what the program needs of a database
 * database.c   SQLite in this process
 * postgresql.c a server of PostgreSQL, by libpq
 * random.c     random numbers and texts, clause 2.1.6 and 4.3.2
 * load.c       the schema and the initial database, clauses 1.3 and 4.3.3
 * transactions.c  the five transactions, clauses 2.4 to 2.8
 * terminals.c  who does which transaction when, clause 5.2
 * check.c      the consistency conditions, clause 3.3.2
 * main.c       the command line
 *
 * Amounts of money are integers, in cents; taxes and discounts, in 1/10,000; times, in seconds.
 */
#ifndef TPCC_H
#define TPCC_H

#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>

#include "database.h"

enum {
    DISTRICTS = 10,      /* of a warehouse */
    FEWEST_LINES = 5,    /* of an order */
    MOST_LINES = 15,
    NAME_LENGTH = 16,    /* of a last name */
    DATA_LENGTH = 500,   /* of a customer's data */
    TEXT_LENGTH = 512,   /* room for the longest column */
};

/* How many rows the tables have. */
struct scale {
    int64_t warehouses;
    int64_t items;     /* 100,000 as specified */
    int64_t customers; /* of a district, 3,000 as specified; each begins with one order */
};

/* ---- main.c ---- */

/* Ends the program with a message. */
_Noreturn void fail(const char *format, ...);

/* ---- random.c ---- */

extern uint64_t random_state;

/* Uniform in least .. most. */
int64_t random_between(int64_t least, int64_t most);
/* Whether something happens that has this probability. */
bool in_percent(int percent);
/* The constants of non-uniform numbers: of loading, or of a run, which may differ from those of loading. */
void draw_constants(bool is_load);
int64_t random_customer(const struct scale *scale);
int64_t random_item(const struct scale *scale);
/* The last name with a number, of which there are at most `customers` / 3. */
void last_name(int64_t number, char *name);
void random_last_name(const struct scale *scale, char *name);
/* Letters and digits; returns `text`. */
const char *random_text(int least, int most, char *text);
const char *random_digits(int count, char *text);

/* ---- load.c ---- */

void load(const struct scale *scale);
struct scale read_scale(void);

/* ---- transactions.c ---- */

struct order_line {
    int64_t item, supply_warehouse, quantity;
};
struct new_order {
    int64_t warehouse, district, customer;
    int lines;
    struct order_line line[MOST_LINES];
};
/* A customer, by number, or by last name if the number is 0. */
struct customer_key {
    int64_t warehouse, district, number;
    char last[NAME_LENGTH + 1];
};
struct payment {
    int64_t warehouse, district, amount;
    struct customer_key customer;
};

void prepare_transactions(void);
void finalize_transactions(void);
/* Each returns what a terminal shows of it; a new order is rolled back, and the result negative, if an item does not exist. */
int64_t tpcc_new_order(const struct new_order *input);
int64_t tpcc_payment(const struct payment *input);
int64_t tpcc_order_status(const struct customer_key *input);
/* Returns the number of districts that had no order to deliver. */
int64_t tpcc_delivery(int64_t warehouse, int64_t carrier);
int64_t tpcc_stock_level(int64_t warehouse, int64_t district, int64_t threshold);
void tpcc_checkpoint(void);
void tpcc_steady_state(void);

/* ---- terminals.c ---- */

struct run {
    int64_t transactions, seed, cache_pages, checkpoint_every, waiting_percent;
    int64_t steady_after; /* transactions; negative for never */
    int64_t warehouse;    /* whose terminals do transactions; 0 for all */
    bool is_shuffled;     /* the order of the terminals */
    bool is_unchecked;
};

void run(const struct run *options, const struct scale *scale);

/* ---- check.c ---- */

/* Says which conditions do not hold. */
bool check_conditions(bool is_loaded_only);

#endif
