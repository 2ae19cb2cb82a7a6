/* A shared library with one function. */
int half(short *number) { return *number / 2; }
