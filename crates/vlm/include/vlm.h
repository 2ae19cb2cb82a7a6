/* Very large memory: sections of huge pages, reserved by name with the command `vlm`.
 *
 *     vlm_section *section = vlm_create("orders");
 *     if (section == NULL) { fprintf(stderr, "%s\n", vlm_message()); exit(1); }
 *     char *memory = vlm_map(section, 0);
 *
 * Link with -lvlm. The registry is /etc/vlm.toml, or the file that the variable VLM_REGISTRY names.
 */
#ifndef VLM_H
#define VLM_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct vlm_section vlm_section;

/* For vlm_map: loads only, with page tables of the process's own. */
#define VLM_READ_ONLY 1

/* Creates a section, all zeroes. NULL on failure, for example if it exists. */
vlm_section *vlm_create(const char *name);

/* Opens a section that another process has created and uses. NULL on failure. */
vlm_section *vlm_open(const char *name);

/* The section's size in bytes. */
size_t vlm_size(const vlm_section *section);

/* Maps all of the section. Flags: 0 or VLM_READ_ONLY. NULL on failure. The first call registers a handler of SIGBUS: a touch of
 * memory that somebody truncated ends the process with a message and status 74, other faults go to the handler before. */
void *vlm_map(const vlm_section *section, int flags);

/* Unmaps what vlm_map returned. 0, or -1 on failure. */
int vlm_unmap(void *address);

/* Closes a section; its mappings stay. Without sections and mappings in any process, the memory goes back. */
void vlm_close(vlm_section *section);

/* Deletes a section by name; processes that use it keep its memory until they end. 0, or -1 on failure. */
int vlm_delete(const char *name);

/* The last error of this thread, as a sentence. */
const char *vlm_message(void);

#ifdef __cplusplus
}
#endif

#endif
