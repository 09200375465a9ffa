// session/attach.h
//
// The attach gate: a session whose process is recorded only while a client is attached
// (session/layout.h, Control.attach_*; docs/session.md, "Attach").
//
//   memory    header, control page and info section always have memory. The sections after them
//             have it only while the process is recorded: the process allocates it, and its reader
//             releases it again, or the process itself if there is no reader
//   lock      a client that sets attach_wanted or releases memory from outside holds the lock of
//             the session file (flock), as the collector does
//
// Thread safety: free functions, each callable from any thread. At most one client is attached to a
// session at a time.

#ifndef GMT_SESSION_ATTACH_H_
#define GMT_SESSION_ATTACH_H_

#include <stdint.h>

#include <string_view>

#include "session/session_map.h"

namespace gmt::session {

// Returns the file offset at which the memory that a recording starts with ends. The space after it
// is for growth of the arena and the live table.
uint64_t ReservedBytes(const Section* sections, uint64_t arena_words);

// Calls posix_fallocate and resumes it after signals. Returns 0 or an errno value.
int ReserveFile(int fd, uint64_t offset, uint64_t bytes);

// ---- In the process that is attached to ---------------------------------------------------------

// Allocates zeroed memory for the sections. `path` is the session file, needed before Linux 5.14.
// Returns 0, or an errno value, in which case no memory is allocated.
int BackSections(const SessionMap& session, uint64_t arena_words, const char* path);
// Releases the memory of the sections. Returns false if it could not be released. REQUIRES: no
// thread writes to them.
bool DropSections(const SessionMap& session);

// ---- Outside ------------------------------------------------------------------------------------

// Requests that the process is recorded from its next GPU call on. Returns the number of this
// attach, or 0 if another attach is in progress, the process has not finished detaching, the
// session has no attach gate, or the options are too long. REQUIRES: the session file is locked.
uint32_t RequestAttach(Control* control, std::string_view options);

// Requests the end of attach `number`. Does nothing if a different attach is requested by now.
inline void EndAttach(Control* control, uint32_t number) {
  control->attach_wanted.compare_exchange_strong(number, 0, std::memory_order_release);
}

// Releases the memory of the sections. Returns false if the process may still write to it.
// REQUIRES: `fd` is the session file, open for writing and locked.
bool ReleaseSections(int fd, const SessionMap& session);

}  // namespace gmt::session

#endif  // GMT_SESSION_ATTACH_H_
