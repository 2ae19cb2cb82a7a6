/* The consistency conditions, clause 3.3.2: each is a query for the number of rows that violate it. */
#include <stdio.h>

#include "tpcc.h"

#define DELIVERED                                                                                                 \
    "(SELECT o_w_id AS w, o_d_id AS d, o_c_id AS c, sum(ol_amount) AS amount FROM orders"                       \
    " JOIN order_lines ON ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id"                             \
    " WHERE ol_delivery_d IS NOT NULL GROUP BY o_w_id, o_d_id, o_c_id)"
#define PAID                                                                                                      \
    "(SELECT h_c_w_id AS w, h_c_d_id AS d, h_c_id AS c, sum(h_amount) AS amount FROM history"                   \
    " GROUP BY h_c_w_id, h_c_d_id, h_c_id)"

static const struct condition {
    const char *says, *violations;
} conditions[] = {
    {"a warehouse's payments are the sum of its districts'",
     "SELECT count(*) FROM warehouse WHERE w_ytd <> (SELECT sum(d_ytd) FROM district WHERE d_w_id = w_id)"},
    {"the next order's number follows the last order's and the last new order's",
     "SELECT count(*) FROM district WHERE"
     " d_next_o_id - 1 <> (SELECT max(o_id) FROM orders WHERE o_w_id = d_w_id AND o_d_id = d_id) OR"
     " d_next_o_id - 1 <> (SELECT max(no_o_id) FROM new_orders WHERE no_w_id = d_w_id AND no_d_id = d_id)"},
    {"new orders of a district are numbered without gaps",
     "SELECT count(*) FROM (SELECT max(no_o_id) - min(no_o_id) + 1 AS span, count(*) AS number FROM new_orders"
     " GROUP BY no_w_id, no_d_id) AS spans WHERE span <> number"},
    {"a district has as many order lines as its orders say",
     "SELECT count(*) FROM district WHERE"
     " (SELECT sum(o_ol_cnt) FROM orders WHERE o_w_id = d_w_id AND o_d_id = d_id) <>"
     " (SELECT count(*) FROM order_lines WHERE ol_w_id = d_w_id AND ol_d_id = d_id)"},
    {"an order has no carrier exactly if it is a new order",
     "SELECT count(*) FROM orders WHERE (o_carrier_id IS NULL) <>"
     " EXISTS (SELECT 1 FROM new_orders WHERE no_w_id = o_w_id AND no_d_id = o_d_id AND no_o_id = o_id)"},
    {"an order has as many lines as it says",
     "SELECT count(*) FROM orders WHERE o_ol_cnt <>"
     " (SELECT count(*) FROM order_lines WHERE ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id)"},
    {"a line has a delivery date exactly if its order has a carrier",
     "SELECT count(*) FROM order_lines JOIN orders ON ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id"
     " WHERE (ol_delivery_d IS NULL) <> (o_carrier_id IS NULL)"},
    {"a warehouse's payments are those of the history",
     "SELECT count(*) FROM warehouse WHERE w_ytd IS DISTINCT FROM (SELECT sum(h_amount) FROM history WHERE h_w_id = w_id)"},
    {"a district's payments are those of the history",
     "SELECT count(*) FROM district LEFT JOIN (SELECT h_w_id, h_d_id, sum(h_amount) AS amount FROM history"
     " GROUP BY h_w_id, h_d_id) AS paid ON h_w_id = d_w_id AND h_d_id = d_id WHERE d_ytd IS DISTINCT FROM amount"},
    {"a customer's balance is what was delivered to them, less what they paid",
     "SELECT count(*) FROM customer LEFT JOIN " DELIVERED " AS delivered"
     " ON delivered.w = c_w_id AND delivered.d = c_d_id AND delivered.c = c_id LEFT JOIN " PAID " AS paid"
     " ON paid.w = c_w_id AND paid.d = c_d_id AND paid.c = c_id"
     " WHERE c_balance <> coalesce(delivered.amount, 0) - coalesce(paid.amount, 0)"},
    {"a customer's balance and payments together are what was delivered to them",
     "SELECT count(*) FROM customer LEFT JOIN " DELIVERED " AS delivered"
     " ON delivered.w = c_w_id AND delivered.d = c_d_id AND delivered.c = c_id"
     " WHERE c_balance + c_ytd_payment <> coalesce(delivered.amount, 0)"},
};

/* Condition 11 is one of the initial database only. */
static const struct condition initial = {
    "seven of ten orders of a district are delivered",
    "SELECT count(*) FROM district WHERE (d_next_o_id - 1) * 7 / 10 <>"
    " (SELECT count(*) FROM orders WHERE o_w_id = d_w_id AND o_d_id = d_id) -"
    " (SELECT count(*) FROM new_orders WHERE no_w_id = d_w_id AND no_d_id = d_id)",
};

static bool holds(const struct condition *condition) {
    int64_t violations = query_integer(condition->violations);
    if (violations == 0) return true;
    fflush(stdout);
    fprintf(stderr, "tpcc: inconsistent: %" PRId64 " rows violate: %s\n", violations, condition->says);
    return false;
}

bool check_conditions(bool is_loaded_only) {
    enum { CONDITIONS = sizeof conditions / sizeof conditions[0] };
    bool all = !is_loaded_only || holds(&initial);
    for (int i = 0; i < CONDITIONS; i++) all &= holds(&conditions[i]);
    if (all) printf("consistent: %d conditions hold\n", CONDITIONS + is_loaded_only);
    return all;
}
