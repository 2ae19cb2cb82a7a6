/* tpcb: the TPC-B benchmark on SQLite's C interface.
 *
 * TPC Benchmark B, revision 2.0: a bank with branches, 10 tellers and 100,000 accounts a branch.
 * A transaction adds an amount to an account, to the teller and to the teller's branch, appends a
 * row to the history, commits durably and returns the account's balance.
 *
 * The unit of work is tpcb_transaction(): BEGIN to COMMIT and nothing else. What a driver does
 * between transactions (drawing the inputs, reading the counters, checkpointing) lies outside.
 *
 * How the database is set up, and why:
 * - write-ahead log, synchronous=FULL: every commit is an append to the log and an fdatasync;
 * - locking as SQLite does by default, other programs may open the database between transactions;
 * - no automatic checkpoint: as a server's background checkpointer would, tpcb_checkpoint() copies
 *   the log to the database between transactions, every CHECKPOINT_EVERY of them: some 1,000 pages
 *   of log, where SQLite's own automatic checkpoint would come;
 * - no memory-mapped files: a page that is not in the cache is read by a system call.
 */
#define _POSIX_C_SOURCE 200809L
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "sqlite3.h"

enum {
    PAGE_SIZE = 4096,
    TELLERS_PER_BRANCH = 10,   /* clause 4.2.1 */
    HOME_PERCENT = 85,         /* clause 5.3.5 */
    LARGEST_DELTA = 999999,    /* clause 5.3.6 */
    ROW_FILLER = 96,           /* makes account, teller and branch rows 100 bytes and more */
    HISTORY_FILLER = 40,       /* makes history rows 50 bytes and more */
    CHECKPOINT_EVERY = 250,    /* transactions */
};

#define MEBIBYTE (1024 * 1024)

/* Variables that the measurement reads by name; updated after each transaction. */
volatile uint64_t tpcb_transactions; /* transactions committed */
volatile uint64_t tpcb_page_hits;    /* page-cache hits since the first transaction */
volatile uint64_t tpcb_page_misses;  /* page-cache misses since the first transaction */

/* The inputs of a transaction. */
struct input {
    int64_t aid, tid, bid, delta;
};

/* The size of the bank. */
struct bank {
    int64_t branches, accounts_per_branch;
};

enum statement {
    BEGIN,
    UPDATE_ACCOUNT,
    SELECT_BALANCE,
    UPDATE_TELLER,
    UPDATE_BRANCH,
    INSERT_HISTORY,
    COMMIT,
    STATEMENTS
};

static const char *const statement_text[STATEMENTS] = {
    [BEGIN] = "BEGIN",
    [UPDATE_ACCOUNT] = "UPDATE accounts SET balance = balance + ?1 WHERE aid = ?2",
    [SELECT_BALANCE] = "SELECT balance FROM accounts WHERE aid = ?1",
    [UPDATE_TELLER] = "UPDATE tellers SET balance = balance + ?1 WHERE tid = ?2",
    [UPDATE_BRANCH] = "UPDATE branches SET balance = balance + ?1 WHERE bid = ?2",
    [INSERT_HISTORY] = "INSERT INTO history(tid, bid, aid, delta, time, filler)"
                       " VALUES(?1, ?2, ?3, ?4, ?5, ?6)",
    [COMMIT] = "COMMIT",
};

static const char schema[] =
    "CREATE TABLE branches(bid INTEGER PRIMARY KEY, balance INTEGER NOT NULL, filler TEXT NOT NULL);"
    "CREATE TABLE tellers(tid INTEGER PRIMARY KEY, bid INTEGER NOT NULL, balance INTEGER NOT NULL,"
    " filler TEXT NOT NULL);"
    "CREATE TABLE accounts(aid INTEGER PRIMARY KEY, bid INTEGER NOT NULL, balance INTEGER NOT NULL,"
    " filler TEXT NOT NULL);"
    "CREATE TABLE history(tid INTEGER NOT NULL, bid INTEGER NOT NULL, aid INTEGER NOT NULL,"
    " delta INTEGER NOT NULL, time INTEGER NOT NULL, filler TEXT NOT NULL);";

static sqlite3 *db;
static sqlite3_stmt *prepared[STATEMENTS];
static char filler[ROW_FILLER];

_Noreturn static void fail(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    fputs("tpcb: ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    exit(1);
}

/* ---- SQLite, with every error fatal ---- */

_Noreturn static void fail_in_database(const char *what) {
    fail("%s: %s (SQLite error %d)", what, sqlite3_errmsg(db), sqlite3_extended_errcode(db));
}

static void execute(const char *sql) {
    if (sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK) fail_in_database(sql);
}

static sqlite3_stmt *prepare(const char *sql) {
    sqlite3_stmt *statement;
    if (sqlite3_prepare_v3(db, sql, -1, SQLITE_PREPARE_PERSISTENT, &statement, NULL) != SQLITE_OK)
        fail_in_database(sql);
    return statement;
}

/* Runs a statement that yields no row. */
static void step(sqlite3_stmt *statement) {
    if (sqlite3_step(statement) != SQLITE_DONE) fail_in_database(sqlite3_sql(statement));
    sqlite3_reset(statement);
}

/* Runs a statement that yields one integer. */
static int64_t step_integer(sqlite3_stmt *statement) {
    if (sqlite3_step(statement) != SQLITE_ROW) fail_in_database(sqlite3_sql(statement));
    int64_t value = sqlite3_column_int64(statement, 0);
    sqlite3_reset(statement);
    return value;
}

static int64_t query_integer(const char *sql) {
    sqlite3_stmt *statement = prepare(sql);
    int64_t value = step_integer(statement);
    sqlite3_finalize(statement);
    return value;
}

static void open_database(const char *path, int flags) {
    if (sqlite3_open_v2(path, &db, flags, NULL) != SQLITE_OK)
        fail("cannot open %s: %s", path, sqlite3_errmsg(db));
}

static void close_database(void) {
    for (int i = 0; i < STATEMENTS; i++) {
        sqlite3_finalize(prepared[i]);
        prepared[i] = NULL;
    }
    if (sqlite3_close(db) != SQLITE_OK) fail_in_database("closing the database");
}

/* ---- Inputs: a small generator, so that every build does the same transactions ---- */

static uint64_t random_state;

/* SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, 2014). */
static uint64_t random_bits(void) {
    uint64_t z = random_state += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
}

/* Uniform in 0 .. bound - 1: values of the last, incomplete run of `bound` are drawn again. */
static int64_t random_below(int64_t bound) {
    uint64_t limit = UINT64_MAX - UINT64_MAX % (uint64_t)bound, bits;
    do bits = random_bits();
    while (bits >= limit);
    return (int64_t)(bits % (uint64_t)bound);
}

static struct input draw_input(struct bank bank) {
    struct input in;
    in.tid = 1 + random_below(bank.branches * TELLERS_PER_BRANCH);
    in.bid = 1 + (in.tid - 1) / TELLERS_PER_BRANCH;
    int64_t account_branch = in.bid;
    if (bank.branches > 1 && random_below(100) >= HOME_PERCENT) {
        account_branch = 1 + random_below(bank.branches - 1);
        account_branch += account_branch >= in.bid;
    }
    in.aid = 1 + (account_branch - 1) * bank.accounts_per_branch + random_below(bank.accounts_per_branch);
    in.delta = random_below(2 * LARGEST_DELTA + 1) - LARGEST_DELTA;
    return in;
}

/* ---- The unit of work ---- */

static void add_to_balance(enum statement which, int64_t delta, int64_t id) {
    sqlite3_bind_int64(prepared[which], 1, delta);
    sqlite3_bind_int64(prepared[which], 2, id);
    step(prepared[which]);
}

/* One transaction, clause 1.2: returns the account's new balance, durably committed. */
__attribute__((noinline)) int64_t tpcb_transaction(int64_t aid, int64_t tid, int64_t bid, int64_t delta) {
    step(prepared[BEGIN]);
    add_to_balance(UPDATE_ACCOUNT, delta, aid);
    sqlite3_bind_int64(prepared[SELECT_BALANCE], 1, aid);
    int64_t balance = step_integer(prepared[SELECT_BALANCE]);
    add_to_balance(UPDATE_TELLER, delta, tid);
    add_to_balance(UPDATE_BRANCH, delta, bid);
    sqlite3_stmt *history = prepared[INSERT_HISTORY];
    sqlite3_bind_int64(history, 1, tid);
    sqlite3_bind_int64(history, 2, bid);
    sqlite3_bind_int64(history, 3, aid);
    sqlite3_bind_int64(history, 4, delta);
    sqlite3_bind_int64(history, 5, time(NULL));
    sqlite3_bind_text(history, 6, filler, HISTORY_FILLER, SQLITE_STATIC);
    step(history);
    step(prepared[COMMIT]);
    return balance;
}

/* Copies the log into the database, so that the next transaction starts the log afresh. */
__attribute__((noinline)) void tpcb_checkpoint(void) {
    if (sqlite3_wal_checkpoint_v2(db, NULL, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL) != SQLITE_OK)
        fail_in_database("checkpoint");
}

/* ---- The commands ---- */

static uint64_t take_counter(int which) {
    int value, highest;
    sqlite3_db_status(db, which, &value, &highest, true);
    return (uint64_t)(unsigned)value;
}

static void update_gauges(void) {
    tpcb_page_hits += take_counter(SQLITE_DBSTATUS_CACHE_HIT);
    tpcb_page_misses += take_counter(SQLITE_DBSTATUS_CACHE_MISS);
}

/* The consistency conditions: every amount is in an account, a teller, a branch and the history. */
static bool consistent(void) {
    int64_t accounts = query_integer("SELECT sum(balance) FROM accounts");
    int64_t tellers = query_integer("SELECT sum(balance) FROM tellers");
    int64_t branches = query_integer("SELECT sum(balance) FROM branches");
    int64_t history = query_integer("SELECT coalesce(sum(delta), 0) FROM history");
    if (accounts == history && tellers == history && branches == history) {
        printf("consistent: accounts, tellers, branches and history sum to %" PRId64 "\n", history);
        return true;
    }
    fflush(stdout);
    fprintf(stderr, "tpcb: inconsistent: accounts sum to %" PRId64 ", tellers to %" PRId64
            ", branches to %" PRId64 ", history to %" PRId64 "\n", accounts, tellers, branches, history);
    return false;
}

/* Inserts rows 1 .. count; a row's branch follows from its number. */
static void fill(const char *sql, int64_t count, int64_t per_branch) {
    sqlite3_stmt *statement = prepare(sql);
    sqlite3_bind_text(statement, 3, filler, ROW_FILLER, SQLITE_STATIC);
    for (int64_t i = 1; i <= count; i++) {
        sqlite3_bind_int64(statement, 1, i);
        if (per_branch > 1) sqlite3_bind_int64(statement, 2, 1 + (i - 1) / per_branch);
        step(statement);
    }
    sqlite3_finalize(statement);
}

static int load(const char *path, struct bank bank) {
    if (unlink(path) != 0 && errno != ENOENT) fail("cannot replace %s: %s", path, strerror(errno));
    open_database(path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE);
    /* Nothing to recover while loading: an interrupted load is started again. */
    char pragmas[128];
    snprintf(pragmas, sizeof pragmas, "PRAGMA page_size=%d; PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF;",
             PAGE_SIZE);
    execute(pragmas);
    execute("BEGIN");
    execute(schema);
    fill("INSERT INTO branches VALUES(?1, 0, ?3)", bank.branches, 1);
    fill("INSERT INTO tellers VALUES(?1, ?2, 0, ?3)", bank.branches * TELLERS_PER_BRANCH, TELLERS_PER_BRANCH);
    fill("INSERT INTO accounts VALUES(?1, ?2, 0, ?3)", bank.branches * bank.accounts_per_branch,
         bank.accounts_per_branch);
    execute("COMMIT");
    execute("PRAGMA journal_mode=WAL");
    close_database();
    printf("loaded %" PRId64 " branches of %" PRId64 " accounts\n", bank.branches, bank.accounts_per_branch);
    return 0;
}

static struct bank bank_size(void) {
    struct bank bank = {.branches = query_integer("SELECT count(*) FROM branches")};
    if (bank.branches < 1) fail("the database has no branches: load it first");
    bank.accounts_per_branch = query_integer("SELECT max(aid) FROM accounts") / bank.branches;
    if (bank.accounts_per_branch < 1) fail("the database has no accounts: load it first");
    return bank;
}

/* How a run is made. */
struct run {
    int64_t transactions, seed, cache_pages, checkpoint_every;
};

static void open_for_run(const char *path, int64_t cache_pages) {
    open_database(path, SQLITE_OPEN_READWRITE);
    char pragmas[256];
    snprintf(pragmas, sizeof pragmas,
             "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;"
             "PRAGMA wal_autocheckpoint=0; PRAGMA mmap_size=0; PRAGMA temp_store=MEMORY;"
             "PRAGMA cache_size=%" PRId64 ";", cache_pages);
    execute(pragmas);
    for (int i = 0; i < STATEMENTS; i++) prepared[i] = prepare(statement_text[i]);
}

/* Fills the page cache: counting its rows reads every page of a table. */
static void warm_up(void) {
    query_integer("SELECT count(*) FROM history");
    query_integer("SELECT count(*) FROM accounts");
    query_integer("SELECT count(*) FROM tellers");
    query_integer("SELECT count(*) FROM branches");
}

static int run(const char *path, struct run options) {
    open_for_run(path, options.cache_pages);
    struct bank bank = bank_size();
    int64_t rows_before = query_integer("SELECT count(*) FROM history");
    warm_up();
    take_counter(SQLITE_DBSTATUS_CACHE_HIT);
    take_counter(SQLITE_DBSTATUS_CACHE_MISS);
    random_state = (uint64_t)options.seed;

    for (int64_t done = 1; done <= options.transactions; done++) {
        struct input in = draw_input(bank);
        tpcb_transaction(in.aid, in.tid, in.bid, in.delta);
        update_gauges();
        tpcb_transactions++;
        if (options.checkpoint_every > 0 && done % options.checkpoint_every == 0) tpcb_checkpoint();
    }
    tpcb_checkpoint();

    printf("transactions: %" PRIu64 "\npage hits: %" PRIu64 "\npage misses: %" PRIu64 "\n", tpcb_transactions,
           tpcb_page_hits, tpcb_page_misses);
    bool good = consistent();
    int64_t rows = query_integer("SELECT count(*) FROM history") - rows_before;
    if (rows != options.transactions) {
        fflush(stdout);
        fprintf(stderr, "tpcb: inconsistent: %" PRId64 " rows of history for %" PRId64 " transactions\n", rows,
                options.transactions);
        good = false;
    }
    close_database();
    return good ? 0 : 1;
}

static int check(const char *path) {
    open_database(path, SQLITE_OPEN_READWRITE);
    bank_size();
    bool good = consistent();
    close_database();
    return good ? 0 : 1;
}

/* ---- The command line ---- */

static const char usage[] =
    "Usage: tpcb load FILE [--branches N] [--accounts-per-branch N]\n"
    "       tpcb run FILE [--mode cached|scaled] [--transactions N] [--seed N]\n"
    "                     [--cache-pages N | --cache-mib N] [--checkpoint-every N]\n"
    "       tpcb check FILE\n"
    "\n"
    "The TPC-B benchmark on SQLite.\n"
    "\n"
    "  load    create the database FILE, replacing it\n"
    "  run     do transactions, then check the consistency of the database\n"
    "  check   only check it\n"
    "\n"
    "Options of load:\n"
    "  --branches N             size of the bank [4]\n"
    "  --accounts-per-branch N  as specified unless testing [100000]\n"
    "\n"
    "Options of run (later ones override earlier ones, so --mode comes first):\n"
    "  --mode cached    the page cache holds the whole database, and the log write is the only input\n"
    "                   or output of a transaction: --cache-mib 1024 [the default]\n"
    "  --mode scaled    the page cache holds less than half of the accounts of 4 branches, so that a\n"
    "                   transaction often reads a page, and the checkpointer writes about one for it:\n"
    "                   --cache-pages 5200\n"
    "  --transactions N         [1000]\n"
    "  --seed N                 of the random inputs [1]\n"
    "  --cache-pages N          page cache, in pages of 4096 bytes\n"
    "  --cache-mib N            the same in MiB\n"
    "  --checkpoint-every N     transactions between checkpoints, 0 for one at the end only [250]\n"
    "\n"
    "Exit status: 0, 1 if something failed or the database is inconsistent, 2 for a usage error.\n";

_Noreturn static void usage_error(const char *format, const char *word) {
    fputs("tpcb: ", stderr);
    fprintf(stderr, format, word);
    fputs("\nTry tpcb --help.\n", stderr);
    exit(2);
}

static int64_t parse_number(const char *text, int64_t least, int64_t most) {
    char *end;
    errno = 0;
    long long value = strtoll(text, &end, 10);
    if (end == text || *end != '\0' || errno != 0 || value < least || value > most)
        usage_error("%s is not a number that this option takes", text);
    return value;
}

static const struct run cached = {1000, 1, 1024 * (MEBIBYTE / PAGE_SIZE), CHECKPOINT_EVERY};
static const struct run scaled = {1000, 1, 5200, CHECKPOINT_EVERY};

int main(int argc, char **argv) {
    enum { HELP = 1, BRANCHES, ACCOUNTS, MODE, TRANSACTIONS, SEED, CACHE_PAGES, CACHE_MIB, CHECKPOINT };
    static const struct option options[] = {
        {"help", no_argument, NULL, HELP},
        {"branches", required_argument, NULL, BRANCHES},
        {"accounts-per-branch", required_argument, NULL, ACCOUNTS},
        {"mode", required_argument, NULL, MODE},
        {"transactions", required_argument, NULL, TRANSACTIONS},
        {"seed", required_argument, NULL, SEED},
        {"cache-pages", required_argument, NULL, CACHE_PAGES},
        {"cache-mib", required_argument, NULL, CACHE_MIB},
        {"checkpoint-every", required_argument, NULL, CHECKPOINT},
        {0},
    };
    struct bank bank = {4, 100000};
    struct run how = cached;
    opterr = 0;
    for (int option; (option = getopt_long(argc, argv, "", options, NULL)) != -1;) switch (option) {
        case HELP: fputs(usage, stdout); return 0;
        case BRANCHES: bank.branches = parse_number(optarg, 1, 100000); break;
        case ACCOUNTS: bank.accounts_per_branch = parse_number(optarg, 1, 100000000); break;
        case MODE: {
            const bool is_scaled = strcmp(optarg, "scaled") == 0;
            if (!is_scaled && strcmp(optarg, "cached") != 0) usage_error("%s is not a mode", optarg);
            const struct run preset = is_scaled ? scaled : cached;
            how.cache_pages = preset.cache_pages;
            break;
        }
        case TRANSACTIONS: how.transactions = parse_number(optarg, 0, INT64_MAX); break;
        case SEED: how.seed = parse_number(optarg, 0, INT64_MAX); break;
        case CACHE_PAGES: how.cache_pages = parse_number(optarg, 1, INT32_MAX); break;
        case CACHE_MIB: how.cache_pages = parse_number(optarg, 1, 8191) * (MEBIBYTE / PAGE_SIZE); break;
        case CHECKPOINT: how.checkpoint_every = parse_number(optarg, 0, INT64_MAX); break;
        default: usage_error("%s is not an option, or lacks its value", argv[optind - 1]);
        }
    if (argc - optind != 2) usage_error("expected a command and a database file%s", "");
    const char *command = argv[optind], *path = argv[optind + 1];
    memset(filler, 'x', sizeof filler);
    if (strcmp(command, "load") == 0) return load(path, bank);
    if (strcmp(command, "run") == 0) return run(path, how);
    if (strcmp(command, "check") == 0) return check(path);
    usage_error("%s is not a command", command);
}
