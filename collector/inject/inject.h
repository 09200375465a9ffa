// collector/inject/inject.h
//
// Brings a library into a process that runs, and has it call one of the library's functions:
//
//   int FUNCTION(const char* options, char* text, size_t capacity)
//
// One thread of the process is stopped for some microseconds at a moment when it holds no lock of
// the loader or of an allocator (safe_point.h), is given a call to carry out (remote_call.h), and is
// let go. It loads the library and calls the function by itself, with nobody tracing it; then it
// is stopped once more, and gets back every register that it had, a system call that it waited in
// included.
//
// Invariants
//   J1  Nothing is changed before a thread has been found that may be used.
//   J2  From the moment a thread has its call it can finish without us: if we are killed, at any
//       instruction, it loads the library, goes back to where it was and goes on. The same holds
//       when the call takes longer than we wait.
//   J3  When Inject() returns, no thread of the process is stopped or traced by us, in whatever way
//       it returns: the work is done in a child of ours, with whose end the kernel lets go.
//   J4  What stays in the process is the library. The call itself lies on the stack of that thread
//       and in bytes of a library's last page of code that belong to nothing; both are put back.
//
// Thread safety: free functions. Inject() forks: to be called while this process has one thread.
// docs/attach.md has the reasons.

#ifndef GMT_COLLECTOR_INJECT_INJECT_H_
#define GMT_COLLECTOR_INJECT_INJECT_H_

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/statusor.h"

namespace gmt::inject {

// The moments of an injection, in order. For tests, which end the injector at each.
enum class Stage : int {
  kSeized = 1,     // a thread is traced, and runs
  kStopped,        // it is stopped
  kDataWritten,    // the call's data lie below its stack
  kCodeWritten,    // its code lies in the last page of a library
  kRegistersSet,   // the thread has the call
  kReleased,       // the thread runs it
  kReturned,       // the call is done; the thread waits for us, or a second
  kStoppedAgain,   // it is stopped
  kStateRestored,  // it has its vector registers and signal mask back, but not the others
  kRestored,       // it has all registers back
  kCodeRemoved,    // the library's page is as it was
  kLast = kCodeRemoved,
};

struct Request {
  pid_t pid = 0;
  std::string library;   // path as the process sees it
  std::string function;  // exported by it
  std::string options;   // at most kMaxOptions bytes
  // How long to look for a safe moment, and how long to wait for the call.
  std::chrono::milliseconds search = std::chrono::seconds(5);
  std::chrono::milliseconds call = std::chrono::seconds(30);
  std::function<void(Stage)> on_stage;
};
inline constexpr size_t kMaxOptions = 1024;
inline constexpr size_t kMaxText = 4096;

struct Reply {
  int result = 0;    // what the function returned
  std::string text;  // what it wrote
  pid_t thread = 0;  // that carried it out
  int tries = 0;     // moments looked at before one was safe
};

// FAILED_PRECONDITION: the loader refused the library (its own words are in the message), or it has
// no such function. DEADLINE_EXCEEDED: no safe moment came, nothing was changed; or the call has not
// returned yet, and then the message says what its thread is doing. NOT_FOUND: the process ended or
// became another program meanwhile. PERMISSION_DENIED: the kernel did not let us.
absl::StatusOr<Reply> Inject(const Request& request);

}  // namespace gmt::inject

#endif  // GMT_COLLECTOR_INJECT_INJECT_H_
