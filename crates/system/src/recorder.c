/* A plugin of qemu-system-alpha that reports what the processor executes: blocks, addresses of accesses, and the
 * threads of the guest's kernel between which it switches. crates/system/src/stream.rs reads what it writes.
 *
 * It decides nothing and keeps no tables: the reader does. Arguments, numbers in hexadecimal:
 *   out=N       descriptor to write to
 *   ram=N       descriptor of the guest's memory, which the plugin reads
 *   size=BYTES  size of that memory
 *   switch=PC   where PALcode for swpctx begins
 *   begin=WORD end=WORD   instructions by which the guest begins and ends the recorded part
 *   cpus=N      number of processors
 *   counts=1    addresses are not wanted, but how many there were; of one processor only
 *   exact=PC exact_end=PC   but these blocks' are
 *   stack=BYTES  size of a kernel stack, which begins with the thread's process control block
 *   task= task_stack= pid= tgid= comm= mm=   offsets: of the task in thread_info; of these fields in task_struct
 *
 * A stream of 64-bit words in the host's order, told apart by the two highest bits:
 *   01  a block was entered: its number (low 32 bits), the processor (bits 32 to 47); the accesses by the block before
 *       that were only counted (bits 48 to 61)
 *   00 or 11  an address was accessed: of the user's or the kernel's, sign-extended; a physical one by PALcode
 *   10  something else, of the kind in bits 56 to 61:
 *       DEFINE  a block: number of instructions (low 32 bits); then its address, and its words, two in each
 *       THREAD  another thread runs on the processor (bits 32 to 47): its task's address, its process (high half) and
 *               thread number, 16 bytes of its name, whether it has user memory
 *       PROCESSOR  the next addresses are of accesses by this processor (bits 32 to 47), not by the one that entered a block last
 *       CONDITIONAL  the next address is that of a store-conditional
 *       END  the end of a complete stream */
#include <sched.h>
#include <sys/mman.h>

#include "qemu_plugin_stream.h"

enum kind { DEFINE, THREAD, CONDITIONAL, END, PROCESSOR };

/* What a block does beside being executed: bits above its number in the callback's argument. */
#define BEGINS (UINT64_C(1) << 32)
#define ENDS (UINT64_C(1) << 33)

static uint64_t ram_file, size, switch_pc, begin_word, end_word, cpus, counts, exact, exact_end, stack;
static uint64_t task, task_stack, pid, tgid, comm, mm;
static const struct argument arguments[] = {
    {"out", &out}, {"ram", &ram_file}, {"size", &size}, {"switch", &switch_pc}, {"begin", &begin_word},
    {"end", &end_word}, {"cpus", &cpus}, {"counts", &counts}, {"exact", &exact}, {"exact_end", &exact_end},
    {"stack", &stack}, {"task", &task}, {"task_stack", &task_stack}, {"pid", &pid}, {"tgid", &tgid}, {"comm", &comm},
    {"mm", &mm}};
enum { ARGUMENTS = sizeof arguments / sizeof *arguments };

static const uint8_t *ram;
static uint32_t blocks;
static bool records;
/* The accesses since a block was entered that are only counted. */
static uint64_t accesses;
/* Several processors are threads of the emulator, which write to the stream in turns. */
static bool busy;
static unsigned last_cpu;

static inline void lock(void) {
    while (cpus > 1 && __atomic_test_and_set(&busy, __ATOMIC_ACQUIRE)) sched_yield();
}

static inline void unlock(void) {
    if (cpus > 1) __atomic_clear(&busy, __ATOMIC_RELEASE);
}

/* Bytes of the guest's memory at an address in the kernel's direct mapping or a physical address; null outside. */
static const uint8_t *memory(uint64_t address, uint64_t bytes) {
    uint64_t physical = address & ((UINT64_C(1) << 42) - 1);
    return physical < size && bytes <= size - physical ? ram + physical : NULL;
}

static uint64_t load(uint64_t address, unsigned bytes) {
    const uint8_t *at = memory(address, bytes);
    uint64_t value = 0;
    if (at) memcpy(&value, at, bytes);
    return value;
}

static void on_block(unsigned cpu, void *argument) {
    uint64_t block = (uint64_t)argument;
    lock();
    if (block >> 32) records = block & BEGINS;
    if (records || block & ENDS) put(BLOCK | accesses << 48 | (uint64_t)cpu << 32 | (uint32_t)block), last_cpu = cpu;
    accesses = 0;
    unlock();
}

/* Writes an address, after words that say what is unusual about it. */
static inline void put_access(unsigned cpu, uint64_t address, bool is_conditional) {
    if (cpu != last_cpu) put(KIND(PROCESSOR) | (uint64_t)cpu << 32), last_cpu = cpu;
    if (is_conditional) put(KIND(CONDITIONAL));
    put(address);
}

static void on_access(unsigned cpu, uint32_t info, uint64_t address, void *argument) {
    (void)info, (void)argument;
    lock();
    if (records) put_access(cpu, address, false);
    unlock();
}

static void on_conditional(unsigned cpu, uint32_t info, uint64_t address, void *argument) {
    (void)info, (void)argument;
    lock();
    if (records) put_access(cpu, address, true);
    unlock();
}

/* A load by swpctx. If it is of a thread's process control block, that is the thread to which the processor switches: the
 * block heads thread_info, at the foot of the thread's kernel stack, and its task names this stack. */
static void on_switch(unsigned cpu, uint32_t info, uint64_t address, void *argument) {
    on_access(cpu, info, address, argument);
    if (qemu_plugin_mem_is_store(info)) return;
    uint64_t block = address & ~(stack - 1);
    uint64_t thread = load(block + task, 8);
    if (!thread || !memory(thread + task_stack, 8)) return;
    if ((load(thread + task_stack, 8) ^ block) & ((UINT64_C(1) << 42) - 1)) return;
    uint64_t name[2] = {0, 0};
    const uint8_t *text = memory(thread + comm, sizeof name);
    if (text) memcpy(name, text, sizeof name);
    lock();
    put(KIND(THREAD) | (uint64_t)cpu << 32);
    put(thread);
    put(load(thread + tgid, 4) << 32 | load(thread + pid, 4));
    put(name[0]), put(name[1]);
    put(load(thread + mm, 8) != 0);
    unlock();
}

static uint32_t word_of(const struct qemu_plugin_tb *tb, size_t index) {
    uint32_t word;
    memcpy(&word, qemu_plugin_insn_data(qemu_plugin_tb_get_insn(tb, index)), 4);
    return word;
}

static bool is_conditional(uint32_t opcode) { return opcode == 0x2e || opcode == 0x2f; }

/* Loads, stores, and hw_ld and hw_st of PALcode. */
static bool accesses_memory(uint32_t opcode) {
    return (opcode >= 0x0a && opcode <= 0x0f) || (opcode >= 0x20 && opcode <= 0x2f) || opcode == 0x1b || opcode == 0x1f;
}

static bool has_conditional(const struct qemu_plugin_tb *tb) {
    for (size_t i = 0; i < qemu_plugin_tb_n_insns(tb); i++)
        if (is_conditional(word_of(tb, i) >> 26)) return true;
    return false;
}

static void on_translation(uint64_t id, struct qemu_plugin_tb *tb) {
    (void)id;
    size_t count = qemu_plugin_tb_n_insns(tb);
    lock();
    uint64_t pc = qemu_plugin_tb_vaddr(tb), number = blocks++, pair = 0;
    bool switches = pc >= switch_pc && pc < switch_pc + 64;
    /* Which access of a block with a store-conditional is missing, a count would not say. */
    bool only_counts = counts && !switches && !(pc >= exact && pc < exact_end) && !has_conditional(tb);
    put(KIND(DEFINE) | count);
    put(pc);
    for (size_t i = 0; i < count; i++) {
        struct qemu_plugin_insn *instruction = qemu_plugin_tb_get_insn(tb, i);
        uint32_t word = word_of(tb, i);
        if (i & 1) put(pair | (uint64_t)word << 32);
        else pair = word;
        if (word == begin_word) number |= BEGINS;
        if (word == end_word) number |= ENDS;
        /* QEMU carries out a store-conditional as a load, a comparison and a store; or, if it fails early, as nothing. */
        if (only_counts && accesses_memory(word >> 26))
            qemu_plugin_register_vcpu_mem_inline(instruction, ACCESSES, ADD, &accesses, 1);
        else if (is_conditional(word >> 26))
            qemu_plugin_register_vcpu_mem_cb(instruction, on_conditional, NO_REGISTERS, WRITES, NULL);
        else if (accesses_memory(word >> 26))
            qemu_plugin_register_vcpu_mem_cb(instruction, switches ? on_switch : on_access, NO_REGISTERS, ACCESSES, NULL);
    }
    if (count & 1) put(pair);
    unlock();
    qemu_plugin_register_vcpu_tb_exec_cb(tb, on_block, NO_REGISTERS, (void *)number);
}

static void at_exit(uint64_t id, void *argument) {
    (void)id, (void)argument;
    put(KIND(END));
    flush();
}

EXPORT int qemu_plugin_install(uint64_t id, const void *info, int count, char **given) {
    (void)info;
    if (!read_arguments(arguments, ARGUMENTS, count, given)) return 1;
    void *mapped = mmap(NULL, size, PROT_READ, MAP_SHARED, (int)ram_file, 0);
    if (mapped == MAP_FAILED) {
        fprintf(stderr, "recorder: cannot map the guest's memory: %s\n", strerror(errno));
        return 1;
    }
    ram = mapped;
    qemu_plugin_register_vcpu_tb_trans_cb(id, on_translation);
    qemu_plugin_register_atexit_cb(id, at_exit, NULL);
    return 0;
}
