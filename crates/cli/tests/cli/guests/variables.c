/* Prints its environment. */
#include <stdio.h>

extern char **environ;

int main(void) {
    for (char **variable = environ; *variable; variable++) puts(*variable);
    return 0;
}
