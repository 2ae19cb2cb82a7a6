// A tree of nodes as databases execute plans: functions are called by pointers in the nodes, and their argument says for which
// node. Each node has functions of its own, which are alike, so that a tree of calls counts what belongs to each node, too.
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum Tag { T_Scan = 7, T_Filter, T_Join };

struct Table { char name[16]; long rows; };

struct Node {
    enum Tag tag;
    int number;
    struct Node *left, *right;
    struct Table *table;
};

struct State {
    struct Node *node;
    long (*next)(struct State *);
    struct State *left, *right;
    long at;
};

struct Table orders = { "orders", 40 }, lines = { "lines", 60 };
struct Table *tables[2] = { &orders, &lines };
static jmp_buf failure;
static int fails;

__attribute__((noinline)) static long mix(long value) {
    for (int i = 0; i < 5; i++) value = value * 25214903917 + 11;
    return value;
}

__attribute__((noinline)) static long scan(struct State *state) {
    if (fails && state->at == 20) longjmp(failure, 1);
    return state->at < state->node->table->rows ? mix(state->at++) & 0xffff : -1;
}

__attribute__((noinline)) static long filter(struct State *state) {
    long row;
    while ((row = state->left->next(state->left)) >= 0)
        if (row % 3) return row;
    return -1;
}

__attribute__((noinline)) static long join(struct State *state) {
    long row, sum = 0;
    if ((row = state->left->next(state->left)) < 0) return -1;
    state->right->at = 0;
    for (long other; (other = state->right->next(state->right)) >= 0;) sum += other % 7;
    return mix(row + sum) & 0xffff;
}

// The functions of each node.
#define NEXT(number, function) \
    __attribute__((noinline)) long next_##number(struct State *state) { return function(state) + 0 * (number); }
NEXT(1, join)
NEXT(2, filter)
NEXT(3, scan)
NEXT(4, scan)

static long (*functions[])(struct State *) = { next_1, next_2, next_3, next_4 };
static int is_direct;

// The first call of a node is of another function, which hands over to the node's, unless the program is told otherwise.
__attribute__((noinline)) long first_next(struct State *state) {
    state->next = functions[state->node->number - 1];
    return state->next(state);
}

struct State *begin(struct Node *node) {
    struct State *state = calloc(1, sizeof *state);
    state->node = node;
    state->next = is_direct ? functions[node->number - 1] : first_next;
    if (node->left) state->left = begin(node->left);
    if (node->right) state->right = begin(node->right);
    return state;
}

void end(struct State *state) {
    if (state->left) end(state->left);
    if (state->right) end(state->right);
    free(state);
}

__attribute__((noinline)) long query(const char *text, struct Node *plan) {
    struct State *state = begin(plan);
    long sum = 0;
    for (long row; (row = state->next(state)) >= 0;) sum = mix(sum + row);
    end(state);
    return sum & 0xffff;
}

int main(int count, char **arguments) {
    struct Node scan_orders = { T_Scan, 3, 0, 0, &orders }, scan_lines = { T_Scan, 4, 0, 0, &lines };
    struct Node filtered = { T_Filter, 2, &scan_orders }, joined = { T_Join, 1, &filtered, &scan_lines };
    fails = count > 1 && arguments[1][0] == 'f';
    is_direct = count > 1 && arguments[1][0] == 'd';
    int forks = count > 1 && arguments[1][0] == 'c';
    long sum = 0;
    if (forks && fork() == 0) {
        printf("%ld\n", query("in the child", &joined));
        return 0;
    }
    for (volatile int times = 0; times < 3; times++)
        if (setjmp(failure) == 0) sum += query("select join", &joined);
    fails = 0;
    sum += query("select scan", &scan_lines);
    if (forks) wait(0);
    if (count > 1 && arguments[1][0] == 'w') {
        if (fork() == 0) {
            query("select join", &scan_lines);
            return 0;
        }
        wait(0);
    }
    printf("%ld\n", sum);
}
