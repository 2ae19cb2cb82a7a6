/* Calls of one function in every way there is: nested, left by longjmp, through a pointer, from another
 * image, from within the image, left by exit; tests/oracle/units.rs knows how many there are. */
#include <setjmp.h>
#include <stdio.h>

int unit(int depth);
int near_unit(int depth);
int tail_unit(int depth);
int call_unit(int depth);
int call_near(int depth);
int jump_tail(int depth);
int escape(int depth);
int finish(int depth);

static jmp_buf back;
static int leaving;

/* Called by each unit. */
void helper(int depth) {
    if (leaving && depth == 0) longjmp(back, 1);
}

int main(void) {
    int sum = 0;
    sum += unit(0);
    sum += unit(5);
    sum += call_unit(2);
    sum += call_unit(1);
    sum += unit(3);
    int (*volatile pointer)(int) = unit;
    for (int i = 0; i < 3; i++) sum += pointer(i);
    leaving = 1;
    for (volatile int i = 0; i < 2; i++)
        if (setjmp(back) == 0) sum += escape(3);
    leaving = 0;
    sum += unit(1);
    sum += near_unit(2) + call_near(2);
    sum += tail_unit(3) + jump_tail(3) + jump_tail(0);
    printf("%d\n", sum);
    fflush(stdout);
    return finish(2);
}
