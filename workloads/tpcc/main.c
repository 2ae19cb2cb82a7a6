/* The command line. */
#define _GNU_SOURCE
#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tpcc.h"

enum {
    PAGE_SIZE = 4096,
    MEBIBYTE = 1024 * 1024,
    CHECKPOINT_EVERY = 100, /* transactions */
};

static const char usage[] =
    "Usage: tpcc load " DATABASE_ARGUMENT " [--warehouses N] [--items N] [--customers N]\n"
    "       tpcc run " DATABASE_ARGUMENT " [--transactions N] [--seed N] [--cache-mib N] [--waiting PERCENT]\n"
    "                     [--checkpoint-every N] [--steady-after N] [--warehouse N] [--shuffle]\n"
    "       tpcc check " DATABASE_ARGUMENT "\n"
    "\n"
    "The TPC-C benchmark on " DATABASE "; " DATABASE_ARGUMENT " is " DATABASE_MEANING ". Its results are not tpmC: nothing of it was audited.\n"
    "\n"
    "  load    create the tables, replacing those that are there\n"
    "  run     do transactions, with the consistency of the database checked before and after\n"
    "  check   only check it\n"
    "\n"
    "Options of load:\n"
    "  --warehouses N           size of the company [1]\n"
    "  --items N                as specified unless testing [100000]\n"
    "  --customers N            of a district, as specified unless testing [3000]\n"
    "\n"
    "Options of run:\n"
    "  --transactions N         of all kinds [1000]\n"
    "  --seed N                 of the random inputs [1]\n"
    "  --cache-mib N            page cache in MiB, of SQLite [1024]\n"
    "  --waiting PERCENT        of the keying and think times; without, terminals do not wait [0]\n"
    "  --checkpoint-every N     transactions between checkpoints, 0 for one at the end only, of SQLite [100]\n"
    "  --steady-after N         after so many transactions call tpcc_steady_state, or pg_backend_pid in the server, where observers begin\n"
    "  --warehouse N            the terminals of this warehouse only, as clients have warehouses of their own; 0 for those of all [0]\n"
    "  --shuffle                terminals take turns in a random order\n"
    "  --unchecked              do not check before and after: tpcc check does that apart\n"
    "\n"
    "Exit status: 0, 1 if something failed or the database is inconsistent, 2 for a usage error.\n";

void fail(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    fflush(stdout);
    fputs("tpcc: ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    exit(1);
}

_Noreturn static void usage_error(const char *format, const char *word) {
    fputs("tpcc: ", stderr);
    fprintf(stderr, format, word);
    fputs("\nTry tpcc --help.\n", stderr);
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

static int load_database(const char *where, const struct scale *scale) {
    create_database(where);
    load(scale);
    finish_loading();
    bool good = check_conditions(true);
    close_database();
    printf("loaded %" PRId64 " warehouses\n", scale->warehouses);
    return good ? 0 : 1;
}

static int run_database(const char *where, const struct run *options) {
    open_database(where, options->cache_pages);
    struct scale scale = read_scale();
    /* Checking reads all pages, and so fills the page cache. */
    bool good = options->is_unchecked || check_conditions(false);
    prepare_transactions();
    run(options, &scale);
    finalize_transactions();
    good = good && (options->is_unchecked || check_conditions(false));
    close_database();
    return good ? 0 : 1;
}

static int check_database(const char *where) {
    open_database(where, 0);
    read_scale();
    bool good = check_conditions(false);
    close_database();
    return good ? 0 : 1;
}

int main(int argc, char **argv) {
    enum { HELP = 1, WAREHOUSES, ITEMS, CUSTOMERS, TRANSACTIONS, SEED, CACHE_MIB, WAITING, CHECKPOINT, STEADY, WAREHOUSE, SHUFFLE, UNCHECKED };
    static const struct option options[] = {
        {"help", no_argument, NULL, HELP},
        {"warehouses", required_argument, NULL, WAREHOUSES},
        {"items", required_argument, NULL, ITEMS},
        {"customers", required_argument, NULL, CUSTOMERS},
        {"transactions", required_argument, NULL, TRANSACTIONS},
        {"seed", required_argument, NULL, SEED},
        {"cache-mib", required_argument, NULL, CACHE_MIB},
        {"waiting", required_argument, NULL, WAITING},
        {"checkpoint-every", required_argument, NULL, CHECKPOINT},
        {"steady-after", required_argument, NULL, STEADY},
        {"warehouse", required_argument, NULL, WAREHOUSE},
        {"shuffle", no_argument, NULL, SHUFFLE},
        {"unchecked", no_argument, NULL, UNCHECKED},
        {0},
    };
    struct scale scale = {.warehouses = 1, .items = 100000, .customers = 3000};
    struct run how = {1000, 1, 1024 * (MEBIBYTE / PAGE_SIZE), CHECKPOINT_EVERY, 0, -1, 0, false, false};
    opterr = 0;
    for (int option; (option = getopt_long(argc, argv, "", options, NULL)) != -1;) switch (option) {
        case HELP: fputs(usage, stdout); return 0;
        case WAREHOUSES: scale.warehouses = parse_number(optarg, 1, 10000); break;
        case ITEMS: scale.items = parse_number(optarg, 100, 100000); break;
        case CUSTOMERS: scale.customers = parse_number(optarg, 30, 3000); break;
        case TRANSACTIONS: how.transactions = parse_number(optarg, 0, INT64_MAX); break;
        case SEED: how.seed = parse_number(optarg, 0, INT64_MAX); break;
        case CACHE_MIB: how.cache_pages = parse_number(optarg, 1, 8191) * (MEBIBYTE / PAGE_SIZE); break;
        case WAITING: how.waiting_percent = parse_number(optarg, 0, 100); break;
        case CHECKPOINT: how.checkpoint_every = parse_number(optarg, 0, INT64_MAX); break;
        case STEADY: how.steady_after = parse_number(optarg, 0, INT64_MAX); break;
        case WAREHOUSE: how.warehouse = parse_number(optarg, 0, 10000); break;
        case SHUFFLE: how.is_shuffled = true; break;
        case UNCHECKED: how.is_unchecked = true; break;
        default: usage_error("%s is not an option, or lacks its value", argv[optind - 1]);
        }
    if (argc - optind != 2) usage_error("expected a command and a database%s", "");
    const char *command = argv[optind], *path = argv[optind + 1];
    if (strcmp(command, "load") == 0) return load_database(path, &scale);
    if (strcmp(command, "run") == 0) return run_database(path, &how);
    if (strcmp(command, "check") == 0) return check_database(path);
    usage_error("%s is not a command", command);
}
