#include "preload/stacks/python/interpreter.h"

#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "preload/base/thread_state.h"
#include "preload/loader/loader.h"
#include "preload/stacks/python/code_identity.h"
#include "preload/stacks/python/last_python_walk.h"
#include "preload/stacks/python/python_walk.h"
#include "preload/stacks/python/readable.h"

namespace gmt::preload {
namespace {

// State: the last Interpreter::identity_ that was given.
constinit std::atomic<uint32_t> findings{0};

template <typename Function>
void Resolve(void* library, const char* name, Function* function) {
  *function = reinterpret_cast<Function>(LibcDlsym(library, name));
}
void Resolve(void* library, const char* name, uint64_t* object) {
  *object = reinterpret_cast<uint64_t>(LibcDlsym(library, name));
}

// Uses the name in newer versions, or else that in older ones.
template <typename Function>
void Resolve(void* library, const char* name, const char* older_name, Function* function) {
  Resolve(library, name, function);
  if (*function == nullptr) Resolve(library, older_name, function);
}

PythonApi ResolveAll(void* library) {
  PythonApi api = {};
  Resolve(library, "PyGILState_GetThisThreadState", &api.current_thread);
  Resolve(library, "PyThreadState_GetUnchecked", "_PyThreadState_UncheckedGet", &api.gil_holder);
  Resolve(library, "Py_IsFinalizing", "_Py_IsFinalizing", &api.is_finalizing);
  Resolve(library, "PyInterpreterState_Head", &api.first_interpreter);
  Resolve(library, "PyInterpreterState_Next", &api.next_interpreter);
  Resolve(library, "PyCode_Type", &api.code_type);
  Resolve(library, "PyUnicode_Type", &api.text_type);
  Resolve(library, "PyBytes_Type", &api.bytes_type);
  Resolve(library, "PyThreadState_GetFrame", &api.innermost_frame);
  Resolve(library, "PyFrame_GetBack", &api.frame_back);
  Resolve(library, "PyFrame_GetCode", &api.frame_code);
  Resolve(library, "PyFrame_GetLasti", &api.frame_instruction);
  Resolve(library, "Py_DecRef", &api.release);
  Resolve(library, "PyGC_Disable", &api.disable_gc);
  Resolve(library, "PyGC_Enable", &api.enable_gc);
  Resolve(library, "PyErr_Fetch", &api.take_error);
  Resolve(library, "PyErr_Restore", &api.put_error);
  return api;
}

bool IsUsable(const PythonApi& api) {
  return api.current_thread != nullptr && api.gil_holder != nullptr &&
         api.is_finalizing != nullptr && api.code_type != 0 && api.text_type != 0 &&
         api.bytes_type != 0;
}

struct Version {
  int major, minor, micro;
  bool released;  // or is a release candidate, which has the layout of its release
};

Version ReadVersion(void* library) {
  const auto* number = static_cast<const unsigned long*>(LibcDlsym(library, "Py_Version"));
  if (number != nullptr) {  // since 3.11: PY_VERSION_HEX
    const auto byte = [number](int shift) { return static_cast<int>(*number >> shift & 0xff); };
    return {byte(24), byte(16), byte(8), (byte(0) >> 4) >= 0xc};
  }
  const char* (*text)() = nullptr;
  Resolve(library, "Py_GetVersion", &text);
  int parts[3] = {};
  if (text != nullptr) {
    char* end = nullptr;
    const char* at = text();
    for (int& part : parts) {
      part = static_cast<int>(strtol(at, &end, 10));
      if (*end != '.') break;
      at = end + 1;
    }
  }
  return {parts[0], parts[1], parts[2], true};
}

struct Text {
  uint64_t inside, start, end;
};

// Finds the range from the first to the last code segment of the library that contains an address.
// (Whole-program optimizers leave several such segments.)
int FindText(dl_phdr_info* library, size_t, void* argument) {
  auto* text = static_cast<Text*>(argument);
  uint64_t first = ~uint64_t{0}, last = 0;
  for (int i = 0; i < library->dlpi_phnum; ++i) {
    const ElfW(Phdr)& h = library->dlpi_phdr[i];
    if (h.p_type != PT_LOAD || (h.p_flags & PF_X) == 0) continue;
    const uint64_t start = library->dlpi_addr + h.p_vaddr;
    if (start < first) first = start;
    if (start + h.p_memsz > last) last = start + h.p_memsz;
  }
  if (text->inside < first || text->inside >= last) return 0;
  text->start = first;
  text->end = last;
  return 1;
}

// Returns the library that contains the interpreter, for dlsym, and keeps it loaded.
bool OpenInterpreter(void** library) {
  char path[PATH_MAX];
  if (!FindDefiner("PyGILState_GetThisThreadState", path, sizeof(path))) return false;
  *library = RTLD_DEFAULT;
  if (path[0] != '\0') *library = dlopen(path, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
  return path[0] == '\0' || *library != nullptr;
}

}  // namespace

void Interpreter::Find() {
  if (looking_.exchange(true, std::memory_order_acquire)) return;
  void* library;
  if (state_.load(std::memory_order_relaxed) == kNone && OpenInterpreter(&library)) {
    const char* refused = Examine(library);
    dlerror();  // not every version has every function
    reason_.store(refused, std::memory_order_release);
    state_.store(refused == nullptr ? kOn : kOff, std::memory_order_release);
  }
  looking_.store(false, std::memory_order_release);
}

// Returns nullptr, or why its frames cannot be read.
const char* Interpreter::Examine(void* library) {
  const Version version = ReadVersion(library);
  api_ = ResolveAll(library);
  minor_ = version.minor;
  snprintf(version_, sizeof(version_), "%d.%d.%d", version.major, version.minor, version.micro);
  if (!IsUsable(api_)) return "this Python lacks functions that every CPython has";
  uint64_t runtime;
  Resolve(library, "_PyRuntime", &runtime);
  if (version.major != 3 || !version.released ||
      !FindLayout(version.minor, reinterpret_cast<const uint64_t*>(runtime), &layout_)) {
    snprintf(refusal_, sizeof(refusal_), "Python %s%s is not supported (3.%d to 3.%d are)",
             version_, version.released ? "" : ", not yet released,", kFirstMinor, kLastMinor);
    return refusal_;
  }
  load_ = PythonWalk::LoaderFor(layout_);
  follow_ = LastPythonWalk::FollowerFor(layout_);
  Text text = {reinterpret_cast<uint64_t>(api_.current_thread), 0, 0};
  dl_iterate_phdr(FindText, &text);
  text_start_ = text.start;
  text_bytes_ = text.end - text.start;
  if (layout_.code_version == 0) {
    CodeIdentity::CountDeaths(api_.code_type, text_start_, text_bytes_);
  }
  if (layout_.chain == FrameChain::kObjects) {
    eval_ = FindEvalFunction(LibcDlsym(library, "_PyEval_EvalFrameDefault"));
  }
  identity_ = findings.fetch_add(1, std::memory_order_relaxed) + 1;
  return nullptr;
}

const char* Interpreter::status() const {
  const char* reason = reason_.load(std::memory_order_acquire);
  if (reason != nullptr) return reason;
  return on() ? "on" : "no Python in this process";
}

void Interpreter::TurnOff(const char* reason) const {
  const char* none = nullptr;
  reason_.compare_exchange_strong(none, reason, std::memory_order_release);
  state_.store(kOff, std::memory_order_release);
}

void Interpreter::UseLayout(const Layout& layout) {
  layout_ = layout;
  load_ = PythonWalk::LoaderFor(layout);
  follow_ = LastPythonWalk::FollowerFor(layout);
}

Interpreter::Thread Interpreter::FindThread() const {
  if (api_.current_thread == nullptr) return {};
  auto thread = reinterpret_cast<uint64_t>(api_.current_thread());
  if (thread == 0) return {};
  constexpr Thread kUnreadable = {0, true};
  if (!on()) return kUnreadable;
  if (api_.is_finalizing() != 0) [[unlikely]] {
    // The states of other threads are then freed, although these threads may still run C code.
    if (getpid() != static_cast<pid_t>(syscall(SYS_gettid))) return kUnreadable;
  } else if (minor_ <= 11) {
    const auto holder = reinterpret_cast<uint64_t>(api_.gil_holder());
    if (holder != thread) thread = ThreadOfSubinterpreter(thread, holder);
  }
  if (thread == 0 || (thread_state.checked_python != identity_ && !CheckThread(thread))) return kUnreadable;
  // The thread state may have been created on this thread but be in use by another one.
  const uint64_t ident = *reinterpret_cast<const uint64_t*>(thread + layout_.thread_ident);
  return ident == pthread_self() ? Thread{thread, false} : kUnreadable;
}

// Up to 3.11 a thread in a subinterpreter appears to belong to the main interpreter, unless it
// holds the GIL: then its own state is the current one. Without the GIL, there is no way to know.
uint64_t Interpreter::ThreadOfSubinterpreter(uint64_t thread, uint64_t holder) const {
  if (api_.first_interpreter == nullptr || api_.next_interpreter == nullptr) return thread;
  void* first = api_.first_interpreter();
  if (first == nullptr || api_.next_interpreter(first) == nullptr) return thread;
  CarefulReader reader;
  uint64_t ident;
  if (holder == 0 || !reader.Read(holder + layout_.thread_ident, &ident)) return 0;
  return ident == pthread_self() ? holder : 0;
}

bool Interpreter::CheckThread(uint64_t thread) const {
  CarefulReader reader;
  uint64_t ident;
  const bool fits = reader.Read(thread + layout_.thread_ident, &ident) && ident == pthread_self();
  if (!fits && thread_ident_seen_.load(std::memory_order_relaxed)) return false;
  const char* reason =
      fits ? CheckFrames(thread) : "Python's thread state does not name this thread";
  if (reason != nullptr) {
    TurnOff(reason);
    return false;
  }
  thread_ident_seen_.store(true, std::memory_order_relaxed);
  thread_state.checked_python = identity_;
  return true;
}

}  // namespace gmt::preload
