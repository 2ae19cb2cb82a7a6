/* Preloaded by `vlm run`: shared memory of one huge page and more comes from a section.
 *
 * Each object is a file of the section's mount, so that the kernel accounts for it and takes its memory back
 * when its last mapping is gone, however the processes ended:
 *
 *   anonymous    a file without a name
 *   System V     sysv-ID; the real segment is attached beside it, untouched, for its lifetime and its counts
 *   POSIX        posix-DEVICE-INODE, by the file in /dev/shm
 *
 * `vlm run` holds the section for all processes that inherit its descriptor, and the next user removes what
 * was left. Files change under the lock of the mount's folder, as in section.rs.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PUBLIC __attribute__((visibility("default")))

/* Page tables are shared by what one page of the upper table maps. */
#define SHARING_UNIT ((size_t)1 << 30)
#define SHARED_MEMORY "/dev/shm/"

/* fault.c */
void vlm_explain_faults(const char *mount, const char *name);

static const char *mount_point, *section;
static size_t page_size;
static bool shares_tables, allocates;

/* A mapping of this process on the section. */
struct mapping {
    char *start;
    size_t length, region_length;
    void *segment; /* the real System V segment beside it */
    int id;
};

#define MAPPINGS 1024
static struct mapping mappings[MAPPINGS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void before_fork(void) { pthread_mutex_lock(&lock); }
static void after_fork(void) { pthread_mutex_unlock(&lock); }

__attribute__((constructor)) static void begin(void)
{
    const char *size = getenv("VLM_PAGE_SIZE"), *tables = getenv("VLM_SHARED_TABLES"), *alloc = getenv("VLM_ALLOCATE");
    mount_point = getenv("VLM_MOUNT");
    section = getenv("VLM_SECTION");
    if (mount_point == NULL || section == NULL || size == NULL)
        return;
    /* The program may change its environment. */
    mount_point = strdup(mount_point);
    section = strdup(section);
    shares_tables = tables != NULL && *tables == '1';
    allocates = alloc != NULL && *alloc == '1';
    pthread_atfork(before_fork, after_fork, after_fork);
    page_size = strtoull(size, NULL, 10);
    vlm_explain_faults(mount_point, section);
}

static void *real_mmap(void *address, size_t length, int access, int flags, int file, off_t offset)
{
    return (void *)syscall(SYS_mmap, address, length, access, flags, file, offset);
}

static int real_munmap(void *address, size_t length)
{
    return (int)syscall(SYS_munmap, address, length);
}

static bool is_large(size_t length)
{
    return page_size != 0 && length >= page_size;
}

static size_t round_up(size_t length, size_t unit)
{
    return (length + unit - 1) / unit * unit;
}

static bool segment_exists(int id)
{
    struct shmid_ds status;
    return syscall(SYS_shmctl, id, IPC_STAT, &status) == 0;
}

static bool shared_file_exists(uintmax_t inode)
{
    DIR *folder = opendir(SHARED_MEMORY);
    bool found = folder == NULL;
    for (struct dirent *entry; !found && (entry = readdir(folder)) != NULL;)
        found = entry->d_ino == inode;
    if (folder != NULL)
        closedir(folder);
    return found;
}

/* Removes objects whose System V segment or POSIX name is gone. */
static void remove_unused(void)
{
    DIR *folder = opendir(mount_point);
    if (folder == NULL)
        return;
    for (struct dirent *entry; (entry = readdir(folder)) != NULL;) {
        int id;
        uintmax_t device, inode;
        if ((sscanf(entry->d_name, "sysv-%d", &id) == 1 && !segment_exists(id)) ||
            (sscanf(entry->d_name, "posix-%ju-%ju", &device, &inode) == 2 && !shared_file_exists(inode)))
            unlinkat(dirfd(folder), entry->d_name, 0);
    }
    closedir(folder);
}

static int lock_folder(void)
{
    int folder = open(mount_point, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    while (folder >= 0 && flock(folder, LOCK_EX) != 0 && errno == EINTR)
        ;
    return folder;
}

static void refuse(size_t length)
{
    struct statfs status;
    unsigned long long free = statfs(mount_point, &status) == 0 ? (unsigned long long)status.f_bfree * page_size : 0;
    dprintf(STDERR_FILENO,
            "vlm: section %s has %llu MiB left, and the program asks for %llu MiB of shared memory: make the section larger "
            "(vlm modify %s --size) or the program's memory smaller\n",
            section, free >> 20, (unsigned long long)length >> 20, section);
    errno = ENOMEM;
}

/* A file without a name: of the pages that were prepared, if there are any. */
static int open_anonymous(void)
{
    int folder = open(mount_point, O_PATH | O_DIRECTORY | O_CLOEXEC);
    int file = openat(folder, "prepared", O_RDWR | O_CLOEXEC);
    if (file >= 0)
        unlinkat(folder, "prepared", 0);
    else
        file = open(mount_point, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    close(folder);
    return file;
}

static int open_named(const char *name)
{
    int folder = open(mount_point, O_PATH | O_DIRECTORY | O_CLOEXEC);
    int file = openat(folder, name, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    close(folder);
    return file;
}

/* Reserves addresses that begin and end at multiples of 1 GiB, so that nothing private lands between. */
static char *reserve(size_t length)
{
    char *base = real_mmap(NULL, length + SHARING_UNIT, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED)
        return NULL;
    size_t before = round_up((uintptr_t)base, SHARING_UNIT) - (uintptr_t)base;
    if (before > 0)
        real_munmap(base, before);
    if (before < SHARING_UNIT)
        real_munmap(base + before + length, SHARING_UNIT - before);
    return base + before;
}

static struct mapping *find(const void *start)
{
    for (size_t index = 0; index < MAPPINGS; index++)
        if (mappings[index].start == start)
            return &mappings[index];
    return NULL;
}

/* Gives a file of the section the size, with its pages where the section is ALLOC. */
static bool resize(int file, size_t length)
{
    if (ftruncate(file, (off_t)length) != 0)
        return false;
    if (!allocates)
        return true;
    int outcome;
    do
        outcome = fallocate(file, 0, 0, (off_t)length);
    while (outcome != 0 && errno == EINTR);
    return outcome == 0;
}

/* Maps a file of the section; `lock` is held. */
static struct mapping *map_file(int file, size_t length, int access)
{
    struct mapping *mapping = find(NULL);
    if (mapping == NULL) {
        errno = ENOMEM;
        return NULL;
    }
    size_t region_length = round_up(length, SHARING_UNIT);
    char *region = reserve(region_length);
    if (region == NULL)
        return NULL;
    /* The kernel shares tables if a mapping covers a whole unit. Pages of 1 GiB have none to share. */
    bool shares = (shares_tables && (access & PROT_WRITE)) || page_size >= SHARING_UNIT;
    size_t piece = shares ? length : SHARING_UNIT / 2;
    for (size_t offset = 0; offset < length; offset += piece) {
        size_t size = length - offset < piece ? length - offset : piece;
        if (real_mmap(region + offset, size, access, MAP_SHARED | MAP_FIXED, file, (off_t)offset) == MAP_FAILED) {
            int error = errno;
            real_munmap(region, region_length);
            errno = error;
            return NULL;
        }
    }
    *mapping = (struct mapping){.start = region, .length = length, .region_length = region_length, .id = -1};
    return mapping;
}

/* Opens an object, gives it its size and maps it. `name` is NULL for memory without a name. */
static struct mapping *map_object(const char *name, size_t requested, int access, int contents)
{
    size_t length = round_up(requested, page_size);
    struct mapping *mapping = NULL;
    int folder = lock_folder();
    if (folder < 0) {
        refuse(requested);
        return NULL;
    }
    for (int attempt = 0; mapping == NULL && attempt < 2; attempt++) {
        int file = name != NULL ? open_named(name) : open_anonymous();
        struct stat status;
        bool is_new = file >= 0 && fstat(file, &status) == 0 && (name == NULL || status.st_size == 0);
        if (file >= 0 && (is_new ? resize(file, length) : (size_t)status.st_size >= length))
            mapping = map_file(file, length, access);
        /* What was written before the first mapping. */
        if (mapping != NULL && is_new && contents >= 0) {
            char *writable = real_mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
            if (writable != MAP_FAILED) {
                for (size_t at = 0; at < requested;) {
                    ssize_t got = pread(contents, writable + at, requested - at, (off_t)at);
                    if (got <= 0)
                        break;
                    at += (size_t)got;
                }
                real_munmap(writable, length);
                fallocate(contents, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, (off_t)requested);
            }
        }
        if (mapping == NULL && is_new && name != NULL) {
            int parent = open(mount_point, O_PATH | O_DIRECTORY | O_CLOEXEC);
            unlinkat(parent, name, 0);
            close(parent);
        }
        if (file >= 0)
            close(file);
        if (mapping == NULL && attempt == 0)
            remove_unused();
    }
    if (mapping == NULL)
        refuse(requested);
    close(folder);
    return mapping;
}

/* The name of the object for a POSIX shared memory file that is mapped from its beginning. */
static bool name_shared_file(int file, off_t offset, size_t *length, char name[64])
{
    char link[64], path[256];
    struct stat status;
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t size = readlink(link, path, sizeof path);
    if (size < (ssize_t)strlen(SHARED_MEMORY) || strncmp(path, SHARED_MEMORY, strlen(SHARED_MEMORY)) != 0)
        return false;
    if (offset != 0 || fstat(file, &status) != 0 || !is_large((size_t)status.st_size) || *length > (size_t)status.st_size)
        return false;
    *length = (size_t)status.st_size;
    snprintf(name, 64, "posix-%ju-%ju", (uintmax_t)status.st_dev, (uintmax_t)status.st_ino);
    return true;
}

PUBLIC void *mmap(void *address, size_t length, int access, int flags, int file, off_t offset)
{
    int type = flags & MAP_TYPE;
    char name[64];
    bool is_anonymous = (flags & MAP_ANONYMOUS) != 0;
    size_t size = length;
    if (!is_large(length) || type == MAP_PRIVATE || (flags & (MAP_FIXED | MAP_FIXED_NOREPLACE)) ||
        (!is_anonymous && !name_shared_file(file, offset, &size, name)))
        return real_mmap(address, length, access, flags, file, offset);
    pthread_mutex_lock(&lock);
    struct mapping *mapping = map_object(is_anonymous ? NULL : name, size, access, is_anonymous ? -1 : file);
    void *start = mapping != NULL ? mapping->start : MAP_FAILED;
    pthread_mutex_unlock(&lock);
    return start;
}

PUBLIC void *mmap64(void *address, size_t length, int access, int flags, int file, off_t offset)
    __attribute__((alias("mmap")));

PUBLIC int munmap(void *address, size_t length)
{
    if (page_size == 0 || address == NULL)
        return real_munmap(address, length);
    pthread_mutex_lock(&lock);
    struct mapping *mapping = find(address);
    int outcome;
    if (mapping != NULL && mapping->segment == NULL && round_up(length, page_size) >= mapping->length) {
        outcome = real_munmap(mapping->start, mapping->region_length);
        *mapping = (struct mapping){0};
    } else {
        outcome = real_munmap(address, length);
    }
    pthread_mutex_unlock(&lock);
    return outcome;
}

PUBLIC int shmget(key_t key, size_t size, int flags)
{
    /* The section's pages stand behind the segment instead of the pool's. */
    if (is_large(size))
        flags &= ~(SHM_HUGETLB | (0x3f << 26));
    return (int)syscall(SYS_shmget, key, size, flags);
}

static void remove_segment_file(int id)
{
    char name[64];
    snprintf(name, sizeof name, "sysv-%d", id);
    int folder = open(mount_point, O_PATH | O_DIRECTORY | O_CLOEXEC);
    unlinkat(folder, name, 0);
    close(folder);
}

PUBLIC void *shmat(int id, const void *address, int flags)
{
    struct shmid_ds status;
    void *segment = (void *)syscall(SYS_shmat, id, address, flags);
    if (segment == (void *)-1 || page_size == 0 || address != NULL || syscall(SYS_shmctl, id, IPC_STAT, &status) != 0 ||
        !is_large(status.shm_segsz))
        return segment;
    char name[64];
    snprintf(name, sizeof name, "sysv-%d", id);
    pthread_mutex_lock(&lock);
    struct mapping *mapping = map_object(name, status.shm_segsz, flags & SHM_RDONLY ? PROT_READ : PROT_READ | PROT_WRITE, -1);
    void *start = (void *)-1;
    if (mapping != NULL) {
        mapping->segment = segment;
        mapping->id = id;
        start = mapping->start;
    }
    pthread_mutex_unlock(&lock);
    if (mapping == NULL) {
        syscall(SYS_shmdt, segment);
        errno = ENOMEM;
    }
    return start;
}

PUBLIC int shmdt(const void *address)
{
    pthread_mutex_lock(&lock);
    struct mapping *mapping = page_size != 0 && address != NULL ? find(address) : NULL;
    int id = -1;
    if (mapping != NULL && mapping->segment != NULL) {
        id = mapping->id;
        address = mapping->segment;
        real_munmap(mapping->start, mapping->region_length);
        *mapping = (struct mapping){0};
    }
    int outcome = (int)syscall(SYS_shmdt, address);
    if (id >= 0 && !segment_exists(id))
        remove_segment_file(id);
    pthread_mutex_unlock(&lock);
    return outcome;
}

PUBLIC int shmctl(int id, int command, struct shmid_ds *status)
{
    int outcome = (int)syscall(SYS_shmctl, id, command, status);
    if (outcome == 0 && command == IPC_RMID && page_size != 0 && !segment_exists(id))
        remove_segment_file(id);
    return outcome;
}

PUBLIC int shm_unlink(const char *name)
{
    int (*next)(const char *) = (int (*)(const char *))dlsym(RTLD_NEXT, "shm_unlink");
    char path[512], object[64];
    struct stat status;
    bool is_known = page_size != 0 && snprintf(path, sizeof path, "%s%s", SHARED_MEMORY, name + (*name == '/')) > 0 &&
                    stat(path, &status) == 0;
    int outcome = next != NULL ? next(name) : (errno = ENOSYS, -1);
    if (outcome == 0 && is_known) {
        snprintf(object, sizeof object, "posix-%ju-%ju", (uintmax_t)status.st_dev, (uintmax_t)status.st_ino);
        int folder = open(mount_point, O_PATH | O_DIRECTORY | O_CLOEXEC);
        unlinkat(folder, object, 0);
        close(folder);
    }
    return outcome;
}
