/* What plugins of QEMU have in common that write a stream of 64-bit words, in the host's order, to a pipe
 * (`src/lib.rs` reads them): the words' highest bits, the buffer, and arguments NAME=NUMBER, in hexadecimal.
 *
 * The declarations are those of QEMU's plugin interface, version 1 (QEMU 6.0 to 8.2). */
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

struct qemu_plugin_tb;
struct qemu_plugin_insn;
enum { NO_REGISTERS = 0 };
enum { WRITES = 2, ACCESSES = 3 };
enum { ADD = 0 };
extern void qemu_plugin_register_vcpu_tb_trans_cb(uint64_t, void (*)(uint64_t, struct qemu_plugin_tb *));
extern void qemu_plugin_register_vcpu_tb_exec_cb(struct qemu_plugin_tb *, void (*)(unsigned, void *), int, void *);
extern void qemu_plugin_register_vcpu_mem_cb(struct qemu_plugin_insn *, void (*)(unsigned, uint32_t, uint64_t, void *),
                                             int, int, void *);
extern void qemu_plugin_register_vcpu_mem_inline(struct qemu_plugin_insn *, int, int, void *, uint64_t);
extern void qemu_plugin_register_atexit_cb(uint64_t, void (*)(uint64_t, void *), void *);
extern size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *);
extern uint64_t qemu_plugin_tb_vaddr(const struct qemu_plugin_tb *);
extern struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *, size_t);
extern const void *qemu_plugin_insn_data(const struct qemu_plugin_insn *);
extern bool qemu_plugin_mem_is_store(uint32_t);

EXPORT int qemu_plugin_version = 1;

#define CONTROL (UINT64_C(2) << 62)
#define KIND(kind) (CONTROL | (uint64_t)(kind) << 56)
#define BLOCK (UINT64_C(1) << 62)

/* The descriptor to write to; whether words are dropped instead. */
static uint64_t out;
static bool drops;
static uint64_t buffer[1 << 13];
static size_t filled;

static void flush(void) {
    const char *at = (const char *)buffer, *end = (const char *)(buffer + filled);
    while (!drops && at < end) {
        ssize_t written = write((int)out, at, (size_t)(end - at));
        if (written < 0 && errno == EINTR) continue;
        if (written <= 0) _exit(1); /* the reader is gone */
        at += written;
    }
    filled = 0;
}

static inline void put(uint64_t word) {
    if (filled == sizeof buffer / sizeof *buffer) flush();
    buffer[filled++] = word;
}

struct argument { const char *name; uint64_t *value; };

/* Sets the arguments that are given. Says which one is unknown, and returns false. */
static bool read_arguments(const struct argument *known, size_t known_count, int count, char **given) {
    for (int i = 0; i < count; i++) {
        char *value = strchr(given[i], '=');
        size_t length = value ? (size_t)(value - given[i]) : 0, a = 0;
        while (a < known_count && !(strlen(known[a].name) == length && !strncmp(known[a].name, given[i], length))) a++;
        if (!value || a == known_count) {
            fprintf(stderr, "recorder: unknown argument %s\n", given[i]);
            return false;
        }
        *known[a].value = strtoull(value + 1, NULL, 16);
    }
    return true;
}
