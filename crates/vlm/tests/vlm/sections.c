/* Calls each function of vlm.h. */
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "vlm.h"

static int fail(const char *what)
{
    fprintf(stderr, "%s: %s\n", what, vlm_message());
    return 1;
}

int main(void)
{
    vlm_section *section = vlm_create("orders");
    if (section == NULL)
        return fail("create");
    char *memory = vlm_map(section, 0);
    if (memory == NULL || vlm_size(section) != 8 << 20)
        return fail("map");
    for (size_t at = 0; at < vlm_size(section); at++)
        if (memory[at] != 0)
            return fail("zeroes");
    if (fork() == 0) {
        vlm_section *same = vlm_open("orders");
        char *other = same != NULL ? vlm_map(same, 0) : NULL;
        if (other == NULL)
            return fail("open");
        memset(other, 42, vlm_size(same));
        vlm_close(same);
        return vlm_unmap(other);
    }
    int status = 0;
    wait(&status);
    const char *read_only = vlm_map(section, VLM_READ_ONLY);
    if (status != 0 || read_only == NULL || read_only[vlm_size(section) - 1] != 42)
        return fail("share");
    puts("zeroed and shared");
    if (vlm_create("orders") != NULL)
        return fail("create twice");
    puts(vlm_message());
    if (vlm_delete("orders") != 0)
        return fail("delete");
    if (vlm_delete("orders") == 0)
        return fail("delete twice");
    puts(vlm_message());
    if (vlm_unmap(memory) != 0 || vlm_unmap((void *)read_only) != 0)
        return fail("unmap");
    if (vlm_unmap(memory) != -1 || vlm_create(NULL) != NULL || vlm_map(NULL, 0) != NULL || vlm_map(section, 8) != NULL)
        return fail("misuse");
    vlm_close(section);
    return 0;
}
