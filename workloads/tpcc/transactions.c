/* The five transactions, clauses 2.4 to 2.8. Each is a function, which is a unit of work: from BEGIN to COMMIT, and nothing
 * else. What a terminal draws and shows lies outside. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "tpcc.h"

enum statement {
    BEGIN,
    COMMIT,
    ROLLBACK,
    /* Of several transactions. */
    FIND_CUSTOMER_BY_NAME,
    /* New-Order. */
    GET_WAREHOUSE_TAX,
    TAKE_ORDER_NUMBER,
    GET_CUSTOMER_DISCOUNT,
    INSERT_ORDER,
    INSERT_NEW_ORDER,
    GET_ITEM,
    GET_STOCK,
    UPDATE_STOCK,
    INSERT_LINE,
    /* Payment. */
    PAY_WAREHOUSE,
    PAY_DISTRICT,
    PAY_CUSTOMER,
    GET_CUSTOMER_DATA,
    SET_CUSTOMER_DATA,
    INSERT_HISTORY,
    /* Order-Status. */
    GET_CUSTOMER,
    GET_LAST_ORDER,
    GET_LINES,
    /* Delivery. */
    GET_OLDEST_ORDER,
    DELETE_NEW_ORDER,
    SET_CARRIER,
    DELIVER_LINES,
    SUM_LINES,
    CREDIT_CUSTOMER,
    /* Stock-Level. */
    GET_NEXT_ORDER,
    COUNT_LOW_STOCK,
    STATEMENTS
};

static const char *const statement_text[STATEMENTS] = {
    [BEGIN] = "BEGIN",
    [COMMIT] = "COMMIT",
    [ROLLBACK] = "ROLLBACK",
    [FIND_CUSTOMER_BY_NAME] = "SELECT c_id FROM customer WHERE c_w_id = ?1 AND c_d_id = ?2 AND c_last = ?3 ORDER BY c_first",
    [GET_WAREHOUSE_TAX] = "SELECT w_tax FROM warehouse WHERE w_id = ?1",
    [TAKE_ORDER_NUMBER] = "UPDATE district SET d_next_o_id = d_next_o_id + 1 WHERE d_w_id = ?1 AND d_id = ?2"
                          " RETURNING d_next_o_id - 1, d_tax",
    [GET_CUSTOMER_DISCOUNT] = "SELECT c_discount, c_last, c_credit FROM customer"
                              " WHERE c_w_id = ?1 AND c_d_id = ?2 AND c_id = ?3",
    [INSERT_ORDER] = "INSERT INTO orders VALUES(?1, ?2, ?3, ?4, ?5, NULL, ?6, ?7)",
    [INSERT_NEW_ORDER] = "INSERT INTO new_orders VALUES(?1, ?2, ?3)",
    [GET_ITEM] = "SELECT i_price, i_name, i_data FROM item WHERE i_id = ?1",
    [GET_STOCK] = "SELECT s_quantity, s_data, s_dist_01, s_dist_02, s_dist_03, s_dist_04, s_dist_05, s_dist_06, s_dist_07,"
                  " s_dist_08, s_dist_09, s_dist_10 FROM stock WHERE s_w_id = ?1 AND s_i_id = ?2",
    [UPDATE_STOCK] = "UPDATE stock SET s_quantity = ?3, s_ytd = s_ytd + ?4, s_order_cnt = s_order_cnt + 1,"
                     " s_remote_cnt = s_remote_cnt + ?5 WHERE s_w_id = ?1 AND s_i_id = ?2",
    [INSERT_LINE] = "INSERT INTO order_lines VALUES(?1, ?2, ?3, ?4, ?5, ?6, NULL, ?7, ?8, ?9)",
    [PAY_WAREHOUSE] = "UPDATE warehouse SET w_ytd = w_ytd + ?2 WHERE w_id = ?1"
                      " RETURNING w_name, w_street_1, w_street_2, w_city, w_state, w_zip",
    [PAY_DISTRICT] = "UPDATE district SET d_ytd = d_ytd + ?3 WHERE d_w_id = ?1 AND d_id = ?2"
                     " RETURNING d_name, d_street_1, d_street_2, d_city, d_state, d_zip",
    [PAY_CUSTOMER] = "UPDATE customer SET c_balance = c_balance - ?4, c_ytd_payment = c_ytd_payment + ?4,"
                     " c_payment_cnt = c_payment_cnt + 1 WHERE c_w_id = ?1 AND c_d_id = ?2 AND c_id = ?3"
                     " RETURNING c_balance, c_credit, c_first, c_middle, c_last, c_street_1, c_street_2, c_city, c_state,"
                     " c_zip, c_phone, c_since, c_credit_lim, c_discount",
    [GET_CUSTOMER_DATA] = "SELECT c_data FROM customer WHERE c_w_id = ?1 AND c_d_id = ?2 AND c_id = ?3",
    [SET_CUSTOMER_DATA] = "UPDATE customer SET c_data = ?4 WHERE c_w_id = ?1 AND c_d_id = ?2 AND c_id = ?3",
    [INSERT_HISTORY] = "INSERT INTO history VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
    [GET_CUSTOMER] = "SELECT c_balance, c_first, c_middle, c_last FROM customer"
                     " WHERE c_w_id = ?1 AND c_d_id = ?2 AND c_id = ?3",
    [GET_LAST_ORDER] = "SELECT o_id, o_entry_d, o_carrier_id FROM orders WHERE o_w_id = ?1 AND o_d_id = ?2 AND o_c_id = ?3"
                       " ORDER BY o_id DESC LIMIT 1",
    [GET_LINES] = "SELECT ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, ol_delivery_d FROM order_lines"
                  " WHERE ol_w_id = ?1 AND ol_d_id = ?2 AND ol_o_id = ?3",
    [GET_OLDEST_ORDER] = "SELECT no_o_id FROM new_orders WHERE no_w_id = ?1 AND no_d_id = ?2 ORDER BY no_o_id LIMIT 1",
    [DELETE_NEW_ORDER] = "DELETE FROM new_orders WHERE no_w_id = ?1 AND no_d_id = ?2 AND no_o_id = ?3",
    [SET_CARRIER] = "UPDATE orders SET o_carrier_id = ?4 WHERE o_w_id = ?1 AND o_d_id = ?2 AND o_id = ?3 RETURNING o_c_id",
    [DELIVER_LINES] = "UPDATE order_lines SET ol_delivery_d = ?4 WHERE ol_w_id = ?1 AND ol_d_id = ?2 AND ol_o_id = ?3",
    [SUM_LINES] = "SELECT sum(ol_amount) FROM order_lines WHERE ol_w_id = ?1 AND ol_d_id = ?2 AND ol_o_id = ?3",
    [CREDIT_CUSTOMER] = "UPDATE customer SET c_balance = c_balance + ?4, c_delivery_cnt = c_delivery_cnt + 1"
                        " WHERE c_w_id = ?1 AND c_d_id = ?2 AND c_id = ?3",
    [GET_NEXT_ORDER] = "SELECT d_next_o_id FROM district WHERE d_w_id = ?1 AND d_id = ?2",
    [COUNT_LOW_STOCK] = "SELECT count(DISTINCT ol_i_id) FROM order_lines JOIN stock ON s_w_id = ?1 AND s_i_id = ol_i_id"
                        " WHERE ol_w_id = ?1 AND ol_d_id = ?2 AND ol_o_id BETWEEN ?3 - 20 AND ?3 - 1 AND s_quantity < ?4",
};

static query *prepared[STATEMENTS];

/* The transaction that a statement belongs to: a server sees by the names of statements what is done. */
static const char *transaction_of(int which) {
    static const struct {
        enum statement first;
        const char *name;
    } transactions[] = {
        {GET_NEXT_ORDER, "stock_level"}, {GET_OLDEST_ORDER, "delivery"}, {GET_CUSTOMER, "order_status"},
        {PAY_WAREHOUSE, "payment"},      {GET_WAREHOUSE_TAX, "new_order"},
    };
    for (unsigned i = 0; i < sizeof transactions / sizeof transactions[0]; i++)
        if (which >= (int)transactions[i].first) return transactions[i].name;
    return "any";
}

void prepare_transactions(void) {
    for (int i = 0; i < STATEMENTS; i++) {
        char name[32];
        snprintf(name, sizeof name, "%s_%d", transaction_of(i), i);
        prepared[i] = prepare_as(name, statement_text[i]);
    }
}

void finalize_transactions(void) {
    for (int i = 0; i < STATEMENTS; i++) {
        finalize(prepared[i]);
        prepared[i] = NULL;
    }
}

static void transact(enum statement which) {
    step(prepared[which]);
}

/* Binds integers and advances to the only row, which the caller resets after it has read it. */
#define GET(which, ...) (BIND(prepared[which], __VA_ARGS__), only_row(prepared[which]), prepared[which])
/* Binds integers, and runs a statement without a result. The number of rows that it changed. */
#define DO(which, ...) (BIND(prepared[which], __VA_ARGS__), step(prepared[which]))

static int64_t integer(query *statement, int column) {
    return column_integer(statement, column);
}

static int64_t take_integer(query *statement) {
    int64_t value = integer(statement, 0);
    reset(statement);
    return value;
}

/* Copies the text of a column, as the terminal shows it. */
static void take_text(query *statement, int column, char *text, size_t room) {
    const char *value = column_text(statement, column);
    snprintf(text, room, "%s", value == NULL ? "" : value);
}

/* The customer's number: with a last name, the middle one of those with it, by first names (clause 2.5.2.2). */
static int64_t find_customer(const struct customer_key *key) {
    if (key->number != 0) return key->number;
    int64_t found[TEXT_LENGTH];
    int count = 0;
    query *find = prepared[FIND_CUSTOMER_BY_NAME];
    BIND(find, key->warehouse, key->district);
    bind_text(find, 3, key->last);
    while (next_row(find))
        if (count < TEXT_LENGTH) found[count++] = integer(find, 0);
    if (count == 0) fail("no customer is named %s", key->last);
    return found[(count - 1) / 2];
}

/* ---- New-Order, clause 2.4 ---- */

struct taken_order {
    int64_t number, total;
};

/* One line, or false if its item does not exist. */
static bool take_line(const struct new_order *input, struct taken_order *order, int number) {
    const struct order_line *line = &input->line[number];
    query *item = prepared[GET_ITEM];
    BIND(item, line->item);
    if (!next_row(item)) return false;
    int64_t amount = line->quantity * integer(item, 0);
    char name[TEXT_LENGTH], data[TEXT_LENGTH];
    take_text(item, 1, name, sizeof name);
    take_text(item, 2, data, sizeof data);
    reset(item);

    query *stock = GET(GET_STOCK, line->supply_warehouse, line->item);
    int64_t quantity = integer(stock, 0);
    char stock_data[TEXT_LENGTH], district[TEXT_LENGTH];
    take_text(stock, 1, stock_data, sizeof stock_data);
    take_text(stock, 1 + (int)input->district, district, sizeof district);
    reset(stock);
    /* The terminal shows whether both are original. */
    bool is_original = strstr(data, "ORIGINAL") != NULL && strstr(stock_data, "ORIGINAL") != NULL;
    (void)is_original;

    quantity -= line->quantity;
    if (quantity < 10) quantity += 91;
    DO(UPDATE_STOCK, line->supply_warehouse, line->item, quantity, line->quantity,
       line->supply_warehouse != input->warehouse);
    query *insert = prepared[INSERT_LINE];
    bind_text(insert, 9, district);
    DO(INSERT_LINE, input->warehouse, input->district, order->number, number + 1, line->item, line->supply_warehouse,
       line->quantity, amount);
    order->total += amount;
    return true;
}

__attribute__((noinline)) int64_t tpcc_new_order(const struct new_order *input) {
    transact(BEGIN);
    int64_t warehouse_tax = take_integer(GET(GET_WAREHOUSE_TAX, input->warehouse));
    query *district = GET(TAKE_ORDER_NUMBER, input->warehouse, input->district);
    struct taken_order order = {.number = integer(district, 0)};
    int64_t tax = warehouse_tax + integer(district, 1);
    reset(district);
    query *customer = GET(GET_CUSTOMER_DISCOUNT, input->warehouse, input->district, input->customer);
    int64_t discount = integer(customer, 0);
    char last[TEXT_LENGTH], credit[TEXT_LENGTH];
    take_text(customer, 1, last, sizeof last);
    take_text(customer, 2, credit, sizeof credit);
    reset(customer);

    bool all_local = true;
    for (int i = 0; i < input->lines; i++) all_local &= input->line[i].supply_warehouse == input->warehouse;
    DO(INSERT_ORDER, input->warehouse, input->district, order.number, input->customer, time(NULL), input->lines, all_local);
    DO(INSERT_NEW_ORDER, input->warehouse, input->district, order.number);
    for (int i = 0; i < input->lines; i++)
        if (!take_line(input, &order, i)) {
            transact(ROLLBACK);
            return -1;
        }
    transact(COMMIT);
    return order.total * (10000 - discount) / 10000 * (10000 + tax) / 10000;
}

/* ---- Payment, clause 2.5 ---- */

/* Puts the payment before the data of a customer with bad credit. */
static void add_to_data(const struct payment *input, const struct customer_key *key) {
    char data[DATA_LENGTH + 1], old[TEXT_LENGTH];
    query *get = GET(GET_CUSTOMER_DATA, key->warehouse, key->district, key->number);
    take_text(get, 0, old, sizeof old);
    reset(get);
    snprintf(data, sizeof data, "%" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 " %s", key->number,
             key->district, key->warehouse, input->district, input->warehouse, input->amount, old);
    bind_text(prepared[SET_CUSTOMER_DATA], 4, data);
    DO(SET_CUSTOMER_DATA, key->warehouse, key->district, key->number);
}

__attribute__((noinline)) int64_t tpcc_payment(const struct payment *input) {
    transact(BEGIN);
    struct customer_key key = input->customer;
    char warehouse[TEXT_LENGTH], district[TEXT_LENGTH], credit[TEXT_LENGTH];
    take_text(GET(PAY_WAREHOUSE, input->warehouse, input->amount), 0, warehouse, sizeof warehouse);
    reset(prepared[PAY_WAREHOUSE]);
    take_text(GET(PAY_DISTRICT, input->warehouse, input->district, input->amount), 0, district, sizeof district);
    reset(prepared[PAY_DISTRICT]);
    key.number = find_customer(&key);
    query *customer = GET(PAY_CUSTOMER, key.warehouse, key.district, key.number, input->amount);
    int64_t balance = integer(customer, 0);
    take_text(customer, 1, credit, sizeof credit);
    reset(customer);
    if (strcmp(credit, "BC") == 0) add_to_data(input, &key);

    char data[2 * TEXT_LENGTH + 8];
    snprintf(data, sizeof data, "%s    %s", warehouse, district);
    bind_text(prepared[INSERT_HISTORY], 8, data);
    DO(INSERT_HISTORY, key.number, key.district, key.warehouse, input->district, input->warehouse, time(NULL), input->amount);
    transact(COMMIT);
    return balance;
}

/* ---- Order-Status, clause 2.6 ---- */

__attribute__((noinline)) int64_t tpcc_order_status(const struct customer_key *input) {
    transact(BEGIN);
    int64_t number = find_customer(input);
    int64_t balance = take_integer(GET(GET_CUSTOMER, input->warehouse, input->district, number));
    int64_t order = take_integer(GET(GET_LAST_ORDER, input->warehouse, input->district, number));
    BIND(prepared[GET_LINES], input->warehouse, input->district, order);
    while (next_row(prepared[GET_LINES]))
        for (int column = 0; column < 5; column++) (void)integer(prepared[GET_LINES], column);
    transact(COMMIT);
    return balance;
}

/* ---- Delivery, clause 2.7 ---- */

/* Takes the oldest new order of a district, or 0 if there is none. While its row is deleted, another terminal may have deleted it:
 * then the order is theirs, and what is the oldest now is looked up. */
static int64_t take_oldest_order(int64_t warehouse, int64_t district) {
    query *oldest = prepared[GET_OLDEST_ORDER];
    for (;;) {
        BIND(oldest, warehouse, district);
        if (!next_row(oldest)) return 0;
        int64_t order = take_integer(oldest);
        if (DO(DELETE_NEW_ORDER, warehouse, district, order) == 1) return order;
    }
}

/* Delivers the oldest order of a district, if there is one. */
static bool deliver(int64_t warehouse, int64_t district, int64_t carrier) {
    int64_t order = take_oldest_order(warehouse, district);
    if (order == 0) return false;
    int64_t customer = take_integer(GET(SET_CARRIER, warehouse, district, order, carrier));
    DO(DELIVER_LINES, warehouse, district, order, time(NULL));
    int64_t amount = take_integer(GET(SUM_LINES, warehouse, district, order));
    DO(CREDIT_CUSTOMER, warehouse, district, customer, amount);
    return true;
}

__attribute__((noinline)) int64_t tpcc_delivery(int64_t warehouse, int64_t carrier) {
    int64_t skipped = 0;
    transact(BEGIN);
    for (int64_t district = 1; district <= DISTRICTS; district++) skipped += !deliver(warehouse, district, carrier);
    transact(COMMIT);
    return skipped;
}

/* ---- Stock-Level, clause 2.8 ---- */

__attribute__((noinline)) int64_t tpcc_stock_level(int64_t warehouse, int64_t district, int64_t threshold) {
    transact(BEGIN);
    int64_t next = take_integer(GET(GET_NEXT_ORDER, warehouse, district));
    int64_t low = take_integer(GET(COUNT_LOW_STOCK, warehouse, district, next, threshold));
    transact(COMMIT);
    return low;
}

/* Copies the log into the database, so that the next transaction starts the log afresh. */
/* Observers begin here: a server sees the question, a program the call. */
__attribute__((noinline)) void tpcc_steady_state(void) {
    mark_steady_state();
}

__attribute__((noinline)) void tpcc_checkpoint(void) {
    checkpoint();
}
