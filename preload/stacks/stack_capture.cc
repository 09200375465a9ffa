#include "preload/stacks/stack_capture.h"

#include "preload/loader/loader.h"
#include "preload/stacks/unwind/loaded_module.h"
#include "preload/stacks/unwind/native_walk.h"

namespace gmt::preload {
namespace {

constexpr int kOwnFrames = 16;  // room for this library's own frames

// Signatures of the unwinders' functions (libunwind.h; the Itanium C++ ABI's unwind.h, and
// libgcc's).
using UnwBacktrace = int (*)(void** frames, int capacity);
using UnwindGetIpInfo = uintptr_t (*)(void* context, int* is_exact);
using UnwindGetCfa = uintptr_t (*)(void* context);
using UnwindTrace = int (*)(void* context, void* argument);
using UnwindBacktrace = int (*)(UnwindTrace trace, void* argument);
constexpr int kGoOn = 0, kStop = 5;  // _URC_NO_REASON, _URC_END_OF_STACK

// libgcc reports where a frame begins; the frame ends where the next one begins.
struct LibgccFrames {
  UnwindGetIpInfo get_ip;
  UnwindGetCfa get_cfa;
  StackBuilder* stack;
  NativeFrame pending;
  bool is_full;
};

int TakeLibgccFrame(void* context, void* argument) {
  auto* frames = static_cast<LibgccFrames*>(argument);
  NativeFrame& pending = frames->pending;
  pending.cfa = frames->get_cfa(context);
  if (pending.address != 0 && !frames->stack->Add(pending)) {
    frames->is_full = true;
    return kStop;
  }
  int is_exact = 0;
  pending.address = frames->get_ip(context, &is_exact);
  pending.exact = is_exact != 0;
  return kGoOn;
}

}  // namespace

void StackCapture::WalkNothing(const StackCapture&, StackBuilder* stack) { stack->Finish(false); }

void StackCapture::WalkLibgcc(const StackCapture& self, StackBuilder* stack) {
  LibgccFrames frames = {reinterpret_cast<UnwindGetIpInfo>(self.get_ip_),
                         reinterpret_cast<UnwindGetCfa>(self.get_cfa_),
                         stack,
                         {},
                         false};
  reinterpret_cast<UnwindBacktrace>(self.backtrace_)(TakeLibgccFrame, &frames);
  // The walk ends with an empty frame below the thread's first function, or where it cannot
  // continue.
  const bool is_cut = !frames.is_full && frames.pending.address != 0;
  if (is_cut) {
    frames.pending.cfa = ~uint64_t{0};
    stack->Add(frames.pending);
  }
  stack->Finish(false);
}

void StackCapture::WalkLibunwind(const StackCapture& self, StackBuilder* stack) {
  void* addresses[session::kMaxStackDepth + kOwnFrames];
  constexpr int kRoom = session::kMaxStackDepth + kOwnFrames;
  const int n = reinterpret_cast<UnwBacktrace>(self.backtrace_)(addresses, kRoom);
  for (int i = 0; i < n; ++i) {
    if (!stack->Add({reinterpret_cast<uint64_t>(addresses[i]), 0, false})) break;
  }
  stack->Finish(n == kRoom);
}

#if GMT_HAS_NATIVE_WALK
void StackCapture::WalkOwn(const StackCapture&, StackBuilder* stack) {
  NativeWalk walk(CaptureRegisters(), NativeWalk::Known::kEarlierWalks);
  stack->AddAll(&walk);
}

bool StackCapture::FindOwn() {
  PrepareModules();
  walk_ = WalkOwn;
  return true;
}
#else
bool StackCapture::FindOwn() { return false; }
#endif

bool StackCapture::FindLibgcc() {
  void* library = dlopen("libgcc_s.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return false;
  backtrace_ = LibcDlsym(library, "_Unwind_Backtrace");
  get_ip_ = LibcDlsym(library, "_Unwind_GetIPInfo");
  get_cfa_ = LibcDlsym(library, "_Unwind_GetCFA");
  if (backtrace_ == nullptr || get_ip_ == nullptr || get_cfa_ == nullptr) return false;
  walk_ = WalkLibgcc;
  return true;
}

bool StackCapture::FindLibunwind() {
  void* library = dlopen("libunwind.so.8", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return false;
  backtrace_ = LibcDlsym(library, "unw_backtrace");
  if (backtrace_ == nullptr) return false;
  walk_ = WalkLibunwind;
  return true;
}

StackCapture StackCapture::Find(const session::Options& options, const char** name) {
  const session::Unwinder wanted = options.native_stacks;
  StackCapture capture;
  capture.walk_ = WalkNothing;
  *name = "none";
  if (wanted == session::Unwinder::kNone) {
    if (options.python_stacks && !capture.FindOwn()) capture.FindLibgcc();
  } else if (wanted == session::Unwinder::kLibunwind && capture.FindLibunwind()) {
    *name = "libunwind";
  } else if (wanted != session::Unwinder::kLibgcc && capture.FindOwn()) {
    *name = "own";
  } else if (capture.FindLibgcc()) {
    *name = "libgcc";
  }
  return capture;
}

}  // namespace gmt::preload
