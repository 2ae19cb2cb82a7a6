/* Clocks and sleeping, without a word about what time it is. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/select.h>
#include <sys/time.h>
#include <sys/times.h>
#include <time.h>
#include <unistd.h>

static int64_t now(clockid_t clock) {
    struct timespec t;
    if (clock_gettime(clock, &t) != 0) return -1;
    return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

static void monotonic(clockid_t clock, const char *name) {
    int64_t last = now(clock);
    int good = last >= 0;
    for (int i = 0; i < 1000; i++) {
        int64_t next = now(clock);
        good &= next >= last;
        last = next;
    }
    printf("%s does not go back: %d\n", name, good);
}

static void sleeping(void) {
    struct timespec millisecond = {0, 1000000}, bad = {0, 1000000000};
    int64_t before = now(CLOCK_MONOTONIC);
    int slept = nanosleep(&millisecond, NULL);
    printf("nanosleep: %d %d\n", slept, now(CLOCK_MONOTONIC) - before >= 1000000);
    before = now(CLOCK_MONOTONIC);
    slept = usleep(1000);
    printf("usleep: %d %d\n", slept, now(CLOCK_MONOTONIC) - before >= 1000000);
    errno = 0;
    slept = nanosleep(&bad, NULL);
    printf("bad nanosleep: %d %s\n", slept, strerror(errno));
    struct timeval wait = {0, 1000};
    before = now(CLOCK_MONOTONIC);
    int ready = select(0, NULL, NULL, NULL, &wait);
    printf("select: %d %d\n", ready, now(CLOCK_MONOTONIC) - before >= 1000000);
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += (until.tv_nsec + 1000000) / 1000000000;
    until.tv_nsec = (until.tv_nsec + 1000000) % 1000000000;
    slept = clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
    printf("clock_nanosleep: %d %d\n", slept, now(CLOCK_MONOTONIC) >= until.tv_sec * INT64_C(1000000000) + until.tv_nsec);
}

static void agreeing(void) {
    struct timeval day;
    gettimeofday(&day, NULL);
    int64_t difference = time(NULL) - day.tv_sec;
    printf("time of day: %d %d\n", difference >= -1 && difference <= 1, day.tv_usec >= 0 && day.tv_usec < 1000000);
    struct timespec resolution;
    printf("resolution: %d %d\n", clock_getres(CLOCK_MONOTONIC, &resolution), resolution.tv_sec == 0);
    struct tms used;
    printf("processor: %d %d\n", times(&used) != (clock_t)-1, clock() >= 0);
    errno = 0;
    int result = clock_gettime(9999, &resolution);
    printf("no such clock: %d %s\n", result, strerror(errno));
}

static void calendar(void) {
    time_t moment = 862358400; /* in 1997 */
    struct tm parts;
    char text[64];
    gmtime_r(&moment, &parts);
    strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S %A %j", &parts);
    printf("%s %d\n", text, timegm(&parts) == moment);
}

int main(void) {
    monotonic(CLOCK_MONOTONIC, "monotonic");
    monotonic(CLOCK_PROCESS_CPUTIME_ID, "processor");
    sleeping();
    agreeing();
    calendar();
    return 0;
}
