// session/session_file.h
//
// Creating a session (the traced process) and opening one (its collector).
//
// A session is created whole before it gets its name, in the first directory that works:
//   $GPUMEMTRACE_DIR · $XDG_RUNTIME_DIR/gpumemtrace · /dev/shm/gpumemtrace-UID · a memfd, which has
//   no name
// The directory must be the user's own; the two defaults must be in memory (tmpfs): a file on a
// disk would stall writers on write-back. Space is reserved when it is created (posix_fallocate),
// because a tmpfs that fills up later would end the traced process with SIGBUS; where there is too
// little, the session is made smaller, down to an eighth.
//
// A session with a door (session/attach.h) is made with memory behind its first three sections alone.
// It must have a name, for it is found by that.
//
// Arena and live table may grow (session/arena.h, session/live_table.h), and only in a directory with
// room to spare: what is left of a small one is the traced program's.
//
// Thread safety: free functions; each may be called from any thread. None allocates from the heap.

#ifndef GMT_SESSION_SESSION_FILE_H_
#define GMT_SESSION_SESSION_FILE_H_

#include <limits.h>
#include <stddef.h>
#include <stdint.h>

#include <string_view>

#include "session/session_map.h"
#include "session/slice.h"

namespace gmt::session {

// Entries per section. Powers of two, but for info, arena, modules and in-flight.
struct SessionSizes {
  uint64_t info_bytes = 64 << 10;
  uint64_t ring = 262144;  // 16 MiB
  uint64_t live = 65536;   // 4.5 MiB
  // Further levels of the live table, each four times the one before: 18, 72 and 288 MiB. No memory
  // until then.
  uint64_t live_levels = kLiveLevels;
  uint64_t stack_index = 262144;  // 2 MiB
  uint64_t text_index = 32768;    // 256 KiB
  uint64_t code_index = 65536;    // 512 KiB
  uint64_t arena = 15 << 16;      // words; 7.5 MiB
  // Words by which the arena may grow; no memory until then.
  uint64_t arena_growth = 4 << 20;  // 32 MiB
  uint64_t modules = 1024;          // 1 MiB
  uint64_t in_flight = 256;
  uint64_t contexts = 256;
};

// Composes the info section: "name\0value\0" pairs. What does not fit is left out whole.
class InfoWriter {
 public:
  InfoWriter(char* buffer, size_t size) : buffer_(buffer), size_(size) {}
  void Add(std::string_view name, std::string_view value);
  std::string_view text() const { return {buffer_, used_}; }

 private:
  char* buffer_;
  size_t size_;
  size_t used_ = 0;
};

// Calls visit(name, value) for each pair of an info section; stops at the first pair that is not
// whole.
template <typename Visit>
void ForEachInfo(std::string_view text, Visit visit) {
  while (!text.empty() && text.front() != '\0') {
    const std::string_view name = Cut(&text, '\0');
    const size_t value_end = text.find('\0');
    if (value_end == std::string_view::npos) return;
    visit(name, Cut(&text, '\0'));
  }
}

struct CreatedSession {
  SessionMap map;
  void* base = nullptr;
  size_t size = 0;
  uint64_t arena_words = 0;        // that the arena begins with
  int fd = -1;                     // open, close-on-exec; the caller closes it
  char path[PATH_MAX + 100] = {};  // empty for a memfd
};

// 0, or the errno of the last directory tried, with nothing left behind.
int CreateSession(const SessionSizes& sizes, std::string_view info, CreatedSession* session,
                  AttachDoor door = AttachDoor::kNone);

// Finds the directories that sessions live in, in order; writes the n-th (from 0) into `path`.
// False past the last.
bool SessionDirectory(int n, char (&path)[PATH_MAX]);

// The name of the session behind `fd`: the kernel forgets it where a file got its name only later.
// False for a memfd, and where the name is gone.
bool FindSessionName(int fd, const Header& header, char (&path)[PATH_MAX + 100]);

struct OpenedSession {
  SessionMap map;  // data read-only, the control page writable
  void* base = nullptr;
  void* control = nullptr;
  size_t size = 0;
  const char* error = nullptr;  // what is wrong with it, where map is empty
};

// Maps the session behind `fd`, which stays open and the caller's. The mapping lives until
// CloseSession().
OpenedSession OpenSession(int fd);
void CloseSession(OpenedSession* session);

// What is wrong with a header that claims to describe a session file of this size; nullptr if
// nothing.
const char* CheckHeader(const Header& header, uint64_t file_size);

// Identity of a process: field 22 of /proc/PID/stat, as that process sees it, whose clocks may stand
// elsewhere than ours (time_namespaces(7)); 0 where it cannot be read.
uint64_t StartTicks(uint64_t pid);
// The kernel's boot id; false where it cannot be read.
bool ReadBootId(uint8_t (&boot_id)[16]);
// Whether the session was created since the machine last started.
bool IsThisBoot(const Header& header);

}  // namespace gmt::session

#endif  // GMT_SESSION_SESSION_FILE_H_
