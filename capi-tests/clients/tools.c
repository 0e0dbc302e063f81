/* A program that uses the tools alone, without gasnet.h and without a job. */
#include <gasnet_tools.h>
#include <stdio.h>

int main(void) {
  gasnett_atomic_t counter = gasnett_atomic_init(41);
  gasnett_tick_t start = gasnett_ticks_now();
  gasnett_atomic_increment(&counter, GASNETT_ATOMIC_NONE);
  if (gasnett_ticks_now() < start || gasnett_atomic_read(&counter, 0) != 42) return 1;
  printf("PASS %s on %d CPUs\n", GASNETT_CONFIG_STRING, gasnett_cpu_count());
  return 0;
}
