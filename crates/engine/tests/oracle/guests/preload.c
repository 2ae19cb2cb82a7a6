/* Loaded into qemu-alpha: answers what the guest may learn about the machine it runs on as the engine
 * does, so that the two can be compared instruction by instruction with nothing left out. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

/* 2026-01-01T00:00:00Z, where the engine's virtual clock starts. It advances by 1 ns an instruction there
 * and by 1 ns a call here: only programs that look no closer than that run alike. */
static const time_t start = 1767225600;
static long calls;

/* SplitMix64 from Random::Seeded(0). */
static uint64_t state;

static uint64_t random_bits(void) {
    uint64_t z = state += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
}

/* Where `qemu-alpha -seed` takes AT_RANDOM from, in halves. */
uint32_t g_rand_int(void *generator) {
    static uint64_t bits;
    static int halves;
    (void)generator;
    bits = halves++ % 2 ? bits >> 32 : random_bits();
    return (uint32_t)bits;
}

static long (*host_call(void))(long, ...) {
    static long (*call)(long, ...);
    if (!call) call = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall");
    return call;
}

/* The ids of the engine's process and thread, which must not reach the host. */
static pid_t engine_process(void) {
    return atoi(getenv("ORACLE_PID"));
}

static pid_t engine_thread(void) {
    return atoi(getenv("ORACLE_TID"));
}

static pid_t host_process(pid_t id) {
    return id == engine_process() ? (pid_t)host_call()(SYS_getpid) : id;
}

static pid_t host_thread(pid_t id) {
    return id == engine_thread() ? (pid_t)host_call()(SYS_gettid) : id;
}

pid_t getpid(void) {
    return engine_process();
}

int kill(pid_t process, int signal) {
    return (int)host_call()(SYS_kill, host_process(process), signal);
}

int clock_gettime(clockid_t clock, struct timespec *time) {
    (void)clock;
    *time = (struct timespec){.tv_sec = start, .tv_nsec = calls++};
    return 0;
}

int gettimeofday(struct timeval *restrict time, void *restrict zone) {
    (void)zone;
    *time = (struct timeval){.tv_sec = start, .tv_usec = calls++ / 1000};
    return 0;
}

long syscall(long number, ...) {
    long a[6];
    va_list list;
    va_start(list, number);
    for (int i = 0; i < 6; i++) a[i] = va_arg(list, long);
    va_end(list);
    if (number == SYS_getrandom) {
        for (long done = 0; done < a[1]; done += 8) {
            uint64_t bits = random_bits();
            memcpy((char *)a[0] + done, &bits, a[1] - done < 8 ? a[1] - done : 8);
        }
        return a[1];
    }
    if (number == SYS_tgkill || number == SYS_rt_tgsigqueueinfo) {
        a[0] = host_process((pid_t)a[0]);
        a[1] = host_thread((pid_t)a[1]);
    }
    if (number == SYS_tkill) a[0] = host_thread((pid_t)a[0]);
    if (number == SYS_rt_sigqueueinfo) a[0] = host_process((pid_t)a[0]);
    long result = host_call()(number, a[0], a[1], a[2], a[3], a[4], a[5]);
    return number == SYS_gettid || number == SYS_set_tid_address ? engine_thread() : result;
}
