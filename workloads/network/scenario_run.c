/* Runs the scenarios of a file.
 *
 *     scenario_run FILE [host] [NAME]
 *
 * A scenario begins with "scenario NAME" and has a line for each step:
 *
 *     settings WORD...        notimestamps, noscaling, buffer=N, mbufs=N, mtu=N, nothost (the host's TCP rightly does something else)
 *     listen, connect, accept, shutdown, close, abort, nodelay, keepalive
 *     write N, read N         N bytes of the pattern; read expects exactly these
 *     eof                     the stream has ended
 *     error NAME              the socket's pending error
 *     state NAME              the connection's state
 *     + MS                    time passes
 *     < SEGMENT               the peer sends
 *     early N                 the peer sends N segments of a byte, from number 3 on and with a gap behind each; what is sent for them is
 *                             not compared
 *     > SEGMENT               the subject has sent; PUSH and what is not said are not compared
 *     >                       the subject has sent nothing
 *
 * All that the subject sends must be expected before the next step. Sequence numbers are relative. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "driver.h"
#include "pattern.h"
#include "scenario.h"
#include "scenario_packet.h"

#define PEER_ISS 0xfffffff0u /* The numbers wrap soon. */

static const struct subject *subject = &stack_subject;
static char name[128], line[256];
static int line_number;
static uint32_t subject_iss;
static uint64_t written, read_so_far;
static unsigned char packet[LARGEST_PACKET];
static bool is_repeated; /* If this run fails, another one decides. */

void scenario_fail(const char *format, ...) {
    va_list rest;
    if (is_repeated) _exit(1);
    va_start(rest, format);
    fprintf(stderr, "scenario %s (%s), line %d: %s: ", name, subject->name, line_number, line);
    vfprintf(stderr, format, rest);
    fputc('\n', stderr);
    va_end(rest);
    _exit(1);
}

static void expect_nothing(void) {
    struct spoken_segment sent;
    char text[200];
    int length = subject->capture(packet, sizeof packet);
    if (length == 0) return;
    packet_read(packet, length, PEER_ISS, &subject_iss, &sent);
    packet_print(&sent, text, sizeof text);
    scenario_fail("before it, this was sent: %s", text);
}

static void expect_segment(const char *text) {
    struct spoken_segment wanted, sent;
    char shown[200];
    packet_parse(text, &wanted);
    int length = subject->capture(packet, sizeof packet);
    if (length == 0) scenario_fail("nothing was sent");
    packet_read(packet, length, PEER_ISS, &subject_iss, &sent);
    packet_print(&sent, shown, sizeof shown);
    const struct tcp_options *want = &wanted.options, *have = &sent.options;
    bool is_right = (wanted.flags | TH_PUSH) == (sent.flags | TH_PUSH) && wanted.length == sent.length &&
                    (wanted.seq == sent.seq || (wanted.flags == (TH_RST | TH_ACK) && wanted.seq == 0)) && wanted.ack == sent.ack &&
                    (!wanted.has_window || wanted.window == sent.window) && (!want->has_mss || (have->has_mss && want->mss == have->mss)) &&
                    (!want->has_scale || have->has_scale) && (!want->has_timestamp || (have->has_timestamp && want->ts_ecr == have->ts_ecr));
    if (!is_right) scenario_fail("this was sent: %s", shown);
}

static void inject(const char *text) {
    struct spoken_segment segment;
    packet_parse(text, &segment);
    int length = packet_build(&segment, PEER_ISS, subject_iss, packet);
    subject->inject(packet, length);
}

static void send_early(unsigned count) {
    char text[64];
    for (unsigned i = 0; i < count; i++) {
        snprintf(text, sizeof text, "A %u ack 1 len 1", 3 + 2 * i);
        inject(text);
        while (subject->capture(packet, sizeof packet)) {}
    }
}

static void do_write(unsigned length) {
    char *bytes = malloc(length + 1);
    pattern_fill(bytes, length, written, SUBJECT_SEED);
    long done = subject->write(bytes, length);
    free(bytes);
    if (done != (long)length) scenario_fail("%ld bytes were written", done);
    written += length;
}

static void do_read(unsigned length) {
    char *bytes = malloc(length + 1);
    long done = 0, got = 1;
    while (done < (long)length && (got = subject->read(bytes + done, length - done)) > 0) done += got;
    if (done != (long)length) scenario_fail("%ld bytes were read, then %ld", done, got);
    if (!pattern_is(bytes, length, read_so_far, PEER_SEED)) scenario_fail("wrong bytes were read");
    read_so_far += length;
    free(bytes);
}

static void expect_eof(void) {
    char byte;
    long got = subject->read(&byte, 1);
    if (got != 0) scenario_fail("read: %ld", got);
}

static int error_named(const char *text) {
    static const struct {
        const char *name;
        int number;
    } NAMES[] = {{"ECONNRESET", ECONNRESET}, {"ECONNREFUSED", ECONNREFUSED}, {"ETIMEDOUT", ETIMEDOUT}, {"none", 0}};
    for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++)
        if (strcmp(NAMES[i].name, text) == 0) return NAMES[i].number;
    scenario_fail("%s is no error", text);
}

static void expect_error(const char *text) {
    int wanted = error_named(text), found = subject->error();
    if (found != wanted) scenario_fail("the error is %s", strerror(found));
}

static void expect_state(const char *wanted) {
    const char *found = subject->state();
    if (strcmp(found, "?") != 0 && strcmp(found, wanted) != 0) scenario_fail("the state is %s", found);
}

/* A step that is a word. */
static bool do_word(const char *word) {
    const struct {
        const char *word;
        void (*action)(void);
    } ACTIONS[] = {{"listen", subject->listen}, {"connect", subject->connect}, {"accept", subject->accept}, {"shutdown", subject->shutdown},
                   {"close", subject->close},   {"abort", subject->abort},     {"eof", expect_eof}};
    for (size_t i = 0; i < sizeof ACTIONS / sizeof *ACTIONS; i++) {
        if (strcmp(ACTIONS[i].word, word) != 0) continue;
        ACTIONS[i].action();
        return true;
    }
    if (strcmp(word, "nodelay") != 0 && strcmp(word, "keepalive") != 0) return false;
    subject->option(word);
    return true;
}

static void step(const char *text) {
    unsigned value;
    char word[64] = "", argument[64] = "";
    sscanf(text, "%63s %63s", word, argument);
    if (text[0] == '>' && argument[0]) {
        expect_segment(text + 1);
        return;
    }
    expect_nothing();
    if (text[0] == '>') return;
    if (text[0] == '<') inject(text + 1);
    else if (sscanf(text, "+ %u", &value) == 1) subject->advance(value);
    else if (sscanf(text, "early %u", &value) == 1) send_early(value);
    else if (sscanf(text, "write %u", &value) == 1) do_write(value);
    else if (sscanf(text, "read %u", &value) == 1) do_read(value);
    else if (strcmp(word, "error") == 0) expect_error(argument);
    else if (strcmp(word, "state") == 0) expect_state(argument);
    else if (!do_word(word)) scenario_fail("this is no step");
}

/* Reads the settings; false if the scenario is not for the subject. */
static bool parse_settings(char *text, struct scenario_settings *settings) {
    bool is_for_us = true;
    for (char *rest, *word = strtok_r(text, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
        if (strcmp(word, "notimestamps") == 0) settings->no_timestamps = true;
        else if (strcmp(word, "noscaling") == 0) settings->no_scaling = true;
        else if (strcmp(word, "nothost") == 0) is_for_us = subject != &host_subject;
        else if (sscanf(word, "buffer=%u", &settings->buffer) != 1 && sscanf(word, "mbufs=%u", &settings->mbufs) != 1 &&
                 sscanf(word, "mtu=%d", &settings->mtu) != 1)
            scenario_fail("%s is no setting", word);
    }
    return is_for_us;
}

/* Runs the steps of one scenario, up to the next one. */
static int run(FILE *file) {
    struct scenario_settings settings = {0};
    bool has_begun = false;
    while (fgets(line, sizeof line, file)) {
        line_number++;
        line[strcspn(line, "#\n")] = 0;
        char *text = line + strspn(line, " ");
        if (strncmp(text, "scenario ", 9) == 0) break;
        if (!*text) continue;
        if (strncmp(text, "settings ", 9) == 0) {
            if (!parse_settings(text + 9, &settings)) return 2;
            continue;
        }
        if (!has_begun) subject->begin(&settings);
        has_begun = true;
        step(text);
    }
    if (!has_begun) scenario_fail("it has no steps");
    expect_nothing();
    subject->end();
    return 0;
}

/* Scenarios that run at a time: those of the host mostly wait. */
static int at_a_time(void) {
    return subject == &host_subject ? 16 : 2;
}

/* Runs one scenario and, for the host's TCP, in a network of its own. */
static void run_apart(const char *path, long position, int number) {
    FILE *own = fopen(path, "r");
    line_number = number;
    if (!own || fseek(own, position, SEEK_SET) < 0 || (subject == &host_subject && namespace_enter())) scenario_fail("it cannot begin");
    /* Not exit(), which would move the position of the parent's file. */
    _exit(run(own));
}

/* Starts one scenario in a process. The host's time does not wait for a busy processor: what fails there is repeated. */
static void start_apart(const char *path, long position, int number) {
    if (fork() != 0) return;
    int status;
    for (int runs = subject == &host_subject ? 3 : 1; runs > 1; runs--) {
        is_repeated = true;
        if (fork() == 0) run_apart(path, position, number);
        if (wait(&status) > 0 && WIFEXITED(status) && WEXITSTATUS(status) != 1) _exit(WEXITSTATUS(status));
    }
    is_repeated = false;
    run_apart(path, position, number);
}

/* Waits for one to end; results are counted by kinds: passed, failed, not for the subject. */
static void wait_for_one(int results[3]) {
    int status;
    if (wait(&status) < 0) return;
    int result = WIFEXITED(status) ? WEXITSTATUS(status) : 1;
    results[result == 2 ? 2 : result != 0]++;
}

int main(int count, char **arguments) {
    int results[3] = {0}, number = 0, running = 0;
    FILE *file = count > 1 ? fopen(arguments[1], "r") : NULL;
    const char *wanted = count > 2 ? arguments[count - 1] : NULL;
    if (!file) {
        fprintf(stderr, "usage: scenario_run FILE [host] [NAME]\n");
        return 2;
    }
    if (count > 2 && strcmp(arguments[2], "host") == 0) {
        subject = &host_subject;
        if (count == 3) wanted = NULL;
    }
    char text[256];
    while (fgets(text, sizeof text, file)) {
        number++;
        if (sscanf(text, "scenario %127[^\n]", name) != 1 || (wanted && strcmp(name, wanted) != 0)) continue;
        if (running == at_a_time()) wait_for_one(results);
        else running++;
        start_apart(arguments[1], ftell(file), number);
    }
    while (running-- > 0) wait_for_one(results);
    printf("%d scenarios passed, %d failed, %d are not for the %s\n", results[0], results[1], results[2], subject->name);
    return results[1] > 0 || results[0] == 0;
}
