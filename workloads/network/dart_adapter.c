/* The adapter's side: executes commands, receives packets into its buffers, sums, interrupts. */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "checksum.h"
#include "dart.h"
#include "ether.h"
#include "network.h"

/* The adapter's own state. */
struct adapter {
    struct dart_control *control;
    unsigned char *memory;
    int tap;
    const struct dart_signals *signals;
    uint32_t free_buffers[DART_BUFFERS], free_count; /* That may receive. */
    uint32_t summary_producer;
    bool has_news; /* Summaries of which no interrupt has told. */
};

static uint64_t nanoseconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static void transmit(const struct adapter *adapter, const struct dart_command *command) {
    struct iovec ranges[DART_RANGES];
    uint32_t count = MINIMUM(command->count, DART_RANGES);
    for (uint32_t i = 0; i < count; i++) {
        const struct dart_range *range = &command->ranges[i];
        if (range->offset > DART_RECEIVE || range->length > DART_RECEIVE - range->offset) return;
        ranges[i] = (struct iovec){adapter->memory + range->offset, range->length};
    }
    /* A full device loses packets, as a network does. */
    while (writev(adapter->tap, ranges, (int)count) < 0 && errno == EINTR) {}
}

static void execute(struct adapter *adapter, const struct dart_command *command) {
    const struct dart_range *range = &command->ranges[0];
    switch (command->kind) {
        case DART_SUM:
            if (command->buffer < DART_BUFFERS && range->offset <= DART_RECEIVE && range->length <= DART_RECEIVE - range->offset)
                adapter->control->sums[command->buffer] = in_sum(adapter->memory + range->offset, (int)range->length);
            break;
        case DART_TRANSMIT: transmit(adapter, command); break;
        case DART_RECYCLE:
            if (command->buffer < adapter->control->receive_buffers && adapter->free_count < adapter->control->receive_buffers)
                adapter->free_buffers[adapter->free_count++] = command->buffer;
            break;
        default: break;
    }
}

static void signal_event(int descriptor) {
    uint64_t one = 1;
    if (write(descriptor, &one, sizeof one) < 0 && errno != EAGAIN) abort();
}

static bool run_commands(struct adapter *adapter) {
    struct dart_control *control = adapter->control;
    uint32_t next = control->command_consumer;
    bool has_run = false;
    for (; next != __atomic_load_n(&control->command_producer, __ATOMIC_ACQUIRE); has_run = true) {
        execute(adapter, &control->commands[next % DART_RING]);
        __atomic_store_n(&control->command_consumer, ++next, __ATOMIC_SEQ_CST);
        if (__atomic_load_n(&control->is_awaited, __ATOMIC_SEQ_CST)) signal_event(adapter->signals->executed);
    }
    return has_run;
}

/* Whether a packet has a place: a summary and a buffer. */
static bool may_receive(const struct adapter *adapter) {
    const struct dart_summary *summary = &adapter->control->summaries[adapter->summary_producer % DART_RING];
    return adapter->free_count > 0 && !__atomic_load_n(&summary->is_hosts, __ATOMIC_ACQUIRE);
}

static bool receive(struct adapter *adapter) {
    struct dart_control *control = adapter->control;
    struct dart_summary *summary = &control->summaries[adapter->summary_producer % DART_RING];
    if (!may_receive(adapter)) return false;
    uint32_t buffer = adapter->free_buffers[adapter->free_count - 1];
    unsigned char *at = adapter->memory + DART_RECEIVE + (size_t)buffer * control->buffer_bytes;
    ssize_t got = read(adapter->tap, at, control->buffer_bytes);
    if (got <= 0) return false;
    adapter->free_count--;
    adapter->summary_producer++;
    summary->buffer = buffer;
    summary->length = (uint32_t)got;
    summary->sum = got > ETHER_HEADER ? in_sum(at + ETHER_HEADER, (int)got - ETHER_HEADER) : 0;
    memcpy(summary->first, at, MINIMUM((size_t)got, DART_FIRST));
    __atomic_store_n(&summary->is_hosts, 1, __ATOMIC_RELEASE);
    adapter->has_news = true;
    return true;
}

/* Interrupts, if the hold-off time is over; else the milliseconds until then, or -1 if there is nothing to tell. */
static int interrupt(struct adapter *adapter) {
    uint64_t until = __atomic_load_n(&adapter->control->holdoff_until, __ATOMIC_ACQUIRE), now = nanoseconds();
    if (!adapter->has_news) return -1;
    if (now < until) return (int)((until - now) / 1000000) + 1;
    adapter->has_news = false;
    signal_event(adapter->signals->interrupt);
    return -1;
}

/* Sleeps until a command or a packet comes. */
static void sleep_until(struct adapter *adapter, int timeout) {
    struct dart_control *control = adapter->control;
    uint64_t rings;
    __atomic_store_n(&control->is_asleep, 1, __ATOMIC_SEQ_CST);
    /* After that: the driver rings for what it has given back since. Before it, the driver may have seen no sleeper. */
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    struct pollfd entries[] = {{adapter->signals->doorbell, POLLIN, 0}, {may_receive(adapter) ? adapter->tap : -1, POLLIN, 0}};
    if (control->command_consumer == __atomic_load_n(&control->command_producer, __ATOMIC_SEQ_CST)) poll(entries, 2, timeout);
    __atomic_store_n(&control->is_asleep, 0, __ATOMIC_SEQ_CST);
    while (read(adapter->signals->doorbell, &rings, sizeof rings) > 0) {}
}

void dart_adapter(struct dart_control *control, int memory, int tap, const struct dart_signals *signals) {
    static struct adapter adapter;
    adapter = (struct adapter){.control = control, .tap = tap, .signals = signals};
    adapter.memory = mmap(NULL, DART_MEMORY, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
    if (adapter.memory == MAP_FAILED) abort();
    for (uint32_t i = 0; i < control->receive_buffers; i++) adapter.free_buffers[adapter.free_count++] = i;
    for (;;) {
        bool has_worked = run_commands(&adapter);
        for (int i = 0; i < 16 && receive(&adapter); i++) has_worked = true;
        int timeout = interrupt(&adapter);
        if (!has_worked) sleep_until(&adapter, timeout);
    }
}
