#include "answers/report/allocator.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "analysis/text.h"

namespace gmt::answers {
namespace {

using analysis::AllocatorAction;
using analysis::AllocatorReport;
using analysis::AllocatorUse;
using analysis::DeviceCycles;
using analysis::Phase;
using analysis::PoolState;
using analysis::Room;
using analysis::StepDriverCalls;
using analysis::TotalCheck;

struct Sum {
  uint64_t count = 0, duration_ns = 0, released = 0, failed = 0;
};

Sum SumOf(const std::vector<AllocatorAction>& actions, AllocatorAction::Kind kind) {
  Sum sum;
  for (const AllocatorAction& action : actions) {
    if (action.kind != kind) continue;
    ++sum.count;
    sum.duration_ns += action.duration_ns;
    sum.released += action.released_bytes;
    sum.failed += action.succeeded ? 0 : 1;
  }
  return sum;
}

std::string CostLine(const Sum& sum, const std::string& what) {
  return fmt::format("{} took {} and released {}", what,
                     Duration(static_cast<int64_t>(sum.duration_ns)), Bytes(sum.released));
}

std::string ActionLines(const std::vector<AllocatorAction>& actions) {
  std::string text;
  if (const Sum retries = SumOf(actions, AllocatorAction::kRetry); retries.count > 0) {
    const char* noun = retries.count == 1 ? "retry" : "retries";
    text += CostLine(retries, fmt::format("{} {}", Count(retries.count), noun));
    if (retries.failed > 0) text += fmt::format("; {} did not free enough", Count(retries.failed));
    text += "\n";
  }
  if (const Sum emptied = SumOf(actions, AllocatorAction::kEmptyCache); emptied.count > 0) {
    text += CostLine(emptied, Plural(emptied.count, "empty_cache call")) + "\n";
  }
  if (const Sum collected = SumOf(actions, AllocatorAction::kGarbageCollection);
      collected.count > 0) {
    text += CostLine(collected, Plural(collected.count, "garbage collection")) + "\n";
  }
  if (const Sum released = SumOf(actions, AllocatorAction::kRelease); released.count > 0) {
    text += CostLine(released, Plural(released.count, "release")) +
            ", by empty_cache or a garbage collection\n";
  }
  for (const AllocatorAction& action : actions) {
    if (action.kind != AllocatorAction::kOom) continue;
    text += fmt::format("out of memory at {}: {} requested\n", Duration(action.t_ns),
                        Bytes(action.requested_bytes));
  }
  return text;
}

std::string PoolLine(const PoolState& pool) {
  std::string text = fmt::format(
      "{} pool: {} in {}; {} in {}, {} releasable, {} pinned by blocks", NameOf(pool.kind),
      Bytes(pool.reserved), Plural(pool.segments, "segment"), Bytes(pool.allocated),
      Plural(pool.blocks, "block"), Bytes(pool.releasable), Bytes(pool.pinned));
  if (pool.pending > 0) text += fmt::format(", {} awaiting a stream", Bytes(pool.pending));
  return text + "\n";
}

std::string StepLines(const analysis::Cycles& cycles, const DeviceCycles& device) {
  const analysis::TypicalCycle typical = analysis::TypicalOf(device);
  std::string text = fmt::format(
      "{} {} {}; the typical one peaks at {} {} ({} of {}) and grows by {}\n",
      Plural(device.cycles.size(), "step"), cycles.inferred ? "inferred from" : "by", cycles.source,
      Bytes(typical.peak), InPhase(typical.peak_phase), Count(typical.steps_with_peak_phase),
      Count(typical.steps), SignedBytes(typical.growth));
  const auto add = [&](Phase phase, const analysis::PhaseUse& use, std::string_view more) {
    if (!use.present) return;
    text += fmt::format("  {:<10} peak {:>9}   change {:>10}{}\n", NameOf(phase), Bytes(use.peak),
                        SignedBytes(use.change), more);
  };
  const auto init = static_cast<size_t>(Phase::kInit);
  add(Phase::kInit, device.cycles.front().phases[init], "   before the first step");
  for (size_t i = 0; i < init; ++i) {
    const analysis::PhaseUse& use = typical.phases[i];
    add(static_cast<Phase>(i), use,
        use.times > 1 ? fmt::format("   each of {} per step", use.times) : "");
  }
  return text;
}

// Returns "driver calls: 14 up to step 2, none since step 3".
std::string DriverCallsLine(const StepDriverCalls& of) {
  if (of.calls == 0) return "  driver calls: none in any step\n";
  if (of.IsSteady()) {
    return fmt::format("  driver calls: {} up to step {}, none since step {}\n", Count(of.calls),
                       of.last_step, of.last_step + 1);
  }
  const auto later = static_cast<double>(of.steps - 1);
  return fmt::format(
      "  driver calls: {:.3g} per step after the first, {} per step; in {} of {} steps\n",
      static_cast<double>(of.later_calls) / later,
      Duration(static_cast<int64_t>(static_cast<double>(of.later_duration_ns) / later)),
      Count(of.later_steps_with_calls), Count(of.steps - 1));
}

// Adds "GPU 0: pytorch reported 2.0 MiB allocated, the recording has 1.0 MiB, first at 3 ms; ...".
void AddMismatch(const analysis::Reconciliation& found, const TotalCheck& check, const char* what,
                 std::vector<std::string>& out) {
  if (check.different == 0) return;
  out.push_back(
      fmt::format("GPU {}: {} reported {} {}, the recording has {}, first at {}; {} of {} differ, "
                  "by up to {}",
                  found.device, found.heap, Bytes(check.first.theirs), what,
                  Bytes(check.first.ours), Duration(check.first.t_ns), Count(check.different),
                  Plural(check.compared, "event"), Bytes(check.largest.bytes())));
}

}  // namespace

std::string AllocatorsText(const std::vector<AllocatorUse>& allocators, int32_t device) {
  std::string text;
  size_t count = 0;
  for (const AllocatorUse& use : allocators) {
    if (use.device != device) continue;
    text += fmt::format("{:>9} live, {:>9} peak  {}\n", Bytes(use.live_bytes),
                        Bytes(use.peak_bytes), use.name);
    ++count;
  }
  return count > 1 ? "allocators\n" + text : "";
}

std::string RoomText(const std::vector<Room>& rooms, int32_t device) {
  const auto room =
      std::find_if(rooms.begin(), rooms.end(), [&](const Room& of) { return of.device == device; });
  if (room == rooms.end() || (!room->free_bytes && room->largest_cached_bytes == 0)) return "";
  const std::string cached =
      fmt::format("the largest free piece of the cache {}", Bytes(room->largest_cached_bytes));
  if (!room->free_bytes) return "available: " + cached + "; free driver memory is unknown\n";
  std::string text = fmt::format("available: about {} free", Bytes(*room->free_bytes));
  if (room->total_bytes) text += fmt::format(" of {}", Bytes(*room->total_bytes));
  if (room->largest_cached_bytes > 0) text += ", " + cached;
  return text +
         fmt::format("; a request of up to {} would succeed\n", Bytes(room->largest_request()));
}

std::string AllocatorText(const AllocatorReport& report, int32_t device) {
  std::string text;
  for (const analysis::DeviceAllocator& allocator : report.devices) {
    if (allocator.device != device) continue;
    for (const PoolState& pool : allocator.pools) text += PoolLine(pool);
    text += ActionLines(allocator.actions);
  }
  for (const DeviceCycles& cycles : report.cycles.devices) {
    if (cycles.device == device) text += StepLines(report.cycles, cycles);
  }
  for (const StepDriverCalls& calls : report.driver_calls) {
    if (calls.device == device) text += DriverCallsLine(calls);
  }
  return text;
}

std::vector<std::string> Mismatches(const std::vector<analysis::Reconciliation>& reconciliations) {
  std::vector<std::string> sentences;
  for (const analysis::Reconciliation& found : reconciliations) {
    AddMismatch(found, found.allocated, "allocated", sentences);
    AddMismatch(found, found.reserved, "reserved", sentences);
  }
  return sentences;
}

}  // namespace gmt::answers
