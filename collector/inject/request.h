// collector/inject/request.h
//
// What Inject() is asked to do, and what it replies (inject.h).

#ifndef GMT_COLLECTOR_INJECT_REQUEST_H_
#define GMT_COLLECTOR_INJECT_REQUEST_H_

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <functional>
#include <string>

namespace gmt::inject {

// The stages of an injection, in order. Tests end the injector at each one.
enum class Stage : int {
  kSeized = 1,     // a thread is traced and runs
  kStopped,        // the thread is stopped
  kDataWritten,    // the call's data is below the thread's stack
  kCodeWritten,    // the call's code is in the last page of a library
  kRegistersSet,   // the thread has the call
  kReleased,       // the thread executes the call
  kReturned,       // the call is done; the thread waits for us for up to a second
  kStoppedAgain,   // the thread is stopped
  kStateRestored,  // its vector registers and signal mask are restored, the others are not
  kRestored,       // all registers are restored
  kCodeRemoved,    // the library's page is restored
  kLast = kCodeRemoved,
};

struct Request {
  pid_t pid = 0;
  std::string library;   // path as the process sees it
  std::string function;  // exported by it
  std::string options;   // at most kMaxOptions bytes
  // How long to search for a safe moment, and how long to wait for the call.
  std::chrono::milliseconds search = std::chrono::seconds(5);
  std::chrono::milliseconds call = std::chrono::seconds(30);
  std::function<void(Stage)> on_stage;
};
inline constexpr size_t kMaxOptions = 1024;
inline constexpr size_t kMaxText = 4096;

struct Reply {
  int result = 0;    // what the function returned
  std::string text;  // what it wrote
  pid_t thread = 0;  // that executed it
  int tries = 0;     // moments checked before one was safe
};

}  // namespace gmt::inject

#endif  // GMT_COLLECTOR_INJECT_REQUEST_H_
