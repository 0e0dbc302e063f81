/* testenv: arguments, with blanks, and the environment reach every rank, between init and
 * attach and after. */
/* faults: lose_env */
/* args: GASNet is "Global Address Space Networking" */
/* env: GASNET_DUMMY="GASNet dummy value" */
/* nodes: any */
/* threads: both */
#include "check.h"

static void same(const char *what, const char *got, const char *want) {
    CHECK(got && !strcmp(got, want), "%s is \"%s\" instead of \"%s\"", what, got ? got : "(null)", want);
}

static void environment(const char *when) {
    char what[80];
    snprintf(what, sizeof what, "GASNET_DUMMY %s", when);
    same(what, gasnet_getenv("GASNET_DUMMY"), "GASNet dummy value");
    CHECK(gasnet_getenv("GASNET_DUMMY_NOT_SET") == NULL, "a variable that is not set has a value %s", when);
    CHECK(gasnet_getenv("GASNET_DUMM") == NULL, "the beginning of a name is taken for the name %s", when);
    CHECK(gasnet_getenv("PATH") != NULL, "PATH is lost %s", when);
}

int main(int argc, char **argv) {
    check_init("testenv", &argc, &argv);
    environment("before attach");
    check_attach(NULL, 0, 0);
    environment("after attach");
    CHECK(argc == 4, "argc is %d instead of 4", argc);
    if (argc == 4) {
        same("argv[1]", argv[1], "GASNet");
        same("argv[2]", argv[2], "is");
        same("argv[3]", argv[3], "Global Address Space Networking");
    }
    CHECK(argv[argc] == NULL, "argv does not end with NULL");
    check_done();
}
