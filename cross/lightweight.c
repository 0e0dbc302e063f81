/* Functions of Linux and POSIX threads that a lightweight kernel such as Catamount lacks. Rust's
 * standard library and the library's locks call them in a program of one thread. ci/build.sh
 * compiles this file for targets with HOSTED=no and links it into libgasnet.a, where its names are
 * local. So the archive needs none of them from outside. Each does what POSIX allows where there
 * is one thread, no other process, no mapping and no shared library. */
#define _GNU_SOURCE 1
#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <sys/mman.h>
#include <unistd.h>

int __cxa_thread_atexit_impl(void (*function)(void *), void *object, void *dso);

/* No system call is known by a Linux number. Of those that std makes, all have a fallback; a wait
 * for another thread never happens. */
long syscall(long number, ...) {
    (void)number;
    errno = ENOSYS;
    return -1;
}

int sched_yield(void) { return 0; }

/* std maps files of symbols for the backtrace of a panic, which then has addresses only. */
void *mmap64(void *at, size_t bytes, int protection, int flags, int fd, off64_t offset) {
    (void)at, (void)bytes, (void)protection, (void)flags, (void)fd, (void)offset;
    errno = ENOSYS;
    return MAP_FAILED;
}

int munmap(void *at, size_t bytes) {
    (void)at, (void)bytes;
    errno = EINVAL;
    return -1;
}

int dl_iterate_phdr(int (*found)(struct dl_phdr_info *, size_t, void *), void *data) {
    (void)found, (void)data;
    return 0;
}

/* No process forks. */
int pthread_atfork(void (*before)(void), void (*in_parent)(void), void (*in_child)(void)) {
    (void)before, (void)in_parent, (void)in_child;
    return 0;
}

/* The only thread ends with its process: nothing is done for its variables. */
int __cxa_thread_atexit_impl(void (*function)(void *), void *object, void *dso) {
    (void)function, (void)object, (void)dso;
    return 0;
}

/* No other thread cancels it. */
int pthread_setcancelstate(int state, int *old) {
    (void)state;
    *old = PTHREAD_CANCEL_ENABLE;
    return 0;
}

int pthread_key_create(pthread_key_t *key, void (*at_end)(void *)) {
    (void)key, (void)at_end;
    return EAGAIN;
}

int pthread_key_delete(pthread_key_t key) {
    (void)key;
    return 0;
}

int pthread_setspecific(pthread_key_t key, const void *value) {
    (void)key, (void)value;
    return EINVAL;
}

int pthread_sigmask(int how, const sigset_t *set, sigset_t *old) { return sigprocmask(how, set, old) == 0 ? 0 : errno; }

/* No other thread holds a lock. */
#define NEVER_HELD(function, type) \
    int function(type *lock) { \
        (void)lock; \
        return 0; \
    }
NEVER_HELD(pthread_mutex_destroy, pthread_mutex_t)
NEVER_HELD(pthread_mutex_lock, pthread_mutex_t)
NEVER_HELD(pthread_mutex_trylock, pthread_mutex_t)
NEVER_HELD(pthread_mutex_unlock, pthread_mutex_t)
NEVER_HELD(pthread_mutexattr_destroy, pthread_mutexattr_t)
NEVER_HELD(pthread_mutexattr_init, pthread_mutexattr_t)
NEVER_HELD(pthread_rwlock_destroy, pthread_rwlock_t)
NEVER_HELD(pthread_rwlock_rdlock, pthread_rwlock_t)
NEVER_HELD(pthread_rwlock_tryrdlock, pthread_rwlock_t)
NEVER_HELD(pthread_rwlock_trywrlock, pthread_rwlock_t)
NEVER_HELD(pthread_rwlock_unlock, pthread_rwlock_t)
NEVER_HELD(pthread_rwlock_wrlock, pthread_rwlock_t)

int pthread_mutex_init(pthread_mutex_t *lock, const pthread_mutexattr_t *kind) {
    (void)lock, (void)kind;
    return 0;
}

int pthread_mutexattr_settype(pthread_mutexattr_t *kind, int type) {
    (void)kind, (void)type;
    return 0;
}

int pthread_rwlock_init(pthread_rwlock_t *lock, const pthread_rwlockattr_t *kind) {
    (void)lock, (void)kind;
    return 0;
}

int pthread_mutex_timedlock(pthread_mutex_t *lock, const struct timespec *until) {
    (void)lock, (void)until;
    return 0;
}

int pthread_rwlock_timedwrlock(pthread_rwlock_t *lock, const struct timespec *until) {
    (void)lock, (void)until;
    return 0;
}
