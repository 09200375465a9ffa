#include "preload/nvtx/push_stacks.h"

#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "preload/base/thread_state.h"
#include "preload/record/record_event.h"

namespace gmt::preload {
namespace {

constexpr uint32_t kNone = ~uint32_t{0};  // ThreadState::push_stack: none was available

uint64_t Self() { return reinterpret_cast<uint64_t>(&thread_state); }

bool HasEnded(uint32_t tid) { return syscall(SYS_tgkill, getpid(), tid, 0) != 0 && errno == ESRCH; }

}  // namespace

int PushStack::LevelsOf(const NvtxName* domain) const {
  int levels = 0;
  for (uint32_t i = 0; i < depth; ++i) levels += ranges[i].domain == domain ? 1 : 0;
  return levels;
}

uint32_t PushStack::Innermost(const NvtxName* domain) const {
  for (uint32_t i = depth; i > 0; --i) {
    if (ranges[i - 1].domain == domain) return i - 1;
  }
  return kDepth;
}

PushedRange* PushStack::Push() {
  if (depth == kDepth) {
    ++beyond;
    return nullptr;
  }
  return &ranges[depth++];
}

void PushStack::Remove(uint32_t place) {
  --depth;
  memmove(&ranges[place], &ranges[place + 1], (depth - place) * sizeof(ranges[0]));
}

PushStack* PushStacks::MineIfAny() {
  const uint32_t number = thread_state.push_stack;
  if (number == 0 || number == kNone) return nullptr;
  PushStack* mine = &stacks_[number - 1];
  return mine->owner.load(std::memory_order_relaxed) == Self() ? mine : nullptr;
}

PushStack* PushStacks::Mine() {
  PushStack* mine = MineIfAny();
  if (mine != nullptr) [[likely]]
    return mine;
  return thread_state.push_stack == kNone ? nullptr : Claim();
}

PushStack* PushStacks::Claim() {
  const KeepErrno keep;
  const uint64_t self = Self();
  const auto tid = static_cast<uint32_t>(syscall(SYS_gettid));
  for (PushStack& stack : stacks_) {
    uint64_t owner = stack.owner.load(std::memory_order_relaxed);
    // A new thread's state may have the address of an ended thread's.
    if (owner != self && (owner != 0 || !stack.owner.compare_exchange_strong(owner, self)))
      continue;
    stack.tid.store(tid, std::memory_order_relaxed);
    stack.depth = stack.beyond = stack.recorded_in = 0;
    thread_state.push_stack = static_cast<uint32_t>(&stack - stacks_) + 1;
    return &stack;
  }
  return TakeOver(self, tid);
}

PushStack* PushStacks::TakeOver(uint64_t self, uint32_t tid) {
  for (PushStack& stack : stacks_) {
    uint64_t owner = stack.owner.load(std::memory_order_relaxed);
    if (!HasEnded(stack.tid.load(std::memory_order_relaxed))) continue;
    if (!stack.owner.compare_exchange_strong(owner, self)) continue;
    stack.tid.store(tid, std::memory_order_relaxed);
    stack.depth = stack.beyond = stack.recorded_in = 0;
    thread_state.push_stack = static_cast<uint32_t>(&stack - stacks_) + 1;
    return &stack;
  }
  thread_state.push_stack = kNone;
  return nullptr;
}

}  // namespace gmt::preload
