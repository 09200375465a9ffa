// session/process_stat.h
//
// ProcessStat: what /proc/PID/stat says of a process or thread. libc only, and no allocation, so
// that the preloaded library can use it anywhere.
//
// Example
//   ProcessStat stat("/proc/4711");  // or "/proc/self", "/proc/4711/task/4712"
//   if (stat.HasEnded()) ...
//   uint64_t start = stat.Field(22);
//
// Thread safety: independent objects.

#ifndef GMT_SESSION_PROCESS_STAT_H_
#define GMT_SESSION_PROCESS_STAT_H_

#include <cstddef>
#include <cstdint>

namespace gmt::session {

// Reads a file of at most `size` - 1 bytes, such as one of /proc, and terminates it with a zero.
// Returns false, with an empty text, if nothing can be read.
bool ReadSmallFile(const char* path, char* text, size_t size);

class ProcessStat {
 public:
  // Reads the file now.
  explicit ProcessStat(const char* folder);
  ProcessStat(const ProcessStat&) = delete;
  ProcessStat& operator=(const ProcessStat&) = delete;

  bool is_readable() const { return after_name_ != nullptr; }
  // A letter of proc(5), such as 'R', 'S' or 'Z'; 0 if the file cannot be read.
  char state() const { return is_readable() ? *after_name_ : '\0'; }
  // Whether it has ended, even if its parent has not yet asked for its status. Also true if the
  // file cannot be read, because then there is no such process.
  bool HasEnded() const { return state() == '\0' || state() == 'Z' || state() == 'X'; }
  // Returns a numeric field, numbered as in proc(5), from 4; 0 if there is none.
  uint64_t Field(int number) const;

 private:
  char text_[1024];
  const char* after_name_;  // field 3; null if the file cannot be read
};

}  // namespace gmt::session

#endif  // GMT_SESSION_PROCESS_STAT_H_
