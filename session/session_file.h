// session/session_file.h
//
// Creating a session (the traced process) and opening one (its collector).
//
// A session is created completely before it gets its name, in the first directory that works:
//   $GPUMEMTRACE_DIR · $XDG_RUNTIME_DIR/gpumemtrace · /dev/shm/gpumemtrace-UID · a memfd, which has
//   no name
// The directory must belong to the user. The two defaults must be on a tmpfs, because writes to a
// file on disk can stall on write-back. Space is reserved at creation (posix_fallocate), because a
// tmpfs that fills up later would end the traced process with SIGBUS. If there is too little space,
// the session is made smaller, down to an eighth.
//
// A session with an attach gate (session/attach.h) is created with memory for its first three
// sections only. It must have a name, because clients find it by name.
//
// Arena and live table may grow (session/arena.h, session/live_table.h), but only in a directory
// with room to spare: the rest of a small one is left to the traced program.
//
// Thread safety: free functions, each callable from any thread. None allocates from the heap.

#ifndef GMT_SESSION_SESSION_FILE_H_
#define GMT_SESSION_SESSION_FILE_H_

#include <limits.h>
#include <stddef.h>
#include <stdint.h>

#include <string_view>

#include "session/session_map.h"
#include "session/slice.h"

namespace gmt::session {

// Entries per section. Powers of two, except for info, arena, modules and in-flight.
struct SessionSizes {
  uint64_t info_bytes = 64 << 10;
  uint64_t ring = 262144;  // 16 MiB
  uint64_t live = 65536;   // 4.5 MiB
  // Further levels of the live table, each four times the size of the previous one: 18, 72 and 288
  // MiB. Their memory is allocated on demand.
  uint64_t live_levels = kLiveLevels;
  uint64_t stack_index = 262144;  // 2 MiB
  uint64_t text_index = 32768;    // 256 KiB
  uint64_t code_index = 65536;    // 512 KiB
  uint64_t arena = 15 << 16;      // words; 7.5 MiB
  // Words by which the arena may grow. Their memory is allocated on demand.
  uint64_t arena_growth = 4 << 20;  // 32 MiB
  uint64_t modules = 1024;          // 1 MiB
  uint64_t in_flight = 256;
  uint64_t contexts = 256;
};

// Composes the info section: "name\0value\0" pairs. A pair that does not fit is left out.
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

// Calls visit(name, value) for each pair of an info section. Stops at the first incomplete pair.
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
  uint64_t arena_words = 0;        // that have memory at the start
  int fd = -1;                     // open, close-on-exec; the caller closes it
  char path[PATH_MAX + 100] = {};  // empty for a memfd
};

// Creates a session. Returns 0, or the errno value of the last directory tried; no files remain
// then.
int CreateSession(const SessionSizes& sizes, std::string_view info, CreatedSession* session,
                  AttachGate gate = AttachGate::kNone);

// Writes the n-th directory (from 0) in which sessions may be stored to `path`. Returns false after
// the last.
bool SessionDirectory(int n, char (&path)[PATH_MAX]);

// Finds the name of the session file `fd`. The kernel does not report it for files that were named
// only after they were opened. Returns false for a memfd and if the name was removed.
bool FindSessionName(int fd, const Header& header, char (&path)[PATH_MAX + 100]);

struct OpenedSession {
  SessionMap map;  // data read-only, the control page writable
  void* base = nullptr;
  void* control = nullptr;
  size_t size = 0;
  const char* error = nullptr;  // why the session is unusable, if map is empty
};

// Maps the session file `fd`, which stays open and is owned by the caller. The mapping lives until
// CloseSession().
OpenedSession OpenSession(int fd);
void CloseSession(OpenedSession* session);

// Returns the error in a header that claims to describe a session file of this size, or nullptr if
// it is valid.
const char* CheckHeader(const Header& header, uint64_t file_size);

// Returns field 22 of /proc/PID/stat, which identifies a process, as that process sees it: its
// clocks may differ from ours (time_namespaces(7)). Returns 0 if it cannot be read.
uint64_t StartTicks(uint64_t pid);
// Returns whether this process was forked and has not executed another program since: it runs its
// parent's program. Returns false if /proc cannot be read.
bool IsForkChild();
// Reads the kernel's boot id. Returns false if it cannot be read.
bool ReadBootId(uint8_t (&boot_id)[16]);
// Returns whether the session was created since the last boot of the machine.
bool IsThisBoot(const Header& header);

}  // namespace gmt::session

#endif  // GMT_SESSION_SESSION_FILE_H_
