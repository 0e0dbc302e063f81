/* Functions that Rust's standard library calls in a program, and that a target's glibc may be too old
 * for. ci/cross.sh compiles this file and links it into gasnetrun, gasnet_info and gasnet_trace.
 * The library itself does without: the lists cross/TARGET.symbols show it. */
#define _GNU_SOURCE 1
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#if !__GLIBC_PREREQ(2, 16)
unsigned long getauxval(unsigned long type);

/* The value of this type that the kernel gave to the process, or 0 and errno ENOENT. */
unsigned long getauxval(unsigned long type) {
    unsigned long entry[2], value = 0;
    int fd = open("/proc/self/auxv", O_RDONLY);
    int found = 0;
    if (fd >= 0) {
        while (!found && read(fd, entry, sizeof entry) == (ssize_t)sizeof entry) {
            found = entry[0] == type;
            if (found) value = entry[1];
        }
        close(fd);
    }
    if (!found) errno = ENOENT;
    return value;
}
#endif

#if !__GLIBC_PREREQ(2, 9)
int pipe2(int fds[2], int flags);

/* A pipe with O_CLOEXEC or O_NONBLOCK. Between its two calls another thread may fork and inherit it. */
int pipe2(int fds[2], int flags) {
    int i;
    if (pipe(fds) != 0) return -1;
    for (i = 0; i < 2; i++) {
        if (flags & O_CLOEXEC) fcntl(fds[i], F_SETFD, FD_CLOEXEC);
        if (flags & O_NONBLOCK) fcntl(fds[i], F_SETFL, fcntl(fds[i], F_GETFL) | O_NONBLOCK);
    }
    return 0;
}
#endif

#if !__GLIBC_PREREQ(2, 11)
int execvpe(const char *file, char *const argv[], char *const envp[]);

/* Runs a program with an environment. A name without / is looked up in PATH. */
int execvpe(const char *file, char *const argv[], char *const envp[]) {
    const char *folder = getenv("PATH"), *end;
    char path[PATH_MAX];
    int denied = 0;
    if (strchr(file, '/')) return execve(file, argv, envp);
    if (!folder) folder = "/bin:/usr/bin";
    for (;; folder = end + 1) {
        int n;
        end = strchr(folder, ':');
        if (!end) end = folder + strlen(folder);
        n = snprintf(path, sizeof path, "%.*s%s%s", (int)(end - folder), folder, end > folder ? "/" : "", file);
        if (n > 0 && (size_t)n < sizeof path) execve(path, argv, envp);
        if (errno == EACCES) denied = 1;
        if (!*end) break;
    }
    errno = denied ? EACCES : ENOENT;
    return -1;
}
#endif
