/* Technical workloads, after the ones that architects compare commercial ones with: sweeps over vectors as in STREAM, the
 * conjugate gradients of a sparse matrix as in NAS CG, and a stencil on a grid. They run as rates, each process with data
 * of its own, or in parallel, as threads that share the work.
 *
 *     technical stream|cg|stencil rates|parallel WORKERS SIZE ITERATIONS
 *
 * SIZE is the length of a vector, the rows of the matrix, or the side of the grid. A unit of work is a call of `iteration`,
 * which every worker makes. The program checks its results. */
#include <math.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define MOST_WORKERS 64
#define ROW 12 /* elements of a row of the matrix */
#define LINE 16 /* doubles between the partial sums of workers: a line for each */

/* A worker's share: from `first` on, before `end`. */
struct worker {
    int number, first, end;
};

struct kernel {
    const char *name;
    void (*prepare)(void);
    void (*iterate)(const struct worker *);
    int (*is_right)(void);
};

static int workers, size, iterations;
static int is_parallel;
static pthread_barrier_t all_workers;
static const struct kernel *kernel;

static void fail(const char *what) {
    fprintf(stderr, "technical: %s\n", what);
    exit(1);
}

static void *allocate(size_t bytes) {
    void *memory = NULL;
    if (posix_memalign(&memory, 128, bytes)) fail("there is no memory");
    memset(memory, 0, bytes);
    return memory;
}

static void wait_for_all(void) {
    if (is_parallel) pthread_barrier_wait(&all_workers);
}

/* The vectors of STREAM. */
static double *a, *b, *c;

static void stream_prepare(void) {
    a = allocate(size * sizeof *a);
    b = allocate(size * sizeof *b);
    c = allocate(size * sizeof *c);
    for (int i = 0; i < size; i++) a[i] = 1.0;
}

static void stream_iterate(const struct worker *self) {
    for (int i = self->first; i < self->end; i++) c[i] = a[i];
    for (int i = self->first; i < self->end; i++) b[i] = 0.5 * c[i];
    for (int i = self->first; i < self->end; i++) c[i] = a[i] + b[i];
    for (int i = self->first; i < self->end; i++) a[i] = b[i] + 0.5 * c[i];
}

/* Each iteration multiplies the first vector by 1.25. */
static int stream_is_right(void) {
    double expected = 1.0;
    for (int i = 0; i < iterations; i++) expected *= 1.25;
    for (int i = 0; i < size; i++)
        if (fabs(a[i] / expected - 1.0) > 1e-9) return 0;
    return 1;
}

/* A symmetric matrix with a dominant diagonal, and the vectors of the method. */
static int *columns;
static double *elements, *rhs, *x, *r, *p, *q, *partial;
static double residual;

static uint64_t state = 88172645463325252u;

static uint64_t next_random(void) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

static void cg_prepare(void) {
    columns = allocate((size_t)size * ROW * sizeof *columns);
    elements = allocate((size_t)size * ROW * sizeof *elements);
    int *used = allocate(size * sizeof *used);
    /* Pairs of elements, as long as both rows have room. */
    for (int row = 0; row < size; row++) {
        for (int tries = 0; tries < 2 * ROW && used[row] < ROW - 1; tries++) {
            int other = next_random() % size;
            if (other == row || used[other] >= ROW - 1) continue;
            double value = -1.0 - (double)(next_random() % 1000) / 1000.0;
            columns[row * ROW + used[row]] = other;
            elements[row * ROW + used[row]++] = value;
            columns[other * ROW + used[other]] = row;
            elements[other * ROW + used[other]++] = value;
        }
    }
    for (int row = 0; row < size; row++) {
        double sum = 0.1;
        for (int k = 0; k < used[row]; k++) sum -= elements[row * ROW + k];
        columns[row * ROW + used[row]] = row;
        elements[row * ROW + used[row]] = sum;
    }
    free(used);
    x = allocate(size * sizeof *x);
    rhs = allocate(size * sizeof *rhs);
    r = allocate(size * sizeof *r);
    p = allocate(size * sizeof *p);
    q = allocate(size * sizeof *q);
    partial = allocate(MOST_WORKERS * LINE * sizeof *partial);
    for (int row = 0; row < size; row++) {
        rhs[row] = r[row] = p[row] = (double)(next_random() % 1000) / 1000.0;
        residual += r[row] * r[row];
    }
}

/* The sum of what all workers have; each gets the same. */
static double sum_of_all(const struct worker *self, double own) {
    partial[self->number * LINE] = own;
    wait_for_all();
    double sum = 0.0;
    for (int worker = 0; worker < (is_parallel ? workers : 1); worker++) sum += partial[worker * LINE];
    wait_for_all();
    return sum;
}

static void cg_iterate(const struct worker *self) {
    double own = 0.0;
    for (int row = self->first; row < self->end; row++) {
        double sum = 0.0;
        for (int k = row * ROW; k < (row + 1) * ROW; k++) sum += elements[k] * p[columns[k]];
        q[row] = sum;
        own += sum * p[row];
    }
    double before = residual, alpha = before / sum_of_all(self, own);
    own = 0.0;
    for (int row = self->first; row < self->end; row++) {
        x[row] += alpha * p[row];
        r[row] -= alpha * q[row];
        own += r[row] * r[row];
    }
    double now = sum_of_all(self, own), beta = now / before;
    for (int row = self->first; row < self->end; row++) p[row] = r[row] + beta * p[row];
    if (self->first == 0) residual = now;
    wait_for_all();
}

/* The residual that the method keeps is that of its solution. */
static int cg_is_right(void) {
    for (int row = 0; row < size; row++) {
        double sum = 0.0;
        for (int k = row * ROW; k < (row + 1) * ROW; k++) sum += elements[k] * x[columns[k]];
        if (!(fabs(rhs[row] - sum - r[row]) < 1e-9)) return 0;
    }
    return 1;
}

/* Two grids, which change places after each iteration. */
static double *grids[2];
static int turn;

static void stencil_prepare(void) {
    for (int grid = 0; grid < 2; grid++) {
        grids[grid] = allocate((size_t)size * size * sizeof **grids);
        for (int i = 0; i < size; i++) grids[grid][i] = 1.0;
    }
}

static void stencil_iterate(const struct worker *self) {
    const double *from = grids[turn];
    double *to = grids[!turn];
    for (int row = self->first > 1 ? self->first : 1; row < self->end && row < size - 1; row++) {
        const double *above = from + (size_t)(row - 1) * size, *here = above + size, *below = here + size;
        double *out = to + (size_t)row * size;
        for (int i = 1; i < size - 1; i++) out[i] = 0.25 * (above[i] + below[i] + here[i - 1] + here[i + 1]);
    }
    wait_for_all();
    if (self->first == 0) turn = !turn;
    wait_for_all();
}

/* Values lie between those of the borders, and the warm border has warmed the row below it. */
static int stencil_is_right(void) {
    const double *grid = grids[turn];
    for (size_t i = 0; i < (size_t)size * size; i++)
        if (!(grid[i] >= 0.0 && grid[i] <= 1.0)) return 0;
    return grid[size + size / 2] >= 0.25;
}

static const struct kernel kernels[] = {
    {"stream", stream_prepare, stream_iterate, stream_is_right},
    {"cg", cg_prepare, cg_iterate, cg_is_right},
    {"stencil", stencil_prepare, stencil_iterate, stencil_is_right},
};

/* The unit of work. */
__attribute__((noinline)) void iteration(const struct worker *self) {
    kernel->iterate(self);
}

static void *work(void *argument) {
    const struct worker *self = argument;
    for (int i = 0; i < iterations; i++) iteration(self);
    return NULL;
}

static int run_rates(void) {
    for (int number = 0; number < workers; number++) {
        pid_t child = fork();
        if (child < 0) fail("a process cannot be forked");
        if (child > 0) continue;
        struct worker self = {0, 0, size};
        kernel->prepare();
        work(&self);
        _exit(kernel->is_right() ? 0 : 1);
    }
    int is_right = 1;
    for (int number = 0; number < workers; number++) {
        int status;
        is_right &= wait(&status) > 0 && status == 0;
    }
    return is_right;
}

static int run_parallel(void) {
    static struct worker shares[MOST_WORKERS];
    pthread_t threads[MOST_WORKERS];
    kernel->prepare();
    pthread_barrier_init(&all_workers, NULL, workers);
    for (int number = 0; number < workers; number++) {
        shares[number] = (struct worker){number, (long)size * number / workers, (long)size * (number + 1) / workers};
        if (number > 0 && pthread_create(&threads[number], NULL, work, &shares[number])) fail("there is no thread");
    }
    work(&shares[0]);
    for (int number = 1; number < workers; number++) pthread_join(threads[number], NULL);
    return kernel->is_right();
}

int main(int count, char **arguments) {
    if (count != 6) fail("give a kernel, rates or parallel, workers, size and iterations");
    for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++)
        if (!strcmp(kernels[i].name, arguments[1])) kernel = &kernels[i];
    is_parallel = !strcmp(arguments[2], "parallel");
    workers = atoi(arguments[3]);
    size = atoi(arguments[4]);
    iterations = atoi(arguments[5]);
    if (!kernel) fail("there is no such kernel");
    if (workers < 1 || workers > MOST_WORKERS || size < 16 || iterations < 1) fail("a number is out of range");
    if (!(is_parallel ? run_parallel() : run_rates())) fail("the results are wrong");
    puts("the results are right");
    return 0;
}
