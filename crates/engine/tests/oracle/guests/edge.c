/* Everything about the outside that a program may ask: time, randomness, identity, memory. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

int main(void) {
    unsigned long seed[2], more[4];
    getrandom(seed, sizeof seed, 0);
    int fd = open("/dev/urandom", O_RDONLY);
    if (read(fd, more, sizeof more) != sizeof more) return 1;
    close(fd);
    struct timespec now, monotonic;
    clock_gettime(CLOCK_REALTIME, &now);
    clock_gettime(CLOCK_MONOTONIC, &monotonic);
    struct timeval day;
    gettimeofday(&day, NULL);
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    const unsigned long *random = (const unsigned long *)getauxval(AT_RANDOM);
    char *volatile memory = malloc(1000);
    printf("%lx %lx %lx %ld.%09ld %ld.%09ld %ld.%06ld %ld %ld %lx %p %p\n", seed[0], seed[1], more[3], (long)now.tv_sec,
           now.tv_nsec, (long)monotonic.tv_sec, monotonic.tv_nsec, (long)day.tv_sec, (long)day.tv_usec,
           (long)usage.ru_utime.tv_usec, (long)clock(), random[0], (void *)memory, (void *)&now);
    usleep(1000);
    printf("%s", ctime(&(time_t){time(NULL)}));
    /* Work that depends on all of it. */
    volatile unsigned long sum = 0;
    for (unsigned long i = 0; i < (seed[0] ^ more[0] ^ (unsigned long)now.tv_nsec ^ random[1]) % 10000; i++) sum += i;
    free(memory);
    return (int)(sum & 1);
}
