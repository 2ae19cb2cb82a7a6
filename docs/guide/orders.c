/* The program of docs/GUIDE.md: it takes orders, and reports what was sold where. `orders N` takes N orders, a few
   hundred without N; `orders serve` takes one each millisecond until it is ended. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ITEMS = 512, REGIONS = 64, BUCKETS = 1024 };

struct item {
    struct item *next;
    char name[20];
    int stock;
};

struct order {
    char name[20];
    int region, pieces;
};

static struct item *buckets[BUCKETS];
static int sold[REGIONS][ITEMS];
static long refused;

static unsigned hash(const char *name) {
    unsigned sum = 5381;
    while (*name) sum = sum * 33 + (unsigned char)*name++;
    return sum % BUCKETS;
}

/* A line such as "item17,3,12": a name, a region, how many pieces. */
__attribute__((noinline)) static void parse(const char *line, struct order *order) {
    char *to = order->name;
    while (*line != ',') *to++ = *line++;
    *to = 0;
    order->region = (int)strtol(line + 1, (char **)&line, 10);
    order->pieces = (int)strtol(line + 1, NULL, 10);
}

__attribute__((noinline)) static struct item *find(const char *name) {
    struct item *item = buckets[hash(name)];
    while (item && strcmp(item->name, name) != 0) item = item->next;
    return item;
}

/* The unit of work. */
__attribute__((noinline)) int take_order(const char *line) {
    struct order order;
    parse(line, &order);
    struct item *item = find(order.name);
    if (item->stock < order.pieces) {
        refused++;
        item->stock = 10000;
        return 0;
    }
    item->stock -= order.pieces;
    sold[order.region][atoi(order.name + 4)] += order.pieces;
    return 1;
}

/* What was sold of each item: it walks through a matrix by columns. */
__attribute__((noinline)) long report(void) {
    long most = 0;
    for (int item = 0; item < ITEMS; item++) {
        long sum = 0;
        for (int region = 0; region < REGIONS; region++) sum += sold[region][item];
        if (sum > most) most = sum;
    }
    return most;
}

static void open_shop(void) {
    for (int i = 0; i < ITEMS; i++) {
        struct item *item = malloc(sizeof *item);
        sprintf(item->name, "item%d", i);
        item->stock = 10000;
        item->next = buckets[hash(item->name)];
        buckets[hash(item->name)] = item;
    }
}

static unsigned next_number(unsigned below) {
    static unsigned state = 1;
    state = state * 1103515245 + 12345;
    return (state >> 16) % below;
}

int main(int count, char **arguments) {
    int serves = count > 1 && strcmp(arguments[1], "serve") == 0;
    long orders = count > 1 ? atol(arguments[1]) : 300, taken = 0;
    open_shop();
    for (long i = 0; i < orders || serves; i++) {
        char line[64];
        sprintf(line, "item%u,%u,%u", next_number(ITEMS), next_number(REGIONS), 1 + next_number(20));
        taken += take_order(line);
        if (serves) nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
    }
    printf("%ld orders, %ld pieces of one item at most\n", taken, report());
    return 0;
}
