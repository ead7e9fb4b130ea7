/* Preloaded into a process: counts its changes to files and messages to servers, kills it at one of them, and writes a record of all.

   faults_kill_after(n) lets n further changes happen; the next one ends the process with SIGKILL, a write after half of
   its bytes. If FAULTS_RECORD names a file, every change is appended to it: a kind, the inode, an offset or size, the
   lengths of two strings, then the strings. Reports on standard output are recorded as marks. Nothing is flushed:
   neither SIGKILL nor the replay of a record depends on it. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static long left = -1, count = 0;
static int record = -1;

#define REAL(name) ({ static __typeof__(&name) f; if (!f) f = (__typeof__(&name))dlsym(RTLD_NEXT, #name); f; })

void faults_kill_after(long changes) { left = changes; }
long faults_count(void) { return count; }

__attribute__((constructor)) static void begin(void) {
    const char *path = getenv("FAULTS_RECORD");
    if (path) record = REAL(open)(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
}

static void append(const void *data, size_t size) {
    for (const char *at = data; size;) {
        ssize_t written = REAL(write)(record, at, size);
        if (written <= 0) abort();
        at += written, size -= written;
    }
}

static void note(char kind, uint64_t inode, uint64_t number, const void *a, uint32_t na, const void *b, uint32_t nb) {
    if (record < 0) return;
    struct __attribute__((packed)) { char kind; uint64_t inode, number; uint32_t na, nb; } head = {kind, inode, number, na, nb};
    append(&head, sizeof head);
    append(a, na);
    append(b, nb);
}

static int next(void) { count++; return left >= 0 && left-- == 0; }
static void end(void) { raise(SIGKILL); }

static uint64_t inode_of(int fd) { /* 0 unless a file or a folder */
    struct stat s;
    return fstat(fd, &s) == 0 && (S_ISREG(s.st_mode) || S_ISDIR(s.st_mode)) ? s.st_ino : 0;
}

static uint64_t inode_at(const char *path) { struct stat s; return lstat(path, &s) == 0 ? s.st_ino : 0; }

static char *absolute(int folder, const char *path, char *out) {
    char link[64];
    ssize_t size = 0;
    if (path[0] != '/') {
        snprintf(link, sizeof link, folder == AT_FDCWD ? "/proc/self/cwd" : "/proc/self/fd/%d", folder);
        size = readlink(link, out, 4096);
        if (size < 0) size = 0;
        out[size++] = '/';
    }
    strcpy(out + size, path);
    return out;
}

static void note_path(char kind, int folder, const char *path) {
    char full[8400];
    absolute(folder, path, full);
    note(kind, inode_at(full), 0, full, strlen(full), 0, 0);
}

static ssize_t change(int fd, const void *data, size_t size, int64_t offset, int at_offset) {
    uint64_t inode = inode_of(fd);
    if (fd == 1 && record >= 0) note('M', 0, 0, data, size, 0, 0);
    if (!inode || fd <= 2) return at_offset ? REAL(pwrite)(fd, data, size, offset) : REAL(write)(fd, data, size);
    pthread_mutex_lock(&lock);
    int last = next();
    if (!at_offset) offset = lseek(fd, 0, SEEK_CUR);
    ssize_t written = REAL(pwrite)(fd, data, last ? size / 2 : size, offset);
    if (last) end();
    if (!at_offset && written > 0) lseek(fd, offset + written, SEEK_SET);
    if (written > 0) note('W', inode, offset, data, written, 0, 0);
    pthread_mutex_unlock(&lock);
    return written;
}

ssize_t write(int fd, const void *data, size_t size) { return change(fd, data, size, 0, 0); }
ssize_t pwrite(int fd, const void *data, size_t size, off_t offset) { return change(fd, data, size, offset, 1); }
ssize_t pwrite64(int fd, const void *data, size_t size, off64_t offset) { return change(fd, data, size, offset, 1); }

#define CHANGE(call, log) \
    pthread_mutex_lock(&lock); \
    if (next()) end(); \
    int result = call; \
    int problem = errno; \
    if (result >= 0) { log; } \
    pthread_mutex_unlock(&lock); \
    errno = problem; \
    return result

static int cut(int fd, int64_t size) { CHANGE(REAL(ftruncate)(fd, size), note('T', inode_of(fd), size, 0, 0, 0, 0)); }
int ftruncate(int fd, off_t size) { return cut(fd, size); }
int ftruncate64(int fd, off64_t size) { return cut(fd, size); }

static int flush(int fd) { CHANGE(0, note('S', inode_of(fd), 0, 0, 0, 0, 0)); }
int fsync(int fd) { return flush(fd); }
int fdatasync(int fd) { return flush(fd); }

static int open_path(int folder, const char *path, int flags, mode_t mode) {
    if (!(flags & (O_CREAT | O_TRUNC))) return REAL(openat)(folder, path, flags, mode);
    CHANGE(REAL(openat)(folder, path, flags, mode),
           { note_path('C', folder, path); if (flags & O_TRUNC) note('T', inode_of(result), 0, 0, 0, 0, 0); });
}
#define MODE mode_t mode = 0; if (flags & O_CREAT) { va_list more; va_start(more, flags); mode = va_arg(more, int); va_end(more); }
int open(const char *path, int flags, ...) { MODE return open_path(AT_FDCWD, path, flags, mode); }
int open64(const char *path, int flags, ...) { MODE return open_path(AT_FDCWD, path, flags, mode); }
int openat(int folder, const char *path, int flags, ...) { MODE return open_path(folder, path, flags, mode); }
int openat64(int folder, const char *path, int flags, ...) { MODE return open_path(folder, path, flags, mode); }

static int move(int from, const char *a, int to, const char *b) {
    char old[8400], new[8400];
    absolute(from, a, old), absolute(to, b, new);
    CHANGE(REAL(renameat)(from, a, to, b), note('R', 0, 0, old, strlen(old), new, strlen(new)));
}
int rename(const char *a, const char *b) { return move(AT_FDCWD, a, AT_FDCWD, b); }
int renameat(int from, const char *a, int to, const char *b) { return move(from, a, to, b); }

int unlinkat(int folder, const char *path, int flags) { CHANGE(REAL(unlinkat)(folder, path, flags), note_path('U', folder, path)); }
int unlink(const char *path) { return unlinkat(AT_FDCWD, path, 0); }
int rmdir(const char *path) { return unlinkat(AT_FDCWD, path, AT_REMOVEDIR); }

int mkdirat(int folder, const char *path, mode_t mode) { CHANGE(REAL(mkdirat)(folder, path, mode), note_path('D', folder, path)); }
int mkdir(const char *path, mode_t mode) { return mkdirat(AT_FDCWD, path, mode); }

/* A message to a server, of a push. */
ssize_t sendmsg(int fd, const struct msghdr *message, int flags) { CHANGE(REAL(sendmsg)(fd, message, flags), ); }

/* Python then copies with read and write. */
ssize_t sendfile(int out, int in, off_t *offset, size_t size) { (void)out, (void)in, (void)offset, (void)size; errno = ENOTSUP; return -1; }
ssize_t sendfile64(int out, int in, off64_t *offset, size_t size) { (void)out, (void)in, (void)offset, (void)size; errno = ENOTSUP; return -1; }
