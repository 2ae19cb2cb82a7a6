/* Who does which transaction when, clause 5.2: ten terminals a warehouse, each with a deck of cards and times to wait. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tpcc.h"

enum kind { NEW_ORDER, PAYMENT, ORDER_STATUS, DELIVERY, STOCK_LEVEL, KINDS };

enum {
    TERMINALS_PER_WAREHOUSE = 10,
    DECK = 23,          /* cards; clause 5.2.4.2 */
    NANOSECONDS = 1000000000,
};

/* Of each kind: cards in a deck, and keying and mean think time in seconds, clauses 5.2.4.2 and 5.2.5.7. */
static const struct {
    const char *name;
    int cards;
    double keying, thinking;
} kinds[KINDS] = {
    [NEW_ORDER] = {"New-Order", 10, 18, 12},
    [PAYMENT] = {"Payment", 10, 3, 12},
    [ORDER_STATUS] = {"Order-Status", 1, 2, 10},
    [DELIVERY] = {"Delivery", 1, 2, 5},
    [STOCK_LEVEL] = {"Stock-Level", 1, 2, 5},
};

struct terminal {
    int64_t warehouse, district; /* the district is that of its stock levels */
    enum kind deck[DECK];
    int next;      /* card */
    int64_t ready; /* when it begins its next transaction, in ns */
};

/* What was done of each kind. */
static struct {
    int64_t count, rolled_back, total_ns, longest_ns;
} done[KINDS];

/* Deliveries that are deferred (clause 2.7.2), and districts that had nothing to deliver. */
static struct {
    int64_t warehouse, carrier;
} deferred[DECK];
static int deferrals;
static int64_t skipped_deliveries;

/* Variables that the measurement reads by name; updated after each transaction. */
volatile uint64_t tpcc_transactions; /* transactions done */
volatile uint64_t tpcc_page_hits;    /* page-cache hits since the first transaction */
volatile uint64_t tpcc_page_misses;  /* page-cache misses since the first transaction */

static void update_gauges(void) {
    tpcc_page_hits += take_page_hits();
    tpcc_page_misses += take_page_misses();
    tpcc_transactions++;
}

static int64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * (int64_t)NANOSECONDS + time.tv_nsec;
}

static void wait_until(int64_t when) {
    struct timespec time = {.tv_sec = when / NANOSECONDS, .tv_nsec = when % NANOSECONDS};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, NULL) != 0) {}
}

/* ---- Inputs ---- */

static int64_t other_warehouse(const struct scale *scale, int64_t home) {
    int64_t other = random_between(1, scale->warehouses - 1);
    return other + (other >= home);
}

static void choose_customer(const struct scale *scale, struct customer_key *key) {
    key->number = 0;
    if (in_percent(60)) random_last_name(scale, key->last);
    else key->number = random_customer(scale);
}

/* Orders take the rows of the stock in the order of their lines: if all orders have the same one, none waits for another that waits
 * for it. */
static int compare_lines(const void *a, const void *b) {
    const struct order_line *one = a, *other = b;
    if (one->supply_warehouse != other->supply_warehouse) return one->supply_warehouse < other->supply_warehouse ? -1 : 1;
    return (one->item > other->item) - (one->item < other->item);
}

/* Clause 2.4.1: one order in a hundred names an item that does not exist, in its last line. */
static struct new_order draw_new_order(const struct scale *scale, int64_t warehouse) {
    struct new_order input = {
        .warehouse = warehouse,
        .district = random_between(1, DISTRICTS),
        .customer = random_customer(scale),
        .lines = (int)random_between(FEWEST_LINES, MOST_LINES),
    };
    bool is_rolled_back = in_percent(1);
    for (int i = 0; i < input.lines; i++) {
        struct order_line *line = &input.line[i];
        line->item = is_rolled_back && i == input.lines - 1 ? scale->items + 1 : random_item(scale);
        bool is_remote = scale->warehouses > 1 && in_percent(1);
        line->supply_warehouse = is_remote ? other_warehouse(scale, warehouse) : warehouse;
        line->quantity = random_between(1, 10);
    }
    qsort(input.line, (size_t)(input.lines - is_rolled_back), sizeof input.line[0], compare_lines);
    return input;
}

/* Clause 2.5.1: 15 of 100 customers are of another warehouse. */
static struct payment draw_payment(const struct scale *scale, int64_t warehouse) {
    struct payment input = {.warehouse = warehouse, .district = random_between(1, DISTRICTS)};
    bool is_remote = scale->warehouses > 1 && in_percent(15);
    input.customer.warehouse = is_remote ? other_warehouse(scale, warehouse) : warehouse;
    input.customer.district = is_remote ? random_between(1, DISTRICTS) : input.district;
    choose_customer(scale, &input.customer);
    input.amount = random_between(100, 500000);
    return input;
}

/* ---- A terminal's work ---- */

static enum kind draw_card(struct terminal *terminal) {
    if (terminal->next == DECK) {
        for (int i = DECK - 1; i > 0; i--) {
            int64_t other = random_between(0, i);
            enum kind card = terminal->deck[i];
            terminal->deck[i] = terminal->deck[other];
            terminal->deck[other] = card;
        }
        terminal->next = 0;
    }
    return terminal->deck[terminal->next++];
}

/* Does a transaction; false if it was rolled back. */
static bool transact(enum kind kind, struct terminal *terminal, const struct scale *scale) {
    switch (kind) {
    case NEW_ORDER: {
        struct new_order input = draw_new_order(scale, terminal->warehouse);
        return tpcc_new_order(&input) >= 0;
    }
    case PAYMENT: {
        struct payment input = draw_payment(scale, terminal->warehouse);
        tpcc_payment(&input);
        return true;
    }
    case ORDER_STATUS: {
        struct customer_key input = {.warehouse = terminal->warehouse, .district = random_between(1, DISTRICTS)};
        choose_customer(scale, &input);
        tpcc_order_status(&input);
        return true;
    }
    case DELIVERY:
        deferred[deferrals].warehouse = terminal->warehouse;
        deferred[deferrals++].carrier = random_between(1, 10);
        return true;
    default:
        tpcc_stock_level(terminal->warehouse, terminal->district, random_between(10, 20));
        return true;
    }
}

static void account(enum kind kind, int64_t ns) {
    done[kind].count++;
    done[kind].total_ns += ns;
    if (ns > done[kind].longest_ns) done[kind].longest_ns = ns;
    update_gauges();
}

/* What terminals deferred is done when none of them waits for an answer. */
static void deliver_deferred(void) {
    while (deferrals > 0) {
        int64_t begin = now();
        deferrals--;
        skipped_deliveries += tpcc_delivery(deferred[deferrals].warehouse, deferred[deferrals].carrier);
        account(DELIVERY, now() - begin);
    }
}

/* Keying comes before a transaction, thinking after it: at most ten times the mean (clause 5.2.5.4). */
static int64_t waiting_time(enum kind kind, int64_t percent) {
    double uniform = (double)random_between(1, 1000000) / 1000000, thinking = -log(uniform) * kinds[kind].thinking;
    if (thinking > 10 * kinds[kind].thinking) thinking = 10 * kinds[kind].thinking;
    return (int64_t)((kinds[kind].keying + thinking) * NANOSECONDS) / 100 * percent;
}

/* Requests come to a server in any order of the terminals. */
static void shuffle(struct terminal *terminals, int64_t count) {
    for (int64_t i = count - 1; i > 0; i--) {
        int64_t other = random_between(0, i);
        struct terminal terminal = terminals[i];
        terminals[i] = terminals[other];
        terminals[other] = terminal;
    }
}

static struct terminal *first_ready(struct terminal *terminals, int64_t count) {
    struct terminal *first = terminals;
    for (int64_t i = 1; i < count; i++)
        if (terminals[i].ready < first->ready) first = &terminals[i];
    return first;
}

/* Those of all warehouses from the first one on. */
static struct terminal *make_terminals(int64_t first_warehouse, int64_t count) {
    struct terminal *terminals = calloc((size_t)count, sizeof *terminals);
    if (terminals == NULL) fail("not enough memory for %" PRId64 " terminals", count);
    for (int64_t i = 0; i < count; i++) {
        struct terminal *terminal = &terminals[i];
        terminal->warehouse = first_warehouse + i / TERMINALS_PER_WAREHOUSE;
        terminal->district = 1 + i % DISTRICTS;
        terminal->next = DECK;
        for (int kind = 0, card = 0; kind < KINDS; kind++)
            for (int i = 0; i < kinds[kind].cards; i++) terminal->deck[card++] = (enum kind)kind;
    }
    return terminals;
}

static void report(void) {
    printf("%-12s %12s %12s %14s %14s\n", "transaction", "done", "rolled back", "mean (us)", "longest (us)");
    for (int kind = 0; kind < KINDS; kind++) {
        int64_t count = done[kind].count;
        printf("%-12s %12" PRId64 " %12" PRId64 " %14.1f %14.1f\n", kinds[kind].name, count, done[kind].rolled_back,
               count == 0 ? 0.0 : (double)done[kind].total_ns / (double)count / 1000, (double)done[kind].longest_ns / 1000);
    }
    printf("districts with nothing to deliver: %" PRId64 "\n", skipped_deliveries);
    if (HAS_PAGE_COUNTS)
        printf("page hits: %" PRIu64 "\npage misses: %" PRIu64 "\n", tpcc_page_hits, tpcc_page_misses);
}

void run(const struct run *options, const struct scale *scale) {
    random_state = (uint64_t)options->seed;
    draw_constants(false);
    int64_t warehouses = options->warehouse == 0 ? scale->warehouses : 1;
    int64_t count = warehouses * TERMINALS_PER_WAREHOUSE;
    if (options->warehouse > scale->warehouses) fail("there are %" PRId64 " warehouses only", scale->warehouses);
    struct terminal *terminals = make_terminals(options->warehouse == 0 ? 1 : options->warehouse, count);
    if (options->is_shuffled) shuffle(terminals, count);
    int64_t begin = now();
    for (int64_t i = 0; i < count; i++) terminals[i].ready = begin + i;
    take_page_hits();
    take_page_misses();

    for (int64_t number = 1; number <= options->transactions; number++) {
        if (number == options->steady_after + 1) tpcc_steady_state();
        struct terminal *terminal = first_ready(terminals, count);
        enum kind kind = draw_card(terminal);
        if (options->waiting_percent > 0) wait_until(terminal->ready);
        int64_t start = now();
        if (!transact(kind, terminal, scale)) done[kind].rolled_back++;
        int64_t end = now();
        if (kind != DELIVERY) account(kind, end - start);
        /* Without waiting, terminals take turns. */
        terminal->ready = options->waiting_percent > 0 ? end + waiting_time(kind, options->waiting_percent)
                                                       : terminal->ready + count;
        deliver_deferred();
        if (options->checkpoint_every > 0 && number % options->checkpoint_every == 0) tpcc_checkpoint();
    }
    tpcc_checkpoint();
    free(terminals);
    report();
}
