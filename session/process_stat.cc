#include "session/process_stat.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

namespace gmt::session {

bool ReadSmallFile(const char* path, char* text, size_t size) {
  text[0] = '\0';
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  const ssize_t n = read(fd, text, size - 1);
  close(fd);
  text[n > 0 ? n : 0] = '\0';
  return n > 0;
}

// The name, field 2, is in parentheses and may contain blanks and parentheses.
ProcessStat::ProcessStat(const char* folder) : after_name_(nullptr) {
  char path[96];
  snprintf(path, sizeof(path), "%s/stat", folder);
  if (!ReadSmallFile(path, text_, sizeof(text_))) return;
  const char* name_end = strrchr(text_, ')');
  if (name_end != nullptr && name_end[1] == ' ') after_name_ = name_end + 2;
}

uint64_t ProcessStat::Field(int number) const {
  const char* p = after_name_;
  for (int field = 3; p != nullptr && field < number; ++field) {
    p = strchr(p, ' ');
    if (p != nullptr) ++p;
  }
  return p == nullptr ? 0 : strtoull(p, nullptr, 10);
}

}  // namespace gmt::session
