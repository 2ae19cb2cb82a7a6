/* Entry points of the canonical commands, expanded from commands.def, and the tables that they call through. */
#include "context.h"

/* Outside of glBegin and glEnd every command executes. */
#define COMMAND(name, ...) exec_##name,
#define ARRAY COMMAND
#define IMAGE COMMAND
const struct dispatch outside_commands = {
#include "expand.h"
};

/* Between them, commands that are not allowed there report an error, without a test in any of them. */
#define ILLEGAL_IN(name, parameters)
#define ILLEGAL_OUT(name, parameters) \
    static void illegal_##name CTX_P parameters { gl_error(gl, GL_INVALID_OPERATION); }
#define COMMAND(name, allowed, opcode, side, parameters, ...) ILLEGAL_##allowed(name, parameters)
#define ARRAY COMMAND
#define IMAGE COMMAND
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"
#include "expand.h"
#pragma GCC diagnostic pop

#define INSIDE_IN(name) exec_##name
#define INSIDE_OUT(name) illegal_##name
#define COMMAND(name, allowed, ...) INSIDE_##allowed(name),
#define ARRAY COMMAND
#define IMAGE COMMAND
const struct dispatch inside_commands = {
#include "expand.h"
};

/* The exported functions. They have their names by assembler labels, because <GL/gl.h> declares some with other types of pointers. */
#define COMMAND(name, allowed, opcode, side, parameters, arguments, ...) \
    __attribute__((visibility("default"))) void entry_##name NO_CTX_P parameters __asm__("gl" #name); \
    void entry_##name NO_CTX_P parameters \
    { \
        struct context *gl = current_fast(); \
        gl->dispatch->name CTX_A arguments; \
    }
#define ARRAY COMMAND
#define IMAGE COMMAND
#include "expand.h"

/* The same for queries: functions of this process have other names for the linker (functions.h). */
#define QUERY(result, name, parameters, arguments) gl##name,
const struct queries local_queries = {
#include "queries.def"
};

#define QUERY(result, name, parameters, arguments) \
    __attribute__((visibility("default"))) result query_##name parameters __asm__("gl" #name); \
    result query_##name parameters { return current->queries->name arguments; }
#include "queries.def"
