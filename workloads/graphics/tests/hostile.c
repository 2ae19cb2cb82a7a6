/* Clients that harm a server: `hostile SERVER`, the server's process; GL_SERVER is its socket. After each of them another client draws
 * a scene by each way, which must be the one drawn without a server, in time. At last the server is killed while a client draws: the
 * client must end with a message. Prints what was tried; exits with 1 at the first failure. */
#define _GNU_SOURCE
#include "../protocol/protocol.h"
#include "../offscreen.h"
#include "scenes.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SECONDS = 120, KILLED = 6 };
static const char *const ways[] = { "socket", "ring", "buffers" };
static unsigned char expected[SCENE_SIZE][SCENE_SIZE][4], found[SCENE_SIZE][SCENE_SIZE][4];

static void fail(const char *what)
{
    fprintf(stderr, "hostile: %s\n", what);
    exit(1);
}

static void draw(void *pixels)
{
    struct offscreen *o = offscreen_create(pixels, SCENE_SIZE, SCENE_SIZE);
    offscreen_make_current(o);
    scenes[0].draw();
    glFinish();
    offscreen_destroy(o);
}

/* Other clients draw as if they were alone. */
static void check_others(const char *what)
{
    for (int i = 0; i < 3; i++) {
        pid_t child = fork();
        if (child == 0) {
            alarm(SECONDS);
            setenv("GL_RENDERING", ways[i], 1);
            draw(found);
            _exit(memcmp(expected, found, sizeof found) != 0);
        }
        int status;
        waitpid(child, &status, 0);
        if (status) {
            fprintf(stderr, "hostile: %s: another client (%s) ended with status %x\n", what, ways[i], (unsigned)status);
            exit(1);
        }
    }
    printf("%s: others are served\n", what);
}

/* ---- a connection by hand */

static int plain_connection(void)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    snprintf(address.sun_path, sizeof address.sun_path, "%s", getenv("GL_SERVER"));
    int s = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connect(s, (void *)&address, sizeof address)) fail("there is no server");
    return s;
}

static int set_up_connection(void)
{
    char setup[SETUP_BYTES] = { BYTE_ORDER_NAME }, answer[8];
    int s = plain_connection();
    if (send(s, setup, sizeof setup, MSG_NOSIGNAL) != sizeof setup || recv(s, answer, sizeof answer, MSG_WAITALL) != sizeof answer)
        fail("the server does not set up connections");
    return s;
}

static void put(int s, unsigned code, const uint32_t *operands, int count)
{
    uint32_t words[64];
    struct request head = { GLX_MAJOR, (uint8_t)code, (uint16_t)(1 + count) };
    memcpy(words, &head, 4);
    memcpy(words + 1, operands, 4 * (size_t)count);
    send(s, words, 4 + 4 * (size_t)count, MSG_NOSIGNAL);
}

/* A context with the tag 1 and a drawable of a size. */
static int drawing_connection(uint32_t side)
{
    int s = set_up_connection();
    struct message m;
    put(s, REQUEST_CREATE_CONTEXT, (uint32_t[]){ 1, 2, 0, 0, 0 }, 5);
    put(s, REQUEST_CREATE_PBUFFER, (uint32_t[]){ 0, 2, 2, 2, 0x8041, side, 0x8040, side }, 8);
    put(s, REQUEST_MAKE_CURRENT, (uint32_t[]){ 2, 1, 0 }, 3);
    if (recv(s, &m, sizeof m, MSG_WAITALL) != sizeof m || m.type != MESSAGE_REPLY) fail("the server has no context for a client");
    return s;
}

/* Whether the server ends the connection. */
static int is_ended(int s)
{
    char bytes[4096];
    struct timeval limit = { SECONDS, 0 };
    setsockopt(s, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    for (;;) {
        ssize_t n = recv(s, bytes, sizeof bytes, 0);
        if (n == 0 || (n < 0 && errno == ECONNRESET)) return 1;
        if (n < 0) return 0;
    }
}

/* ---- harmful clients */

static void send_half_a_request(void)
{
    int s[3] = { plain_connection(), set_up_connection(), drawing_connection(64) };
    send(s[0], "l", 1, MSG_NOSIGNAL);
    send(s[1], "\226\3", 2, MSG_NOSIGNAL);
    uint32_t half[3] = { 0, 1, 0 };
    memcpy(half, &(struct request){ GLX_MAJOR, REQUEST_RENDER, 1000 }, 4);
    send(s[2], half, sizeof half, MSG_NOSIGNAL);
    check_others("half a request");
    for (int i = 0; i < 3; i++) close(s[i]);
}

/* Asks for pictures as long as the server takes requests, and never reads. */
static void read_no_replies(void)
{
    int s = drawing_connection(1024);
    fcntl(s, F_SETFL, O_NONBLOCK);
    uint32_t request[9] = { 0, 1, 0, 0, 1024, 1024, GL_RGBA, GL_UNSIGNED_BYTE, 0 };
    memcpy(request, &(struct request){ GLX_MAJOR, 111, 9 }, 4);
    for (int i = 0, refused = 0; i < 100000 && refused < 20; i++)
        if (send(s, request, sizeof request, MSG_NOSIGNAL) < 0) refused++, usleep(5000);
    check_others("replies that nobody reads");
    close(s);
}

static struct ring *shared_ring(int s)
{
    put(s, REQUEST_VENDOR_PRIVATE_WITH_REPLY, (uint32_t[]){ VENDOR_OPEN_RING, 0 }, 2);
    struct message m;
    union { struct cmsghdr align; char bytes[CMSG_SPACE(sizeof(int))]; } control;
    struct iovec to = { &m, sizeof m };
    struct msghdr h = { .msg_iov = &to, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control };
    int memory;
    if (recvmsg(s, &h, MSG_WAITALL) != sizeof m || !CMSG_FIRSTHDR(&h)) fail("there is no ring");
    memcpy(&memory, CMSG_DATA(CMSG_FIRSTHDR(&h)), sizeof memory);
    if (ftruncate(memory, 0) == 0) fail("a client can shrink the ring");
    struct ring *r = mmap(NULL, sizeof *r, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
    close(memory);
    if (r == MAP_FAILED) fail("the ring cannot be mapped");
    return r;
}

static void lie_in_the_ring(void)
{
    int s[3];
    struct ring *r[3];
    for (int i = 0; i < 3; i++) s[i] = set_up_connection(), r[i] = shared_ring(s[i]);
    atomic_store(&r[0]->bytes[0], 4u);
    atomic_store(&r[0]->written, 1000u);
    atomic_store(&r[1]->bytes[0], 0xfffffff0u);
    atomic_store(&r[1]->written, 1u);
    atomic_store(&r[2]->bytes[0], 6u);
    atomic_store(&r[2]->written, 0x80000000u);
    for (int i = 0; i < 3; i++) {
        send(s[i], "", 1, MSG_NOSIGNAL);
        if (!is_ended(s[i])) fail("a client with a ring of wrong counters is still there");
        close(s[i]);
        munmap(r[i], sizeof *r[i]);
    }
    check_others("wrong counters of rings");
}

/* Fills slots as fast as it can, and changes them and their lengths behind the server's back. */
static void change_the_ring(void)
{
    int s = set_up_connection();
    struct ring *r = shared_ring(s);
    pid_t child = fork();
    if (child == 0) {
        for (uint32_t n = 1;; n = n * 1664525 + 1013904223) {
            uint32_t written = atomic_load(&r->written);
            if (written - atomic_load(&r->read) < RING_SLOTS) {
                atomic_store(&r->bytes[written % RING_SLOTS], n >> 17 & ~3u);
                atomic_store(&r->written, written + 1);
                atomic_store(&r->program_waits, 1);
                if (atomic_exchange(&r->server_sleeps, 0) && send(s, "", 1, MSG_NOSIGNAL | MSG_DONTWAIT) < 0) pause();
            }
            memcpy(r->slot[n >> 29] + (n >> 10 & 0x7ffc), &n, 4);
            if (n % 64 == 0) memcpy(r->slot[written % RING_SLOTS], &(struct request){ GLX_MAJOR, (uint8_t)(n >> 8), 2 }, 4);
        }
    }
    check_others("a ring that changes");
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    close(s);
    munmap(r, sizeof *r);
}

/* Lists that call one another, meshes of 2^62 points, and pictures that fill large drawables again and again. */
static void cost_too_much(void)
{
    int s[3] = { drawing_connection(64), drawing_connection(64), drawing_connection(2048) };
    for (uint32_t list = 1; list <= 60; list++) {
        put(s[0], 101, (uint32_t[]){ 1, list, GL_COMPILE }, 3);
        uint32_t commands[8] = { 1, 0, list + 1, 0, list + 1, 0, list + 1 };
        for (int i = 0; i < 3; i++) memcpy(commands + 1 + 2 * i, &(struct command_head){ 8, 1 }, 4);
        put(s[0], REQUEST_RENDER, commands, 7);
        put(s[0], 102, (uint32_t[]){ 1 }, 1);
    }
    uint32_t call[3] = { 1, 0, 1 };
    memcpy(call + 1, &(struct command_head){ 8, 1 }, 4);
    put(s[0], REQUEST_RENDER, call, 3);
    uint32_t mesh[7] = { 1, 0, GL_POINT, 0x80000000, 0x7fffffff, 0x80000000, 0x7fffffff };
    memcpy(mesh + 1, &(struct command_head){ 24, 157 }, 4);
    put(s[1], REQUEST_RENDER, mesh, 7);
    static uint32_t clears[16384];
    memcpy(clears, &(struct request){ GLX_MAJOR, REQUEST_RENDER, 16000 }, 4);
    clears[1] = 1;
    for (int i = 2; i < 16000; i += 2) memcpy(clears + i, &(struct command_head){ 8, 127 }, 4), clears[i + 1] = GL_COLOR_BUFFER_BIT;
    send(s[2], clears, 64000, MSG_NOSIGNAL);
    check_others("requests without end");
    for (int i = 0; i < 3; i++) {
        if (!is_ended(s[i])) fail("a client whose request costs too much is still there");
        close(s[i]);
    }
}

static void send_noise(void)
{
    for (int i = 0; i < 20; i++) {
        int s = i % 2 ? set_up_connection() : plain_connection();
        char noise[4096];
        for (size_t k = 0; k < sizeof noise; k++) noise[k] = (char)(k * (size_t)(i * 7 + 13) >> 2);
        noise[0] = i % 3 ? (char)GLX_MAJOR : 0, noise[2] = 0, noise[3] = 0;
        send(s, noise, sizeof noise, MSG_NOSIGNAL);
        if (i == 0) {
            if (!is_ended(s)) fail("a client without a setup is still there");
            check_others("noise");
        }
        close(s);
    }
}

/* Vertices that are no numbers: arithmetic with them traps on an Alpha. */
static void send_no_numbers(void)
{
    static const uint32_t bits[] = { 0x7f800000, 0x7fc00000, 0xff800000, 0x7f7fffff, 1, 0x80000001 };
    int s[6];
    for (int i = 0; i < 6; i++) {
        s[i] = drawing_connection(64);
        uint32_t commands[20] = { 1, 0, GL_TRIANGLES };
        memcpy(commands + 1, &(struct command_head){ 8, 4 }, 4);
        for (int k = 0; k < 3; k++) {
            memcpy(commands + 3 + 4 * k, &(struct command_head){ 16, 70 }, 4);
            for (int j = 0; j < 3; j++) commands[4 + 4 * k + j] = bits[(i + j * k) % 6];
        }
        memcpy(commands + 15, &(struct command_head){ 4, 23 }, 4);
        put(s[i], REQUEST_RENDER, commands, 16);
    }
    check_others("vertices that are no numbers");
    for (int i = 0; i < 6; i++) close(s[i]);
}

/* Textures of 16 MB, in several contexts: beyond the limit they are an error. */
static void ask_for_memory(void)
{
    int s = drawing_connection(64);
    struct message m;
    for (uint32_t context = 1; context <= 3; context++) {
        if (context > 1) {
            put(s, REQUEST_CREATE_CONTEXT, (uint32_t[]){ context, 2, 0, 0, 0 }, 5);
            put(s, REQUEST_MAKE_CURRENT, (uint32_t[]){ 2, context, 0 }, 3);
            if (recv(s, &m, sizeof m, MSG_WAITALL) != sizeof m || m.type != MESSAGE_REPLY) fail("there is no second context");
        }
        for (uint32_t name = 1; name <= 10; name++) {
            uint32_t commands[18] = { context, 0, GL_TEXTURE_2D, name, 0 };
            struct image_head layout = { .alignment = 1 };
            const uint32_t image[8] = { GL_TEXTURE_2D, 0, 4, 2048, 2048, 0, GL_RGBA, GL_UNSIGNED_BYTE };
            memcpy(commands + 1, &(struct command_head){ 12, 4117 }, 4);
            memcpy(commands + 4, &(struct command_head){ 56, 110 }, 4);
            memcpy(commands + 5, &layout, sizeof layout);
            memcpy(commands + 10, image, sizeof image);
            put(s, REQUEST_RENDER, commands, 18);
        }
        put(s, 115, &context, 1);
        if (recv(s, &m, sizeof m, MSG_WAITALL) != sizeof m || m.type != MESSAGE_REPLY) fail("a client that asks for memory has no answer");
        if (m.value != (context == 1 ? GL_NO_ERROR : GL_OUT_OF_MEMORY)) fail("the memory of a client is not limited");
    }
    check_others("memory without end");
    close(s);
}

/* More clients than the server takes, that do nothing. */
static void connect_too_often(void)
{
    int s[100];
    for (int i = 0; i < 100; i++) s[i] = plain_connection();
    for (int i = 0; i < 100; i++) close(s[i]);
    check_others("many clients");
}

static void die_while_drawing(void)
{
    for (int i = 0; i < KILLED; i++) {
        pid_t child = fork();
        if (child == 0) {
            setenv("GL_RENDERING", ways[i % 3], 1);
            for (;;) draw(found);
        }
        usleep(3000 + 7000 * (useconds_t)i);
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
    }
    check_others("clients that are killed");
}

static void lose_the_server(pid_t server)
{
    pid_t child[3];
    for (int i = 0; i < 3; i++) {
        child[i] = fork();
        if (child[i] == 0) {
            alarm(SECONDS);
            setenv("GL_RENDERING", ways[i], 1);
            if (!freopen("/dev/null", "w", stderr)) _exit(2);
            for (;;) draw(found);
        }
    }
    usleep(100000);
    kill(server, SIGKILL);
    for (int i = 0; i < 3; i++) {
        int status;
        waitpid(child[i], &status, 0);
        if (!WIFEXITED(status) || WEXITSTATUS(status) != 1) fail("a client without a server neither ends nor says so");
    }
    printf("a server that is killed: its clients end\n");
}

int main(int argc, char **argv)
{
    if (argc != 2 || !getenv("GL_SERVER")) return 2;
    setvbuf(stdout, NULL, _IONBF, 0);
    /* Drawn by a process of its own: a connection is made once a process. */
    draw(expected);
    check_others("nobody");
    send_half_a_request();
    read_no_replies();
    lie_in_the_ring();
    change_the_ring();
    cost_too_much();
    send_noise();
    send_no_numbers();
    ask_for_memory();
    connect_too_often();
    die_while_drawing();
    lose_the_server((pid_t)atol(argv[1]));
    return 0;
}
