/* A plugin of QEMU's emulators of user mode (qemu-x86_64, qemu-aarch64, …) that reports what a program executes: blocks with
 * their code, accesses to memory, threads, and the files in which code lies. crates/qemu-user/src/stream.rs reads what it
 * writes.
 *
 * It knows no instruction set. Arguments, numbers in hexadecimal:
 *   out=N       descriptor to write to
 *   execute=N   the guest's number of execve
 *
 * A stream of 64-bit words in the host's order, told apart by the two highest bits:
 *   01  a block was entered: its number (low 32 bits), the thread (bits 32 to 47)
 *   00  memory was accessed: the address (low 48 bits), the instruction's index in its block (bits 48 to 56), log2 of the size
 *       (bits 57 to 59), whether it was stored to (bit 60)
 *   10  something else, of the kind in bits 56 to 61:
 *       DEFINE  a block: number of instructions (low 32 bits); then its address in the guest, that in the host, the number of
 *               bytes that follow; then bytes: of each instruction the length and the code
 *       FILE    code lies in a mapped file: bytes of its path (low 32 bits); then the first address in the host, the first one
 *               after it, the offset in the file; then the path
 *       BEGINS  a thread begins, with the number (bits 32 to 47) of one that has ended, or a new one
 *       RESUMES the next accesses are of this thread (bits 32 to 47), not of the one that entered a block last
 *       END     the end of a complete stream
 */
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>

#include "qemu_plugin_stream.h"

extern void qemu_plugin_register_vcpu_init_cb(uint64_t, void (*)(uint64_t, unsigned));
extern void qemu_plugin_register_vcpu_syscall_cb(uint64_t, void (*)(uint64_t, unsigned, int64_t, uint64_t, uint64_t, uint64_t,
                                                                    uint64_t, uint64_t, uint64_t, uint64_t, uint64_t));
extern size_t qemu_plugin_insn_size(const struct qemu_plugin_insn *);
extern void *qemu_plugin_insn_haddr(const struct qemu_plugin_insn *);
extern unsigned qemu_plugin_mem_size_shift(uint32_t);

enum kind { DEFINE, MAPPED_FILE, BEGINS, RESUMES, END };
#define ADDRESS ((UINT64_C(1) << 48) - 1)

static uint64_t execute;
static const struct argument arguments[] = {{"out", &out}, {"execute", &execute}};
enum { ARGUMENTS = sizeof arguments / sizeof *arguments };

static uint32_t blocks;
/* Threads of the program are threads of the emulator, which write to the stream in turns. */
static bool busy;
static unsigned last_thread;
/* Addresses of the host of which it is known whether they show a file. */
enum { RANGES = 1024 };
static struct { uint64_t start, end; } ranges[RANGES];
static size_t known;

static inline void lock(void) {
    while (__atomic_test_and_set(&busy, __ATOMIC_ACQUIRE)) sched_yield();
}

static inline void unlock(void) { __atomic_clear(&busy, __ATOMIC_RELEASE); }

static void put_bytes(const char *bytes, size_t count) {
    for (size_t at = 0; at < count; at += 8) {
        uint64_t word = 0;
        memcpy(&word, bytes + at, count - at < 8 ? count - at : 8);
        put(word);
    }
}

static void on_block(unsigned thread, void *argument) {
    lock();
    put(BLOCK | (uint64_t)thread << 32 | (uint32_t)(uintptr_t)argument);
    last_thread = thread;
    unlock();
}

static void on_access(unsigned thread, uint32_t info, uint64_t address, void *argument) {
    lock();
    if (thread != last_thread) put(KIND(RESUMES) | (uint64_t)thread << 32), last_thread = thread;
    uint64_t shift = qemu_plugin_mem_size_shift(info), stores = qemu_plugin_mem_is_store(info);
    put((address & ADDRESS) | (uint64_t)(uintptr_t)argument << 48 | (shift & 7) << 57 | stores << 60);
    unlock();
}

/* Reports the file that is mapped at an address of the host, once. */
static void report_file(uint64_t address) {
    for (size_t i = 0; i < known; i++)
        if (ranges[i].start <= address && address < ranges[i].end) return;
    FILE *maps = fopen("/proc/self/maps", "re");
    if (!maps) return;
    char *line = NULL;
    size_t room = 0;
    while (getline(&line, &room, maps) > 0) {
        unsigned long start, end, offset;
        int path = 0;
        if (sscanf(line, "%lx-%lx %*s %lx %*s %*s %n", &start, &end, &offset, &path) < 3) continue;
        if (address < start || address >= end) continue;
        if (known < RANGES) ranges[known].start = start, ranges[known].end = end, known++;
        size_t length = path ? strcspn(line + path, "\n") : 0;
        if (!length || line[path] != '/') break;
        put(KIND(MAPPED_FILE) | length);
        put(start), put(end), put(offset);
        put_bytes(line + path, length);
        break;
    }
    free(line);
    fclose(maps);
}

static void on_translation(uint64_t id, struct qemu_plugin_tb *tb) {
    (void)id;
    size_t count = qemu_plugin_tb_n_insns(tb), size = 0;
    static char code[512 * 17]; /* more than the longest block; under the lock */
    lock();
    for (size_t i = 0; i < count; i++) {
        struct qemu_plugin_insn *instruction = qemu_plugin_tb_get_insn(tb, i);
        size_t length = qemu_plugin_insn_size(instruction);
        if (size + 1 + length > sizeof code) abort();
        code[size++] = (char)length;
        memcpy(code + size, qemu_plugin_insn_data(instruction), length);
        size += length;
        qemu_plugin_register_vcpu_mem_cb(instruction, on_access, NO_REGISTERS, ACCESSES, (void *)(uintptr_t)i);
    }
    uint64_t host = count ? (uint64_t)(uintptr_t)qemu_plugin_insn_haddr(qemu_plugin_tb_get_insn(tb, 0)) : 0;
    if (host) report_file(host);
    put(KIND(DEFINE) | count);
    put(qemu_plugin_tb_vaddr(tb)), put(host), put(size);
    put_bytes(code, size);
    qemu_plugin_register_vcpu_tb_exec_cb(tb, on_block, NO_REGISTERS, (void *)(uintptr_t)blocks++);
    unlock();
}

static void on_thread(uint64_t id, unsigned thread) {
    (void)id;
    lock();
    put(KIND(BEGINS) | (uint64_t)thread << 32);
    unlock();
}

/* Another program may replace this one, without a word. */
static void on_system_call(uint64_t id, unsigned thread, int64_t number, uint64_t a, uint64_t b, uint64_t c, uint64_t d,
                           uint64_t e, uint64_t f, uint64_t g, uint64_t h) {
    (void)id, (void)thread, (void)a, (void)b, (void)c, (void)d, (void)e, (void)f, (void)g, (void)h;
    if ((uint64_t)number != execute) return;
    lock();
    flush();
    unlock();
}

/* A forked process has one thread, and records nothing. */
static void before_fork(void) { lock(); }
static void in_parent(void) { unlock(); }
static void in_child(void) {
    drops = true;
    filled = 0;
    close((int)out);
    unlock();
}

static void at_exit(uint64_t id, void *argument) {
    (void)id, (void)argument;
    lock();
    put(KIND(END));
    flush();
    drops = true;
    unlock();
}

EXPORT int qemu_plugin_install(uint64_t id, const void *info, int count, char **given) {
    (void)info;
    if (!read_arguments(arguments, ARGUMENTS, count, given)) return 1;
    fcntl((int)out, F_SETFD, FD_CLOEXEC);
    pthread_atfork(before_fork, in_parent, in_child);
    qemu_plugin_register_vcpu_init_cb(id, on_thread);
    qemu_plugin_register_vcpu_tb_trans_cb(id, on_translation);
    qemu_plugin_register_vcpu_syscall_cb(id, on_system_call);
    qemu_plugin_register_atexit_cb(id, at_exit, NULL);
    return 0;
}
