/* A process that touches memory of a section which the kernel cannot give to it ends with a message, not by SIGBUS.
 *
 * This happens when the owner truncates a section's file while it is mapped, and when the kernel has forgotten a reserve. Linux
 * has no way to prevent the first (docs/design/vlm.md), and no process can go on without its memory. The library of `vlm run` and
 * the library for programs share this file.
 *
 * The handler calls only functions that are safe in handlers, on a stack of its own: a program's alternate stack may have room
 * for nothing but what the kernel saves there, which is 3.6 KB with AVX-512 and 11 KB with AMX. For the same reason the library is
 * linked with -z now: the dynamic loader, too, would save this state on the stack. Which section an address belongs to it reads from
 * /proc/self/maps, so that no list of mappings has to be kept right. All other signals go to the action that was there before.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* EX_IOERR of sysexits.h. */
#define EXIT_LOST_MEMORY 74

#define SECTIONS 64
static struct section {
    char mount[256], name[64];
    size_t mount_length;
} sections[SECTIONS];
static volatile sig_atomic_t count;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct sigaction previous;

struct text {
    char bytes[1024];
    size_t length;
};

static void append(struct text *text, const char *more)
{
    size_t length = strlen(more), room = sizeof text->bytes - text->length;
    if (length > room)
        length = room;
    memcpy(text->bytes + text->length, more, length);
    text->length += length;
}

static void append_number(struct text *text, uint64_t number)
{
    char digits[24];
    char *first = digits + sizeof digits - 1;
    *first = 0;
    do
        *--first = (char)('0' + number % 10);
    while ((number /= 10) != 0);
    append(text, first);
}

/* A mapped file of a section. */
struct lost {
    const struct section *section;
    uint64_t offset; /* of the address in the file */
    char path[512];
};

static uint64_t hexadecimal(const char **at)
{
    uint64_t number = 0;
    for (;; ++*at) {
        char c = **at;
        if (c >= '0' && c <= '9')
            number = number << 4 | (uint64_t)(c - '0');
        else if (c >= 'a' && c <= 'f')
            number = number << 4 | (uint64_t)(c - 'a' + 10);
        else
            return number;
    }
}

/* "START-END PERMISSIONS OFFSET DEVICE INODE    PATH": whether it has the address and is of a section. */
static bool is_of_section(const char *line, uint64_t address, struct lost *lost)
{
    uint64_t start = hexadecimal(&line), end;
    if (*line++ != '-')
        return false;
    end = hexadecimal(&line);
    if (address < start || address >= end || *line != ' ' || (line = strchr(line + 1, ' ')) == NULL)
        return false;
    ++line;
    lost->offset = hexadecimal(&line) + (address - start);
    const char *path = strchr(line, '/');
    for (int index = 0; path != NULL && index < count; ++index) {
        const struct section *section = &sections[index];
        if (strncmp(path, section->mount, section->mount_length) == 0 && path[section->mount_length] == '/') {
            lost->section = section;
            strncpy(lost->path, path, sizeof lost->path - 1);
            return true;
        }
    }
    return false;
}

static bool find(uint64_t address, struct lost *lost)
{
    char buffer[4096];
    size_t held = 0;
    bool found = false;
    int maps = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    while (maps >= 0 && !found) {
        ssize_t more = read(maps, buffer + held, sizeof buffer - 1 - held);
        if (more < 0 && errno == EINTR)
            continue;
        if (more <= 0)
            break;
        held += (size_t)more;
        buffer[held] = 0;
        char *line = buffer, *end;
        while (!found && (end = strchr(line, '\n')) != NULL) {
            *end = 0;
            found = is_of_section(line, address, lost);
            line = end + 1;
        }
        held -= (size_t)(line - buffer);
        memmove(buffer, line, held);
        if (held == sizeof buffer - 1)
            held = 0; /* a path that is longer than any section's */
    }
    if (maps >= 0)
        close(maps);
    return found;
}

static void explain(const struct lost *lost)
{
    struct text text = { .length = 0 };
    struct stat status;
    append(&text, "vlm: section `");
    append(&text, lost->section->name);
    if (stat(lost->path, &status) == 0 && (uint64_t)status.st_size <= lost->offset) {
        append(&text, "` was truncated to ");
        append_number(&text, (uint64_t)status.st_size >> 20);
        append(&text, " MiB by another program of its owner's, and process ");
        append_number(&text, (uint64_t)getpid());
        append(&text, " used memory beyond that: end all programs that use the section (`vlm list` shows them), and start them "
                      "again\n");
    } else {
        append(&text, "` has lost memory that was reserved for it, and process ");
        append_number(&text, (uint64_t)getpid());
        append(&text, " used it: `vlm check` says why, and what to do\n");
    }
    ssize_t written = write(STDERR_FILENO, text.bytes, text.length);
    (void)written;
}

/* The handler to which a signal is passed on. Without one, the default action for a fault, which comes again or is sent here, is
 * taken after the return. */
static void (*following(int signal_number, const siginfo_t *information))(int, siginfo_t *, void *)
{
    if (previous.sa_flags & SA_SIGINFO)
        return previous.sa_sigaction;
    if (previous.sa_handler != SIG_DFL && previous.sa_handler != SIG_IGN)
        return (void (*)(int, siginfo_t *, void *))(uintptr_t)previous.sa_handler;
    bool is_fault = information->si_code > 0;
    if (previous.sa_handler == SIG_DFL || is_fault) {
        struct sigaction action = { .sa_handler = SIG_DFL };
        sigaction(signal_number, &action, NULL);
        raise(signal_number);
    }
    return NULL;
}

typedef void action_function(int signal_number, siginfo_t *information, void *context);

/* Ends the process, or returns the function to which the signal is passed on: NULL if the action is taken after the return. */
__attribute__((used)) static action_function *decide(int signal_number, siginfo_t *information)
{
    int error = errno;
    struct lost lost = { .section = NULL };
    if (information->si_code == BUS_ADRERR && find((uint64_t)(uintptr_t)information->si_addr, &lost)) {
        explain(&lost);
        _exit(EXIT_LOST_MEMORY);
    }
    action_function *next = following(signal_number, information);
    errno = error;
    return next;
}

#ifdef __x86_64__
/* The stack of `decide`, which one thread at a time has. */
static char own_stack[16 << 10] __attribute__((used, aligned(64)));
static int own_stack_taken __attribute__((used));

/* Needs no room on the stack on which it is called. */
__attribute__((naked)) static void handle(int signal_number, siginfo_t *information, void *context)
{
    (void)signal_number, (void)information, (void)context;
    __asm__("1: movl $1, %eax\n"
            "xchgl %eax, own_stack_taken(%rip)\n"
            "testl %eax, %eax\n"
            "jz 2f\n"
            "pause\n"
            "jmp 1b\n"
            "2: movq %rsp, %rax\n"
            "leaq own_stack+16384(%rip), %rsp\n"
            "pushq %rax\n"
            "pushq %rdi\n"
            "pushq %rsi\n"
            "pushq %rdx\n"
            "cld\n"
            "call decide\n"
            "popq %rdx\n"
            "popq %rsi\n"
            "popq %rdi\n"
            "popq %rsp\n"
            "movl $0, own_stack_taken(%rip)\n"
            "testq %rax, %rax\n"
            "jz 3f\n"
            "jmp *%rax\n"
            "3: ret\n");
}
#else
static void handle(int signal_number, siginfo_t *information, void *context)
{
    action_function *next = decide(signal_number, information);
    if (next != NULL)
        next(signal_number, information, context);
}
#endif

/* From now on, a fault in a mapping of this mount's files ends the process with a message. */
void vlm_explain_faults(const char *mount, const char *name)
{
    pthread_mutex_lock(&lock);
    bool is_new = true;
    for (int index = 0; index < count; ++index)
        is_new = is_new && strcmp(sections[index].mount, mount) != 0;
    if (is_new && count < SECTIONS && strlen(mount) < sizeof sections->mount && strlen(name) < sizeof sections->name) {
        struct section *section = &sections[count];
        strcpy(section->mount, mount);
        strcpy(section->name, name);
        section->mount_length = strlen(mount);
        if (count == 0) {
            struct sigaction action = { .sa_sigaction = handle, .sa_flags = SA_SIGINFO | SA_ONSTACK };
            /* Another signal's handler must not keep the stack of ours. */
            sigfillset(&action.sa_mask);
            sigaction(SIGBUS, &action, &previous);
        }
        count = count + 1;
    }
    pthread_mutex_unlock(&lock);
}
