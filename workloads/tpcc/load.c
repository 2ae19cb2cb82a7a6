/* The initial database, clause 4.3.3. Sizes of tables that the scale reduces stay in proportion. */
#include <stdio.h>
#include <string.h>
#include <stdlib.h>
#include <time.h>

#include "tpcc.h"

/* Rows of some hundred bytes have a row number and an index, small ones are in their primary key's tree, where the database has
 * such tables, as SQLite's documentation of WITHOUT ROWID advises. */
static const char schema[] =
    "CREATE TABLE warehouse(w_id " INTEGER " PRIMARY KEY, w_name TEXT, w_street_1 TEXT, w_street_2 TEXT, w_city TEXT,"
    " w_state TEXT, w_zip TEXT, w_tax " INTEGER ", w_ytd " INTEGER ");"
    "CREATE TABLE district(d_w_id " INTEGER ", d_id " INTEGER ", d_name TEXT, d_street_1 TEXT, d_street_2 TEXT, d_city TEXT,"
    " d_state TEXT, d_zip TEXT, d_tax " INTEGER ", d_ytd " INTEGER ", d_next_o_id " INTEGER ", PRIMARY KEY(d_w_id, d_id));"
    "CREATE TABLE customer(c_w_id " INTEGER ", c_d_id " INTEGER ", c_id " INTEGER ", c_first TEXT, c_middle TEXT, c_last TEXT,"
    " c_street_1 TEXT, c_street_2 TEXT, c_city TEXT, c_state TEXT, c_zip TEXT, c_phone TEXT, c_since " INTEGER ","
    " c_credit TEXT, c_credit_lim " INTEGER ", c_discount " INTEGER ", c_balance " INTEGER ", c_ytd_payment " INTEGER ","
    " c_payment_cnt " INTEGER ", c_delivery_cnt " INTEGER ", c_data TEXT, PRIMARY KEY(c_w_id, c_d_id, c_id));"
    "CREATE TABLE history(h_c_id " INTEGER ", h_c_d_id " INTEGER ", h_c_w_id " INTEGER ", h_d_id " INTEGER ", h_w_id " INTEGER ","
    " h_date " INTEGER ", h_amount " INTEGER ", h_data TEXT);"
    "CREATE TABLE new_orders(no_w_id " INTEGER ", no_d_id " INTEGER ", no_o_id " INTEGER ","
    " PRIMARY KEY(no_w_id, no_d_id, no_o_id)) " IN_PRIMARY_KEY ";"
    "CREATE TABLE orders(o_w_id " INTEGER ", o_d_id " INTEGER ", o_id " INTEGER ", o_c_id " INTEGER ", o_entry_d " INTEGER ","
    " o_carrier_id " INTEGER ", o_ol_cnt " INTEGER ", o_all_local " INTEGER ", PRIMARY KEY(o_w_id, o_d_id, o_id)) " IN_PRIMARY_KEY ";"
    "CREATE TABLE order_lines(ol_w_id " INTEGER ", ol_d_id " INTEGER ", ol_o_id " INTEGER ", ol_number " INTEGER ", ol_i_id " INTEGER ","
    " ol_supply_w_id " INTEGER ", ol_delivery_d " INTEGER ", ol_quantity " INTEGER ", ol_amount " INTEGER ", ol_dist_info TEXT,"
    " PRIMARY KEY(ol_w_id, ol_d_id, ol_o_id, ol_number)) " IN_PRIMARY_KEY ";"
    "CREATE TABLE item(i_id " INTEGER " PRIMARY KEY, i_im_id " INTEGER ", i_name TEXT, i_price " INTEGER ", i_data TEXT);"
    "CREATE TABLE stock(s_w_id " INTEGER ", s_i_id " INTEGER ", s_quantity " INTEGER ", s_dist_01 TEXT, s_dist_02 TEXT,"
    " s_dist_03 TEXT, s_dist_04 TEXT, s_dist_05 TEXT, s_dist_06 TEXT, s_dist_07 TEXT, s_dist_08 TEXT, s_dist_09 TEXT,"
    " s_dist_10 TEXT, s_ytd " INTEGER ", s_order_cnt " INTEGER ", s_remote_cnt " INTEGER ", s_data TEXT,"
    " PRIMARY KEY(s_w_id, s_i_id));";

/* Made after the rows, which is faster. */
static const char indexes[] =
    "CREATE INDEX customer_by_name ON customer(c_w_id, c_d_id, c_last, c_first);"
    "CREATE INDEX orders_by_customer ON orders(o_w_id, o_d_id, o_c_id, o_id);";

/* A statement whose parameters are bound one after another. */
static query *row;
static int parameter;

static void integer(int64_t value) {
    bind_integer(row, ++parameter, value);
}

static void null(void) {
    bind_null(row, ++parameter);
}

static void text(const char *value) {
    bind_copy(row, ++parameter, value);
}

static void random_characters(int least, int most) {
    char value[TEXT_LENGTH];
    text(random_text(least, most, value));
}

static void insert(void) {
    step(row);
    parameter = 0;
}

static void begin_table(const char *sql) {
    row = prepare(sql);
    parameter = 0;
}

static void end_table(void) {
    finalize(row);
}

/* Street, street, city, state and zip, clause 4.3.2.7. */
static void address(void) {
    char zip[10];
    random_characters(10, 20);
    random_characters(10, 20);
    random_characters(10, 20);
    random_characters(2, 2);
    random_digits(4, zip);
    strcat(zip, "11111");
    text(zip);
}

/* Data of items and stock, of which a tenth contains ORIGINAL. */
static void original_data(void) {
    char data[TEXT_LENGTH];
    random_text(26, 50, data);
    if (in_percent(10)) memcpy(data + random_between(0, (int64_t)strlen(data) - 8), "ORIGINAL", 8);
    text(data);
}

static void load_items(const struct scale *scale) {
    begin_table("INSERT INTO item VALUES(?,?,?,?,?)");
    for (int64_t item = 1; item <= scale->items; item++) {
        integer(item);
        integer(random_between(1, 10000));
        random_characters(14, 24);
        integer(random_between(100, 10000));
        original_data();
        insert();
    }
    end_table();
}

static void load_stock(const struct scale *scale, int64_t warehouse) {
    begin_table("INSERT INTO stock VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,0,0,0,?)");
    for (int64_t item = 1; item <= scale->items; item++) {
        integer(warehouse);
        integer(item);
        integer(random_between(10, 100));
        for (int district = 0; district < DISTRICTS; district++) random_characters(24, 24);
        original_data();
        insert();
    }
    end_table();
}

static void load_customers(const struct scale *scale, int64_t warehouse, int64_t district, int64_t now) {
    begin_table("INSERT INTO customer VALUES(?,?,?,?,'OE',?,?,?,?,?,?,?,?,?,5000000,?,-1000,1000,1,0,?)");
    for (int64_t number = 1; number <= scale->customers; number++) {
        char value[TEXT_LENGTH];
        integer(warehouse);
        integer(district);
        integer(number);
        random_characters(8, 16);
        /* The first third has each name once. */
        if (number <= scale->customers / 3) last_name(number - 1, value);
        else random_last_name(scale, value);
        text(value);
        address();
        text(random_digits(16, value));
        integer(now);
        text(in_percent(10) ? "BC" : "GC");
        integer(random_between(0, 5000));
        random_characters(300, 500);
        insert();
    }
    end_table();
    begin_table("INSERT INTO history VALUES(?,?,?,?,?,?,1000,?)");
    for (int64_t number = 1; number <= scale->customers; number++) {
        integer(number);
        integer(district);
        integer(warehouse);
        integer(district);
        integer(warehouse);
        integer(now);
        random_characters(12, 24);
        insert();
    }
    end_table();
}

static void load_lines(const struct scale *scale, int64_t warehouse, int64_t district, const int8_t *lines, int64_t delivered,
                       int64_t now) {
    begin_table("INSERT INTO order_lines VALUES(?,?,?,?,?,?,?,5,?,?)");
    for (int64_t order = 1; order <= scale->customers; order++)
        for (int64_t line = 1; line <= lines[order - 1]; line++) {
            bool is_delivered = order <= delivered;
            integer(warehouse);
            integer(district);
            integer(order);
            integer(line);
            integer(random_between(1, scale->items));
            integer(warehouse);
            if (is_delivered) integer(now);
            else null();
            integer(is_delivered ? 0 : random_between(1, 999999));
            random_characters(24, 24);
            insert();
        }
    end_table();
}

/* One order of each customer, in random order; the last three of ten are not delivered. */
static void load_orders(const struct scale *scale, int64_t warehouse, int64_t district, int64_t now) {
    int64_t delivered = scale->customers * 7 / 10;
    int64_t *customer = calloc((size_t)scale->customers, sizeof *customer);
    int8_t *lines = calloc((size_t)scale->customers, sizeof *lines);
    if (customer == NULL || lines == NULL) fail("not enough memory for %" PRId64 " orders", scale->customers);
    for (int64_t i = 0; i < scale->customers; i++) {
        int64_t other = random_between(0, i);
        customer[i] = customer[other];
        customer[other] = i + 1;
        lines[i] = (int8_t)random_between(FEWEST_LINES, MOST_LINES);
    }
    begin_table("INSERT INTO orders VALUES(?,?,?,?,?,?,?,1)");
    for (int64_t order = 1; order <= scale->customers; order++) {
        integer(warehouse);
        integer(district);
        integer(order);
        integer(customer[order - 1]);
        integer(now);
        if (order <= delivered) integer(random_between(1, 10));
        else null();
        integer(lines[order - 1]);
        insert();
    }
    end_table();
    load_lines(scale, warehouse, district, lines, delivered, now);
    begin_table("INSERT INTO new_orders VALUES(?,?,?)");
    for (int64_t order = delivered + 1; order <= scale->customers; order++) {
        integer(warehouse);
        integer(district);
        integer(order);
        insert();
    }
    end_table();
    free(customer);
    free(lines);
}

/* Warehouses and districts begin with what their customers have paid. */
static void load_warehouse(const struct scale *scale, int64_t warehouse) {
    int64_t paid = scale->customers * 1000, now = time(NULL);
    begin_table("INSERT INTO warehouse VALUES(?,?,?,?,?,?,?,?,?)");
    integer(warehouse);
    random_characters(6, 10);
    address();
    integer(random_between(0, 2000));
    integer(paid * DISTRICTS);
    insert();
    end_table();
    for (int64_t district = 1; district <= DISTRICTS; district++) {
        begin_table("INSERT INTO district VALUES(?,?,?,?,?,?,?,?,?,?,?)");
        integer(warehouse);
        integer(district);
        random_characters(6, 10);
        address();
        integer(random_between(0, 2000));
        integer(paid);
        integer(scale->customers + 1);
        insert();
        end_table();
        load_customers(scale, warehouse, district, now);
        load_orders(scale, warehouse, district, now);
    }
    load_stock(scale, warehouse);
}

void load(const struct scale *scale) {
    draw_constants(true);
    execute("BEGIN");
    execute_all(schema);
    load_items(scale);
    for (int64_t warehouse = 1; warehouse <= scale->warehouses; warehouse++) load_warehouse(scale, warehouse);
    execute_all(indexes);
    /* Without statistics SQLite finds a customer's orders by the primary key, among all of the district. */
    execute("ANALYZE");
    execute("COMMIT");
}

struct scale read_scale(void) {
    struct scale scale = {
        .warehouses = query_integer("SELECT count(*) FROM warehouse"),
        .items = query_integer("SELECT count(*) FROM item"),
        .customers = query_integer("SELECT count(*) FROM customer WHERE c_w_id = 1 AND c_d_id = 1"),
    };
    if (scale.warehouses < 1 || scale.items < 1 || scale.customers < 1) fail("the database is empty: load it first");
    return scale;
}
