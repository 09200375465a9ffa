/* A substitute for the preloaded library: logs its calls to the file that $REPORTED_CALLS names, one
   per line, so that a test can check them. */

#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static atomic_uint_fast64_t ranges;

static void Report(const char* format, ...) {
  char line[1024];
  va_list arguments;
  va_start(arguments, format);
  int n = vsnprintf(line, sizeof line, format, arguments);
  va_end(arguments);
  const char* path = getenv("REPORTED_CALLS");
  int fd = path == NULL ? -1 : open(path, O_WRONLY | O_CREAT | O_APPEND, 0600);
  if (fd < 0 || write(fd, line, (size_t)n) != n) abort();
  close(fd);
}

void gpumemtrace_mark(const char* name, uint64_t index) { Report("mark %s %" PRIu64 "\n", name, index); }

uint64_t gpumemtrace_range_begin(const char* name) {
  /* Needs more than 32 bits, as the real library's may. */
  const uint64_t range = (UINT64_C(1) << 40) + ++ranges;
  Report("begin %s %" PRIu64 "\n", name, range);
  return range;
}

void gpumemtrace_range_end(uint64_t range) { Report("end %" PRIu64 "\n", range); }

int gpumemtrace_snapshot(const char* name) {
  Report("snapshot %s\n", name);
  return 1;
}

int gpumemtrace_recording(void) { return 1; }

/* Returns the number and the text in $REPORTED_START. */
int gpumemtrace_start(char* text, size_t capacity) {
  const char* answer = getenv("REPORTED_START");
  int result = 1, read = 0;
  if (answer != NULL) sscanf(answer, "%d %n", &result, &read);
  snprintf(text, capacity, "%s", answer == NULL ? "begun" : answer + read);
  Report("start %zu\n", capacity);
  return result;
}
