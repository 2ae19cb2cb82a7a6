/* Switches between stacks: three coroutines of the same function, each on a stack of its own, and one that ends. Between them runs the
 * function that resumes them. How often each function is called is known. */
#include <stdio.h>
#include <ucontext.h>

enum { COROUTINES = 3, ROUNDS = 10, STACK = 1 << 15 };

static ucontext_t caller, coroutines[COROUTINES], short_one;
static char stacks[COROUTINES + 1][STACK];
static volatile int sink;

__attribute__((noinline)) void work(int n)
{
    for (int i = 0; i < n; i++)
        sink += i;
}

__attribute__((noinline)) void step(int number, int n)
{
    work(n);
    swapcontext(&coroutines[number], &caller);
    work(n);
}

void generate(int number)
{
    for (int i = 0; i < ROUNDS; i++)
        step(number, 100 + number);
}

void end_at_once(void)
{
    work(50);
}

__attribute__((noinline)) void next(ucontext_t *one)
{
    swapcontext(&caller, one);
}

__attribute__((noinline)) void consume(void)
{
    for (int i = 0; i < ROUNDS; i++) {
        for (int number = 0; number < COROUTINES; number++) {
            next(&coroutines[(number + i) % COROUTINES]);
            work(10);
        }
    }
}

static void make(ucontext_t *one, int number)
{
    getcontext(one);
    one->uc_stack.ss_sp = stacks[number];
    one->uc_stack.ss_size = STACK;
    one->uc_link = &caller;
}

int main(void)
{
    for (int number = 0; number < COROUTINES; number++) {
        make(&coroutines[number], number);
        makecontext(&coroutines[number], (void (*)(void))generate, 1, number);
    }
    make(&short_one, COROUTINES);
    makecontext(&short_one, end_at_once, 0);
    consume();
    next(&short_one);
    printf("%d\n", sink);
    return 0;
}
