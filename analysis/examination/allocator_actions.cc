#include "analysis/examination/allocator_actions.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "analysis/trace/recorded_time.h"

namespace gmt::analysis {
namespace {

bool Contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

// Whether the allocator's settings enable garbage collection. The options of PyTorch's allocator
// are one text, "garbage_collection_threshold:0.8,..."; a snapshot has each option separately. 0
// disables it.
bool MayCollect(const Trace& trace) {
  constexpr std::string_view kOption = "garbage_collection_threshold";
  return std::any_of(trace.settings.begin(), trace.settings.end(), [&](const NamedText& setting) {
    std::string value;
    if (const size_t at = setting.text.find(kOption); at != std::string::npos) {
      value = setting.text.substr(at + kOption.size());
    } else if (Contains(setting.name, kOption)) {
      value = setting.text;
    }
    const size_t digit = value.find_first_of("0123456789");
    return digit != std::string::npos && std::strtod(value.c_str() + digit, nullptr) > 0;
  });
}

// A failed call has no memory that could identify its caller; the calls around it do.
bool IsOfAllocator(const Trace& trace, const DriverCall& call) {
  if (call.kind == ALLOC_FAILED) return true;
  return call.row != kNoRow && (trace.rows.flags[call.row] & kRowHoldsBlocks) != 0;
}

// A block event, which ends the actions of one call of the allocator.
struct Closer {
  enum Kind { kBirth, kOther, kOom };
  Kind kind = kOther;
  uint32_t thread = 0;
  uint32_t stack = 0;
  const FailedAllocation* failed = nullptr;
};

class ActionFinder {
 public:
  ActionFinder(const Trace& trace, const format::Definitions& definitions)
      : trace_(trace), definitions_(definitions), may_collect_(MayCollect(trace)) {}

  std::vector<AllocatorAction> Find() && {
    for (Step step = 1; step <= trace_.last_step(); ++step) {
      if (open_.empty()) step = std::max(step, NextTaken());
      if (step > trace_.last_step()) break;
      TakeUntil(step);
      const RowId row = trace_.steps[step - 1].row;
      if (row == kNoRow || !trace_.rows.IsBlock(row)) continue;
      const bool is_birth = !trace_.steps[step - 1].is_death;
      Close(trace_.rows.device[row], {is_birth ? Closer::kBirth : Closer::kOther,
                                      trace_.rows.thread[row], trace_.rows.stack[row], nullptr});
    }
    TakeUntil(kNever);
    for (auto& [device, calls] : open_) Interpret(device, calls, {});
    std::stable_sort(actions_.begin(), actions_.end(),
                     [](const auto& a, const auto& b) { return a.t_ns < b.t_ns; });
    return std::move(actions_);
  }

 private:
  using Calls = std::vector<const DriverCall*>;

  // Returns the first step for which TakeUntil() takes anything. Earlier block events close
  // nothing, which is most of a recording.
  Step NextTaken() const {
    Step next = kNever;
    if (next_call_ < trace_.driver_calls.size()) next = trace_.driver_calls[next_call_].step;
    if (next_failed_ < trace_.failed.size()) {
      next = std::min(next, trace_.failed[next_failed_].step);
    }
    return next == kNever ? kNever : next + 1;
  }

  // Takes the driver calls and failed blocks before `step`.
  void TakeUntil(Step step) {
    const auto& calls = trace_.driver_calls;
    const auto& failed = trace_.failed;
    while (true) {
      const bool call = next_call_ < calls.size() && calls[next_call_].step < step;
      const bool failure = next_failed_ < failed.size() && failed[next_failed_].step < step;
      if (!call && !failure) return;
      if (call && (!failure || IsBefore(calls[next_call_], next_failed_))) {
        const DriverCall& taken = calls[next_call_++];
        if (IsOfAllocator(trace_, taken)) open_[taken.device].push_back(&taken);
      } else {
        TakeFailed(failed[next_failed_++]);
      }
    }
  }
  bool IsBefore(const DriverCall& call, size_t failed) const {
    const Step step = trace_.failed[failed].step;
    return call.step < step || (call.step == step && call.failed <= failed);
  }

  void TakeFailed(const FailedAllocation& failed) {
    if (failed.heap > kHostHeap) {
      Close(failed.device, {Closer::kOom, failed.thread, failed.stack, &failed});
    }
  }

  void Close(int32_t device, const Closer& closer) {
    const auto open = open_.find(device);
    const bool any = open != open_.end() && !open->second.empty();
    if (any || closer.kind == Closer::kOom) Interpret(device, any ? open->second : Calls(), closer);
    if (any) open_.erase(open);
  }

  // Calls of other threads occurred while the lock was released around a malloc, or are not an
  // allocator's.
  void Interpret(int32_t device, const Calls& calls, const Closer& closer) {
    std::map<uint32_t, Calls> by_thread;
    for (const DriverCall* call : calls) by_thread[call->thread].push_back(call);
    for (const auto& [thread, own] : by_thread) {
      InterpretThread(own, closer.thread == thread ? closer : Closer());
    }
    if (closer.kind == Closer::kOom) AddOom(device, by_thread[closer.thread], closer);
  }

  void InterpretThread(const Calls& calls, const Closer& closer) {
    const auto attempt = std::find_if(calls.begin(), calls.end(),
                                      [](const DriverCall* call) { return !call->is_return(); });
    const Calls before(calls.begin(), attempt), rest(attempt, calls.end());
    if (!before.empty()) AddRelease(before, rest, closer);
    if (!rest.empty() && rest.front()->kind == ALLOC_FAILED) AddRetry(rest, closer);
  }

  void AddRelease(const Calls& releases, const Calls& rest, const Closer& closer) {
    AllocatorAction action = Of(AllocatorAction::kRelease, releases);
    const uint32_t stack = releases.front()->stack;
    if (stack != 0 && ShowsEmptyCache(stack)) {
      action.kind = AllocatorAction::kEmptyCache;
    } else if (rest.empty()) {
      // Code that releases memory for a malloc calls it immediately afterwards, unless there is no
      // memory.
      const bool for_oom = closer.kind == Closer::kOom;
      action.kind = for_oom ? AllocatorAction::kRetry : AllocatorAction::kEmptyCache;
      action.succeeded = !for_oom;
    } else if (stack != 0) {
      action.kind = may_collect_ ? AllocatorAction::kGarbageCollection : AllocatorAction::kRetry;
      action.requested_bytes = rest.front()->size;
    }
    if (action.kind == AllocatorAction::kRetry) {
      action.under_limit = true;
      action.duration_ns =
          static_cast<uint64_t>((rest.empty() ? releases : rest).back()->end_ns() - action.t_ns);
      if (closer.stack != 0) action.stack = closer.stack;
    }
    actions_.push_back(action);
  }

  void AddRetry(const Calls& calls, const Closer& closer) {
    const auto last = std::find_if(calls.rbegin(), calls.rend(),
                                   [](const DriverCall* call) { return !call->is_return(); });
    if (*last == calls.front()) return;  // no second attempt: nothing was retried
    AllocatorAction action = Of(AllocatorAction::kRetry, calls);
    action.requested_bytes = calls.front()->size;
    action.succeeded = (*last)->kind != ALLOC_FAILED && closer.kind != Closer::kOom;
    actions_.push_back(action);
  }

  void AddOom(int32_t device, const Calls& calls, const Closer& closer) {
    AllocatorAction action;
    if (!calls.empty()) action = Of(AllocatorAction::kOom, calls);
    const FailedAllocation& failed = *closer.failed;
    action.kind = AllocatorAction::kOom;
    action.device = device;
    action.thread = failed.thread;
    action.step = failed.step;
    action.stack = failed.stack;
    action.requested_bytes = failed.size;
    action.succeeded = false;
    if (!calls.empty()) {
      action.duration_ns = Between(action.t_ns, failed.t_ns);
    }
    action.t_ns = failed.t_ns;
    // The allocator gives up after its second attempt; its own limit may have refused both.
    if (calls.empty()) {
      AllocatorAction retry = action;
      retry.kind = AllocatorAction::kRetry;
      retry.under_limit = true;
      actions_.push_back(retry);
    }
    actions_.push_back(action);
  }

  static AllocatorAction Of(AllocatorAction::Kind kind, const Calls& calls) {
    AllocatorAction action;
    action.kind = kind;
    const DriverCall& first = *calls.front();
    action.device = first.device;
    action.thread = first.thread;
    action.step = first.step;
    action.t_ns = first.begin_ns();
    action.stack = first.stack;
    action.duration_ns = static_cast<uint64_t>(calls.back()->end_ns() - action.t_ns);
    for (const DriverCall* call : calls) {
      // Pages are unmapped and then released; only one of the two is counted.
      if (call->kind != FREE && call->kind != UNMAP) continue;
      action.released_bytes += call->size;
      ++action.releases;
    }
    return action;
  }

  bool ShowsEmptyCache(uint32_t stack) {
    const auto [known, is_new] = empties_cache_.try_emplace(stack, false);
    if (!is_new) return known->second;
    for (uint32_t frame : definitions_.StackFrames(stack)) {
      if (Names(definitions_.frame(frame).function)) known->second = true;
      for (const format::Symbol& symbol : definitions_.symbols(frame)) {
        if (Names(symbol.function)) known->second = true;
      }
    }
    return known->second;
  }
  bool Names(uint32_t function) const {
    const std::string_view name = definitions_.string(function);
    return name == "empty_cache" || Contains(name, "emptyCache");
  }

  const Trace& trace_;
  const format::Definitions& definitions_;
  const bool may_collect_;
  size_t next_call_ = 0, next_failed_ = 0;
  // By device: calls since its last block event. Omits devices without any.
  std::map<int32_t, Calls> open_;
  absl::flat_hash_map<uint32_t, bool> empties_cache_;  // by stack
  std::vector<AllocatorAction> actions_;
};

}  // namespace

std::string_view NameOf(AllocatorAction::Kind kind) {
  switch (kind) {
    case AllocatorAction::kRetry:
      return "retry";
    case AllocatorAction::kEmptyCache:
      return "empty_cache";
    case AllocatorAction::kGarbageCollection:
      return "garbage_collection";
    case AllocatorAction::kRelease:
      return "release";
    case AllocatorAction::kOom:
      return "oom";
  }
  return "";
}

std::vector<AllocatorAction> FindAllocatorActions(const Trace& trace,
                                                  const format::Definitions& definitions) {
  return ActionFinder(trace, definitions).Find();
}

}  // namespace gmt::analysis
