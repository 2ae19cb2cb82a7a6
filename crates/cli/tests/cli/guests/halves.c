/* A program that calls its shared library. */
int half(short *);
int main(void) {
    short numbers[4] = {2, 4, 6, 8};
    int sum = 0;
    for (int i = 0; i < 400; i++) sum += half(&numbers[i % 4]);
    return sum == 1000 ? 0 : 1;
}
