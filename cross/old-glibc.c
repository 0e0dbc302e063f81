/* Functions that Rust's standard library calls in a program, and that the glibc of a target may
 * lack. ci/cross.sh compiles this file and links it into gasnetrun, gasnet_info and gasnet_trace.
 * The library itself does without: the lists cross/TARGET.symbols show it. */
#define _GNU_SOURCE 1
#include <errno.h>
#include <fcntl.h>
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

/* A pipe with O_CLOEXEC or O_NONBLOCK. A thread that forks between the calls passes it on. */
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
