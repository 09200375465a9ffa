/* A library as the injector brings it into processes: it says who called it, and can be told to take
 * its time or to refuse. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <errno.h>

int probe_attach(const char* options, char* text, size_t capacity) {
  static int calls;
  errno = EXDEV; /* the thread must not find this */
  if (strncmp(options, "sleep=", 6) == 0) {
    struct timespec wanted = {atoi(options + 6), 0};
    while (nanosleep(&wanted, &wanted) != 0) {
    }
  }
  volatile double spoil = 0;
  for (int i = 1; i < 1000; ++i) spoil += 1.0 / i;
  char* heap = malloc(100);
  if (heap == NULL) return -1;
  snprintf(heap, 100, "call %d, options '%.40s', pid %d", ++calls, options, (int)getpid());
  snprintf(text, capacity, "%s", heap);
  free(heap);
  return strcmp(options, "refuse") == 0 ? -1 : calls == 1;
}
