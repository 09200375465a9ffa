#include "preload/message.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

namespace gmt::preload {

void Say(const char* text, ...) {
  constexpr char kPrefix[] = "gpumemtrace: ";
  char line[8192];
  memcpy(line, kPrefix, sizeof(kPrefix));
  size_t used = sizeof(kPrefix) - 1;
  va_list arguments;
  va_start(arguments, text);
  const int n = vsnprintf(line + used, sizeof(line) - used - 1, text, arguments);
  va_end(arguments);
  if (n > 0)
    used += static_cast<size_t>(n) < sizeof(line) - used - 1 ? static_cast<size_t>(n)
                                                             : sizeof(line) - used - 2;
  line[used++] = '\n';
  (void)!write(STDERR_FILENO, line, used);
}

}  // namespace gmt::preload
