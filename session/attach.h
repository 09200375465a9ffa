// session/attach.h
//
// The door of attach: a session whose process is recorded only while somebody wants it
// (session/layout.h, Control.attach_*; docs/session.md, "Attach").
//
//   memory    header, control page and info section have it always; what lies behind them while the
//             process is recorded: the process puts it there, and it is taken away again by its
//             reader, or by the process where there is none
//   lock      who raises attach_wanted, and who takes memory away from outside, holds the lock of
//             the session's file (flock), as the collector does
//
// Thread safety: free functions, each from any thread; a session is attached to by one at a time.

#ifndef GMT_SESSION_ATTACH_H_
#define GMT_SESSION_ATTACH_H_

#include <stdint.h>

#include <string_view>

#include "session/session_map.h"

namespace gmt::session {

// Where the memory ends that a recording begins with, from the file's start: behind it lies what the
// arena and the live table may grow by.
uint64_t ReservedBytes(const Section* sections, uint64_t arena_words);

// posix_fallocate, gone on with where a signal interrupts it. 0 or errno.
int ReserveFile(int fd, uint64_t offset, uint64_t bytes);

// ---- In the process that is attached to ---------------------------------------------------------

// Puts empty memory behind the sections. `path`: the session's file, for kernels before Linux 5.14.
// 0, or errno, and there is none.
int BackSections(const SessionMap& session, uint64_t arena_words, const char* path);
// False where they stay. REQUIRES: nobody writes to them.
bool DropSections(const SessionMap& session);

// ---- Outside ------------------------------------------------------------------------------------

// Asks the process to be recorded from its next GPU call on. Returns the number of this attach; 0
// where one is under way, the process has not let go of the last one yet, or there is no door or the
// options are too long. REQUIRES: the lock of the session's file.
uint32_t AskForAttach(Control* control, std::string_view options);

// Asks it to stop, if attach `number` is what it is asked for: another one is another's.
inline void EndAttach(Control* control, uint32_t number) {
  control->attach_wanted.compare_exchange_strong(number, 0, std::memory_order_release);
}

// Takes the memory away, unless the process may still write to it. REQUIRES: `fd` is the session's
// file, open for writing and locked. False where it may.
bool ReleaseSections(int fd, const SessionMap& session);

}  // namespace gmt::session

#endif  // GMT_SESSION_ATTACH_H_
