#include "preload/stack_capture.h"

#include "preload/loader.h"
#include "preload/own_image.h"

namespace gmt::preload {
namespace {

constexpr uint32_t kOwnFrames = 16;  // room for the shim's own frames, which are left out

// Signatures of the unwinders' functions (libunwind.h; the Itanium C++ ABI's unwind.h).
using UnwBacktrace = int (*)(void** frames, int capacity);
using UnwindGetIp = uintptr_t (*)(void* context);
using UnwindTrace = int (*)(void* context, void* argument);
using UnwindBacktrace = int (*)(UnwindTrace trace, void* argument);
constexpr int kGoOn = 0, kStop = 5;  // _URC_NO_REASON, _URC_END_OF_STACK

struct Collected {
  UnwindGetIp get_ip;
  uint64_t* frames;
  uint32_t count, capacity;
};

int CollectFrame(void* context, void* argument) {
  auto* c = static_cast<Collected*>(argument);
  if (c->count == c->capacity) return kStop;
  c->frames[c->count++] = c->get_ip(context);
  return kGoOn;
}

}  // namespace

uint32_t StackCapture::WalkLibunwind(const StackCapture& self, uint64_t* frames,
                                     uint32_t capacity) {
  static_assert(sizeof(void*) == sizeof(uint64_t));
  const int n = reinterpret_cast<UnwBacktrace>(self.backtrace_)(reinterpret_cast<void**>(frames),
                                                                static_cast<int>(capacity));
  return n > 0 ? static_cast<uint32_t>(n) : 0;
}

uint32_t StackCapture::WalkLibgcc(const StackCapture& self, uint64_t* frames, uint32_t capacity) {
  Collected collected = {reinterpret_cast<UnwindGetIp>(self.get_ip_), frames, 0, capacity};
  reinterpret_cast<UnwindBacktrace>(self.backtrace_)(CollectFrame, &collected);
  uint32_t n = collected.count;
  while (n > 0 && frames[n - 1] == 0)
    --n;  // the walk ends with an empty frame below the thread's first function
  return n;
}

bool StackCapture::FindLibunwind() {
  void* library = dlopen("libunwind.so.8", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return false;
  backtrace_ = LibcDlsym(library, "unw_backtrace");
  walk_ = backtrace_ == nullptr ? nullptr : WalkLibunwind;
  return walk_ != nullptr;
}

bool StackCapture::FindLibgcc() {
  void* library = dlopen("libgcc_s.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return false;
  backtrace_ = LibcDlsym(library, "_Unwind_Backtrace");
  get_ip_ = LibcDlsym(library, "_Unwind_GetIP");
  walk_ = backtrace_ == nullptr || get_ip_ == nullptr ? nullptr : WalkLibgcc;
  return walk_ != nullptr;
}

StackCapture StackCapture::Find(session::Unwinder wanted, const char** name) {
  StackCapture capture;
  *name = "none";
  if (wanted == session::Unwinder::kNone) return capture;
  if (wanted != session::Unwinder::kLibunwind && capture.FindLibgcc()) {
    *name = "libgcc";
  } else if (capture.FindLibunwind() || capture.FindLibgcc()) {
    *name = capture.walk_ == WalkLibunwind ? "libunwind" : "libgcc";
  }
  // The first walk reads and allocates most: now, while nobody is counting on this thread.
  uint64_t frames[4];
  bool truncated;
  if (capture) capture.Capture(frames, 4, &truncated);
  return capture;
}

uint32_t StackCapture::Capture(uint64_t* frames, uint32_t capacity, bool* truncated) const {
  uint64_t all[session::kMaxStackDepth + kOwnFrames];
  const uint32_t room = capacity + kOwnFrames;
  const uint32_t n = walk_(*this, all, room < sizeof(all) / 8 ? room : sizeof(all) / 8);
  uint32_t first = 0;
  while (first < n && InOwnImage(all[first])) ++first;
  uint32_t count = n - first;
  *truncated = count > capacity || n == room;
  if (count > capacity) count = capacity;
  for (uint32_t i = 0; i < count; ++i) frames[i] = all[first + i];
  return count;
}

}  // namespace gmt::preload
