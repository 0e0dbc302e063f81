/* Functions of Linux and POSIX threads that a lightweight kernel such as Catamount lacks. Rust's
 * standard library and the library's locks call them in a program of one thread. ci/build.sh
 * compiles this file for targets with HOSTED=no and links it into libgasnet.a, where its names are
 * local. So the archive needs none of them from outside. Each does what POSIX allows where there
 * is one thread, no other process, no mapping and no shared library.
 *
 * The headers of threads, mappings and shared objects may be missing there: this file declares
 * what it defines, with pointers to any type. */
#define _GNU_SOURCE 1
#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <sys/time.h>
#include <time.h>

/* No system call is known by a Linux number. Of those that std makes, all have a fallback; a wait
 * for another thread never happens. */
long syscall(long number, ...);
long syscall(long number, ...) {
    (void)number;
    errno = ENOSYS;
    return -1;
}

int sched_yield(void);
int sched_yield(void) { return 0; }

/* It is in librt before glibc 2.17, which such a kernel may not have. */
int clock_gettime(clockid_t clock, struct timespec *now) {
    struct timeval day;
    if ((clock != CLOCK_MONOTONIC && clock != CLOCK_REALTIME) || gettimeofday(&day, NULL) != 0) {
        errno = EINVAL;
        return -1;
    }
    now->tv_sec = day.tv_sec;
    now->tv_nsec = day.tv_usec * 1000;
    return 0;
}

/* std maps files of symbols for the backtrace of a panic, which then has addresses only. */
void *mmap64(void *at, size_t bytes, int protection, int flags, int fd, long offset);
void *mmap64(void *at, size_t bytes, int protection, int flags, int fd, long offset) {
    (void)at, (void)bytes, (void)protection, (void)flags, (void)fd, (void)offset;
    errno = ENOSYS;
    /* MAP_FAILED */
    return (void *)-1;
}

int munmap(void *at, size_t bytes);
int munmap(void *at, size_t bytes) {
    (void)at, (void)bytes;
    errno = EINVAL;
    return -1;
}

int dl_iterate_phdr(int (*found)(void *, size_t, void *), void *data);
int dl_iterate_phdr(int (*found)(void *, size_t, void *), void *data) {
    (void)found, (void)data;
    return 0;
}

/* No process forks. */
int pthread_atfork(void (*before)(void), void (*in_parent)(void), void (*in_child)(void));
int pthread_atfork(void (*before)(void), void (*in_parent)(void), void (*in_child)(void)) {
    (void)before, (void)in_parent, (void)in_child;
    return 0;
}

/* The only thread ends with its process: nothing is done for its variables. */
int __cxa_thread_atexit_impl(void (*function)(void *), void *object, void *dso);
int __cxa_thread_atexit_impl(void (*function)(void *), void *object, void *dso) {
    (void)function, (void)object, (void)dso;
    return 0;
}

/* No other thread cancels it. */
int pthread_setcancelstate(int state, int *old);
int pthread_setcancelstate(int state, int *old) {
    (void)state;
    /* PTHREAD_CANCEL_ENABLE */
    *old = 0;
    return 0;
}

int pthread_key_create(unsigned int *key, void (*at_end)(void *));
int pthread_key_create(unsigned int *key, void (*at_end)(void *)) {
    (void)key, (void)at_end;
    return EAGAIN;
}

int pthread_key_delete(unsigned int key);
int pthread_key_delete(unsigned int key) {
    (void)key;
    return 0;
}

int pthread_setspecific(unsigned int key, const void *value);
int pthread_setspecific(unsigned int key, const void *value) {
    (void)key, (void)value;
    return EINVAL;
}

int pthread_sigmask(int how, const sigset_t *set, sigset_t *old) { return sigprocmask(how, set, old) == 0 ? 0 : errno; }

/* No other thread holds a lock. */
#define NEVER_HELD(function) \
    int function(void *lock); \
    int function(void *lock) { \
        (void)lock; \
        return 0; \
    }
NEVER_HELD(pthread_mutex_destroy)
NEVER_HELD(pthread_mutex_lock)
NEVER_HELD(pthread_mutex_trylock)
NEVER_HELD(pthread_mutex_unlock)
NEVER_HELD(pthread_mutexattr_destroy)
NEVER_HELD(pthread_mutexattr_init)
NEVER_HELD(pthread_rwlock_destroy)
NEVER_HELD(pthread_rwlock_rdlock)
NEVER_HELD(pthread_rwlock_tryrdlock)
NEVER_HELD(pthread_rwlock_trywrlock)
NEVER_HELD(pthread_rwlock_unlock)
NEVER_HELD(pthread_rwlock_wrlock)

int pthread_mutex_init(void *lock, const void *kind);
int pthread_mutex_init(void *lock, const void *kind) {
    (void)lock, (void)kind;
    return 0;
}

int pthread_mutexattr_settype(void *kind, int type);
int pthread_mutexattr_settype(void *kind, int type) {
    (void)kind, (void)type;
    return 0;
}

int pthread_rwlock_init(void *lock, const void *kind);
int pthread_rwlock_init(void *lock, const void *kind) {
    (void)lock, (void)kind;
    return 0;
}

int pthread_mutex_timedlock(void *lock, const struct timespec *until);
int pthread_mutex_timedlock(void *lock, const struct timespec *until) {
    (void)lock, (void)until;
    return 0;
}

int pthread_rwlock_timedwrlock(void *lock, const struct timespec *until);
int pthread_rwlock_timedwrlock(void *lock, const struct timespec *until) {
    (void)lock, (void)until;
    return 0;
}
