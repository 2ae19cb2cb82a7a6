/* Prints its arguments. */
#include <stdio.h>

int main(int count, char **words) {
    for (int word = 1; word < count; word++)
        printf("[%s]", words[word]);
    puts("");
    return 0;
}
