/* A library for the injector to load into processes. It reports its call, and can be made to wait
 * or to refuse. */

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <errno.h>

int probe_attach(const char* options, char* text, size_t capacity) {
  static int calls;
  errno = EXDEV; /* the interrupted thread must not see this */
  if (strncmp(options, "wait=", 5) == 0) { /* until that FIFO has no writers */
    const int fifo = open(options + 5, O_RDONLY);
    char byte;
    while (fifo < 0 || read(fifo, &byte, 1) != 0) {
    }
    close(fifo);
    errno = EXDEV;
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
