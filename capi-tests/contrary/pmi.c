/* PMI as a library, for tests over ptlrun: its key-value space is a folder, PMI_DIR, with a file
 * for each key; PMI_Init makes it. PMI_FAULT names a function that fails. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

static int begun;

static int fails(const char *name) {
    const char *fault = getenv("PMI_FAULT");
    return fault != NULL && strcmp(fault, name) == 0;
}

static int count(const char *list) {
    int n = 1;
    for (; list != NULL && *list != '\0'; list++)
        n += *list == ':';
    return n;
}

int PMI_Initialized(int *done);
int PMI_Initialized(int *done) {
    *done = begun;
    return 0;
}

int PMI_Init(int *spawned);
int PMI_Init(int *spawned) {
    const char *dir = getenv("PMI_DIR");
    *spawned = 0;
    begun = !fails("PMI_Init") && (dir == NULL || mkdir(dir, 0700) == 0 || errno == EEXIST);
    return !begun;
}

int PMI_Get_rank(int *rank);
int PMI_Get_rank(int *rank) {
    const char *text = getenv("PTL_MY_RID");
    *rank = text != NULL ? atoi(text) : 0;
    return !begun;
}

int PMI_Get_size(int *size);
int PMI_Get_size(int *size) {
    *size = count(getenv("PTL_PIDMAP"));
    return !begun;
}

int PMI_Barrier(void);
int PMI_Barrier(void) {
    const char *text = getenv("PTL_BARRIER_FD");
    char byte = 0;
    if (!begun || fails("PMI_Barrier"))
        return 1;
    if (text == NULL)
        return 0;
    return send(atoi(text), &byte, 1, MSG_NOSIGNAL) != 1 || recv(atoi(text), &byte, 1, 0) != 1;
}

int PMI_Finalize(void);
int PMI_Finalize(void) {
    printf("PMI_Finalize\n");
    fflush(stdout);
    begun = 0;
    return 0;
}

int PMI_KVS_Get_my_name(char *name, int length);
int PMI_KVS_Get_my_name(char *name, int length) {
    const char *dir = getenv("PMI_DIR");
    return dir == NULL || snprintf(name, (size_t)length, "%s", dir) >= length;
}

int PMI_KVS_Put(const char *space, const char *key, const char *value);
int PMI_KVS_Put(const char *space, const char *key, const char *value) {
    char path[4096];
    FILE *file;
    if (fails("PMI_KVS_Put") || snprintf(path, sizeof path, "%s/%s", space, key) >= (int)sizeof path)
        return 1;
    file = fopen(path, "w");
    if (file == NULL)
        return 1;
    fputs(fails("address") ? "nowhere" : value, file);
    return fclose(file);
}

int PMI_KVS_Commit(const char *space);
int PMI_KVS_Commit(const char *space) {
    (void)space;
    return 0;
}

int PMI_KVS_Get(const char *space, const char *key, char *value, int length);
int PMI_KVS_Get(const char *space, const char *key, char *value, int length) {
    char path[4096];
    size_t n;
    FILE *file;
    if (snprintf(path, sizeof path, "%s/%s", space, key) >= (int)sizeof path)
        return 1;
    file = fopen(path, "r");
    if (file == NULL)
        return 1;
    n = fread(value, 1, (size_t)length - 1, file);
    value[n] = '\0';
    return fclose(file);
}
