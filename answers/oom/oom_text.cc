#include "answers/oom/oom_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "analysis/text.h"
#include "answers/frag/pins.h"
#include "answers/stacks/stack_text.h"

namespace gmt::answers {
namespace {

using analysis::Examination;
using analysis::FrameText;
using analysis::OomAction;
using analysis::OomEvidence;
using analysis::OomHolder;
using analysis::OomReport;
using analysis::OomVerdict;
using Basis = analysis::ExpectedPeak::Basis;

constexpr size_t kActionsShown = 3, kUselessActionsShown = 2, kHoldersShown = 2,
                 kCategoriesShown = 5, kFindings = 1;
constexpr uint64_t kLargePercent = 5;  // of the device: smaller requests may be squares by chance
// Minimum ratio at which the inputs of steps count as different.
constexpr double kOtherInputs = 1.1;
constexpr uint64_t kMinHolderFraction = 50;  // the smallest holder shown has 1/50 of live memory

std::string Framework(const OomReport& report) {
  return report.heap == "pytorch" ? "PyTorch" : "the framework";
}

// ---- The verdict --------------------------------------------------------------------------------

std::string RetriesText(const OomReport& report) {
  const OomEvidence& evidence = report.evidence;
  if (evidence.retries == 0) return ": no GPU allocation failed";
  const std::string first = Duration(evidence.first_retry_t_ns),
                    time = Duration(static_cast<int64_t>(evidence.retry_ns));
  if (evidence.retries == 1)
    return fmt::format(": 1 retry at {}, which released the cache and took {}", first, time);
  return fmt::format(
      ": but close to it, {} retries since {}, {} in total, each of which released the cache",
      Count(evidence.retries), first, time);
}

std::string Requested(const OomReport& report) {
  return Bytes(report.requested_bytes) + " requested";
}

std::string DriverFree(const OomEvidence& evidence) {
  return evidence.driver_free_bytes ? Bytes(*evidence.driver_free_bytes) : "unknown";
}

std::string Why(const OomReport& report) {
  const OomEvidence& evidence = report.evidence;
  const uint64_t pool_free =
      evidence.split.pinned + evidence.split.stream + evidence.split.releasable;
  switch (report.verdict) {
    case OomVerdict::kNone:
    case OomVerdict::kUnknown:
      return "";
    case OomVerdict::kCapacity:
      if (evidence.expected.basis == Basis::kGrowth) {
        return fmt::format("a tensor grows with each concatenation; {}", Requested(report));
      }
      if (evidence.live_bytes + report.requested_bytes <= evidence.available_bytes) {
        // No step is expected of a library that asks the driver itself.
        if (evidence.expected.bytes == 0)
          return fmt::format("the driver has {} free; {}", DriverFree(evidence), Requested(report));
        return fmt::format("this step needs about {}, {} are available; {}",
                           Bytes(evidence.expected.bytes), Bytes(evidence.available_bytes),
                           Requested(report));
      }
      return evidence.total_bytes > 0
                 ? fmt::format("{} of {} are in use; {}", Bytes(evidence.live_bytes),
                               Bytes(evidence.total_bytes), Requested(report))
                 : fmt::format("{} are in use; {}", Bytes(evidence.live_bytes), Requested(report));
    case OomVerdict::kFragmentation:
      // The request may also need what the driver has free.
      if (pool_free < report.requested_bytes) {
        return fmt::format("{} are free in total, largest piece {}; {}",
                           Bytes(pool_free + evidence.driver_free_bytes.value_or(0)),
                           Bytes(evidence.largest_free_bytes), Requested(report));
      }
      return fmt::format("{} are free, largest piece {}; {}", Bytes(pool_free),
                         Bytes(evidence.largest_free_bytes), Requested(report));
    case OomVerdict::kLeak:
      return fmt::format("{} holds {}; without it the {} would fit", report.leak_id,
                         Bytes(evidence.leaked_bytes), Requested(report));
    case OomVerdict::kOutside:
      return fmt::format("{} of this process outside {}; {}", Bytes(evidence.outside_bytes),
                         Framework(report), Requested(report));
    case OomVerdict::kSingleRequest:
      return fmt::format("{} at once, but the GPU has {}", Requested(report),
                         Bytes(evidence.total_bytes));
    case OomVerdict::kCap:
      return evidence.limit_bytes
                 ? fmt::format("stopped at {} reserved, {} free on the GPU; {}",
                               Bytes(*evidence.limit_bytes), DriverFree(evidence),
                               Requested(report))
                 : fmt::format("the driver refused {} with {} free", Bytes(report.requested_bytes),
                               DriverFree(evidence));
    case OomVerdict::kOtherProcess:
      return fmt::format("other processes hold {}{}; {}", Bytes(evidence.others_bytes()),
                         evidence.total_bytes > 0 ? " of " + Bytes(evidence.total_bytes) : "",
                         Requested(report));
    case OomVerdict::kStreamDeferred:
      return fmt::format("{} are waiting for other streams; {} during a capture",
                         Bytes(evidence.split.awaiting_stream), Requested(report));
    case OomVerdict::kPrivatePool:
      if (report.heap == "driver" && evidence.captures == 0) {
        return fmt::format("a framework's cache holds {} that the driver cannot use; {}",
                           Bytes(evidence.split.private_pool + pool_free), Requested(report));
      }
      return fmt::format(
          "{} are free in pools closed to this request; {}",
          Bytes(evidence.split.private_pool + (evidence.captures > 0 ? pool_free : 0)),
          Requested(report));
  }
  return "";
}

std::string_view Words(OomVerdict verdict) {
  switch (verdict) {
    case OomVerdict::kOutside:
      return "outside the framework";
    case OomVerdict::kSingleRequest:
      return "one request too large";
    case OomVerdict::kCap:
      return "a limit";
    case OomVerdict::kOtherProcess:
      return "other processes";
    case OomVerdict::kStreamDeferred:
      return "streams";
    case OomVerdict::kPrivatePool:
      return "private pools";
    case OomVerdict::kLeak:
      return "a leak";
    default:
      return NameOf(verdict);
  }
}

// ---- Where --------------------------------------------------------------------------------------

std::string Moment(const OomReport& report) {
  std::string text = fmt::format("confidence {}; GPU {} at {}", NameOf(report.confidence),
                                 report.device, Duration(report.t_ns));
  if (report.cycle) text += fmt::format(", step {}", *report.cycle);
  if (report.phase && *report.phase != analysis::Phase::kOther)
    text += fmt::format(", {}", NameOf(*report.phase));
  if (report.evidence.retries > 0) {
    text += fmt::format("; {} since {}",
                        report.evidence.retries == 1
                            ? "1 retry"
                            : fmt::format("{} retries", Count(report.evidence.retries)),
                        Duration(report.evidence.first_retry_t_ns));
  }
  if (!report.was_fatal) text += "; the program continued";
  return text;
}

// Returns what the whole step would have held, and how that is known.
std::string Expectation(const OomReport& report) {
  const analysis::ExpectedPeak& expected = report.evidence.expected;
  if (expected.basis == Basis::kFirstStep) {
    return fmt::format(
        "this first step: about {}{}, {} available\n", Bytes(expected.bytes),
        expected.perhaps_bytes > 0
            ? fmt::format(", {} with momentum", Bytes(expected.bytes + expected.perhaps_bytes))
            : " with the optimizer's state",
        Bytes(report.evidence.available_bytes));
  }
  if (expected.basis != Basis::kEarlierSteps) return "";
  const bool has_other_inputs =
      expected.input_ratio >= kOtherInputs || expected.input_ratio <= 1 / kOtherInputs;
  return fmt::format(
      "this step: about {}{} ({} before it: up to {}), {} available\n", Bytes(expected.bytes),
      has_other_inputs ? fmt::format(" with {:.3g} times the input", expected.input_ratio) : "",
      Count(expected.earlier_steps), Bytes(expected.earlier_peak),
      Bytes(report.evidence.available_bytes));
}

const std::vector<FrameText>& FramesOf(uint32_t stack, uint32_t forward_stack,
                                       const Examination& examination) {
  return examination.stacks().Frames(forward_stack != 0 ? forward_stack : stack);
}

std::string SourceOf(const std::vector<FrameText>& frames, analysis::SourceLines& sources,
                     size_t indent, size_t width) {
  const int own = analysis::OwnFrame(frames);
  if (own < 0) return "";
  const std::string line = sources.Line(frames[static_cast<size_t>(own)], width - indent);
  return line.empty() ? "" : std::string(indent, ' ') + line + "\n";
}

std::string Place(const OomReport& report, const Examination& examination,
                  analysis::SourceLines& sources, size_t width) {
  const auto& frames = FramesOf(report.stack, report.forward_stack, examination);
  const std::string id = StackId(report.stack, report.forward_stack);
  std::string text = "request: ";
  if (report.forward_stack != 0) text += "backward of ";
  text += StackLine(frames, width - text.size() - id.size() - 3);
  if (!id.empty()) text += "   " + id;
  const bool is_large = report.requested_bytes >= report.evidence.total_bytes / 100 * kLargePercent;
  if (report.square && is_large && report.shape.empty()) {
    text += fmt::format("; perhaps {0} x {0} elements", Count(*report.square));
  }
  text += "\n" + SourceOf(frames, sources, 9, width);
  if (report.shape.empty()) return text;
  return text + fmt::format("{:9}a {} tensor of {}\n", "", report.dtype, report.shape);
}

// ---- The device ---------------------------------------------------------------------------------

std::string Row(int64_t bytes, uint64_t whole, const std::string& words) {
  const std::string amount = bytes < 0 ? SignedBytes(bytes) : Bytes(static_cast<uint64_t>(bytes));
  return fmt::format("{:>9} {:>6}  {}\n", amount,
                     whole == 0 || bytes < 0
                         ? ""
                         : Percent(static_cast<double>(bytes), static_cast<double>(whole)),
                     words);
}

std::string SplitWords(const analysis::FragmentationSplit& split) {
  std::string text;
  const std::pair<uint64_t, const char*> parts[] = {{split.pinned, "pinned by blocks"},
                                                    {split.stream, "of other streams"},
                                                    {split.releasable, "releasable"},
                                                    {split.private_pool, "in private pools"},
                                                    {split.awaiting_stream, "awaiting streams"}};
  for (const auto& [bytes, words] : parts) {
    if (bytes == 0) continue;
    text += fmt::format("{}{} {}", text.empty() ? ": " : ", ", Bytes(bytes), words);
  }
  return text;
}

std::string OutsideWords(const OomReport& report, analysis::LedgerGroup group) {
  std::string text;
  size_t shown = 0;
  for (const analysis::LedgerRow& row : report.outside) {
    if (row.group != group || shown++ >= 2) continue;
    text += fmt::format("{}{} {}", text.empty() ? ": " : ", ", row.name, Bytes(row.bytes));
  }
  return text;
}

std::string DeviceTable(const OomReport& report) {
  const OomEvidence& evidence = report.evidence;
  const uint64_t total = evidence.total_bytes;
  std::string text;
  int64_t sum = 0;
  const auto add = [&](uint64_t bytes, const std::string& words) {
    if (bytes == 0) return;
    sum += static_cast<int64_t>(bytes);
    text += Row(static_cast<int64_t>(bytes), total, words);
  };
  const bool has_framework = evidence.reserved_bytes > 0;
  add(evidence.live_bytes, has_framework ? "live blocks" : "allocated by this process");
  add(evidence.free_bytes, "free in the allocator's segments" + SplitWords(evidence.split));
  using Group = analysis::LedgerGroup;
  add(evidence.outside_bytes,
      "outside the framework" +
          (has_framework ? OutsideWords(report, Group::kOutsideFramework) : ": contexts, code"));
  add(evidence.other_processes_bytes,
      "other processes" + OutsideWords(report, Group::kOtherProcess));
  add(evidence.not_apart_bytes, "contexts, code and other processes (not distinguished)");
  add(evidence.system_bytes, "driver and firmware");
  if (evidence.driver_free_bytes) {
    sum += static_cast<int64_t>(*evidence.driver_free_bytes);
    text += Row(static_cast<int64_t>(*evidence.driver_free_bytes), total,
                "free, according to the driver");
  }
  if (total == 0) return text;
  const int64_t rest = static_cast<int64_t>(total) - sum;
  if (rest != 0) {
    text += Row(rest, total, evidence.driver_free_bytes ? "unexplained" : "unknown");
  }
  return text + Row(static_cast<int64_t>(total), total, fmt::format("GPU {}", report.device));
}

// ---- What holds it ------------------------------------------------------------------------------

std::string CategoriesLine(const OomReport& report) {
  std::string text;
  uint64_t others = 0;
  size_t shown = 0;
  for (const analysis::CategoryUse& use : report.categories) {
    if (use.category == analysis::Category::kCache || use.bytes == 0) continue;
    if (shown++ < kCategoriesShown) {
      text += fmt::format("{}{} {}", text.empty() ? "live: " : ", ", TextOf(use.category),
                          Bytes(use.bytes));
    } else {
      others += use.bytes;
    }
  }
  if (others > 0) text += fmt::format(", others {}", Bytes(others));
  return text.empty() ? "" : text + "\n";
}

std::string HolderLine(const OomHolder& holder, const Examination& examination, size_t width) {
  const std::string count =
      holder.each_bytes != 0 && holder.count > 1
          ? fmt::format("{} x {}", Count(holder.count), Bytes(holder.each_bytes))
          : Plural(holder.count, "piece");
  const std::string id = StackId(holder.stack, holder.forward_stack);
  const std::string head = fmt::format("{:>9} {:>16}  {}", Bytes(holder.bytes), count,
                                       holder.forward_stack != 0 ? "backward of " : "");
  const auto& frames = FramesOf(holder.stack, holder.forward_stack, examination);
  return head + StackLine(frames, width - std::min(width, head.size() + id.size() + 3)) +
         (id.empty() ? "" : "   " + id) + "\n";
}

std::string PinLines(const OomReport& report, const Examination& examination, size_t width) {
  const auto groups = analysis::GroupPins(examination.trace(), report.pins);
  const MainPins main = MainPinsOf(examination.trace(), report.pins);
  std::string text = fmt::format("{} of {} in total {} {} of it:\n", Plural(main.blocks, "block"),
                                 Bytes(main.block_bytes), main.blocks == 1 ? "pins" : "pin",
                                 Bytes(main.pinned_bytes));
  for (size_t i = 0; i < groups.size() && i < kHoldersShown; ++i) {
    OomHolder pin;
    pin.stack = groups[i].stack;
    pin.forward_stack = groups[i].forward_stack;
    pin.bytes = groups[i].pinned_bytes;
    pin.count = groups[i].blocks;
    text += HolderLine(pin, examination, width);
  }
  return text;
}

// What the optimizer allocates in its first step, and how that is known.
std::string StateWords(const analysis::StillToCome& coming) {
  const analysis::Optimizer& optimizer = coming.optimizer;
  const std::string state = Bytes(coming.most_optimizer_bytes);
  if (optimizer.name.empty()) return fmt::format(", and {} of state with Adam", state);
  const std::string name = optimizer.place.empty()
                               ? optimizer.name
                               : fmt::format("{} ({})", optimizer.name, optimizer.place);
  if (!optimizer.is_known)
    return fmt::format(", and {} of state if {} keeps as much as Adam", state, name);
  if (coming.most_optimizer_bytes == 0) return "";
  if (coming.optimizer_bytes == coming.most_optimizer_bytes)
    return fmt::format(", and {} of state of {}", state, name);
  if (coming.optimizer_bytes == 0)
    return fmt::format("; {} keeps {} of state with momentum, else none", name, state);
  return fmt::format(", and {} of state of {}, {} with momentum", Bytes(coming.optimizer_bytes),
                     name, state);
}

std::string Holders(const OomReport& report, const Examination& examination, size_t width) {
  if (report.verdict == OomVerdict::kFragmentation && !report.pins.empty()) {
    return PinLines(report, examination, width);
  }
  std::string text = CategoriesLine(report);
  for (size_t i = 0; i < report.holders.size() && i < kHoldersShown; ++i) {
    if (report.holders[i].bytes < report.evidence.live_bytes / kMinHolderFraction) break;
    text += HolderLine(report.holders[i], examination, width);
  }
  if (report.still_to_come) {
    const analysis::StillToCome& coming = *report.still_to_come;
    text += fmt::format("still to come: gradients {}{}{}\n", Bytes(coming.gradient_bytes),
                        coming.observed ? "" : " (if all parameters get one)", StateWords(coming));
  }
  return text;
}

// ---- What to do ---------------------------------------------------------------------------------

std::string_view SufficesText(analysis::Suffices suffices) {
  switch (suffices) {
    case analysis::Suffices::kYes:
      return "";
    case analysis::Suffices::kPerhaps:
      return " (perhaps enough)";
    case analysis::Suffices::kNo:
      break;
  }
  return " (not enough alone)";
}

std::string ActionLine(const char* head, const OomAction& action, bool enough_matters) {
  return fmt::format("{:<4} {:>9}  {}{}\n", head, Bytes(action.effect_bytes),
                     (action.is_estimate ? "~ " : "") + action.what,
                     enough_matters ? SufficesText(action.suffices) : "");
}

std::string Actions(const OomReport& report) {
  std::string text;
  for (size_t i = 0; i < report.actions.size() && i < kActionsShown; ++i) {
    text += ActionLine(i == 0 ? "do" : "", report.actions[i], true);
  }
  for (size_t i = 0; i < report.not_helpful.size() && i < kUselessActionsShown; ++i) {
    text += ActionLine(i == 0 ? "not" : "", report.not_helpful[i], false);
  }
  return text;
}

std::string Findings(const OomReport& report) {
  std::string text;
  for (size_t i = 0; i < report.findings.size() && i < kFindings; ++i)
    text += report.findings[i] + "\n";
  return text;
}

std::string NextStep(const OomReport& report, const std::string& file) {
  switch (report.verdict) {
    case OomVerdict::kFragmentation:
    case OomVerdict::kPrivatePool:
    case OomVerdict::kStreamDeferred:
      return fmt::format("Next: gpumemtrace frag {} --at oom\n", file);
    case OomVerdict::kLeak:
      return fmt::format("Next: gpumemtrace show {} {}\n", file, report.leak_id);
    case OomVerdict::kOutside:
    case OomVerdict::kOtherProcess:
    case OomVerdict::kCap:
      return fmt::format("Next: gpumemtrace ledger {} --at oom\n", file);
    default:
      return fmt::format("Next: gpumemtrace report {} --at oom\n", file);
  }
}

std::string NoOom(const OomReport& report, const std::string& file) {
  std::string text;
  if (report.host_failures > 0) {
    text += fmt::format("{} of pinned host memory failed: the host refused, not a GPU\n",
                        Plural(report.host_failures, "allocation"));
  }
  return text + Findings(report) +
         fmt::format("Next: gpumemtrace {} {}\n", report.evidence.retries > 0 ? "frag" : "report",
                     file);
}

// Returns the first line: "Out of memory (fragmentation): 9.80 GiB are free, ...".
std::string VerdictLine(const OomReport& report, const analysis::Trace& trace) {
  if (report.verdict == OomVerdict::kUnknown) {
    return fmt::format("Unknown whether memory ran out: the recording has no allocations{}",
                       trace.rows.count() > 0 ? ", only what was held before" : "");
  }
  if (report.verdict == OomVerdict::kNone) return "Did not run out of memory" + RetriesText(report);
  return fmt::format("Out of memory ({}): {}", Words(report.verdict), Why(report));
}

}  // namespace

std::string OomText(const OomReport& report, const Examination& examination,
                    analysis::SourceLines& sources, const std::string& file,
                    const Terminal& terminal) {
  const auto width = static_cast<size_t>(std::max(terminal.width, 60));
  std::string text = terminal.Bold(VerdictLine(report, examination.trace())) + "\n";
  if (!IsFailure(report.verdict)) return text + NoOom(report, file);
  text += Moment(report) + "\n" + Expectation(report) + Place(report, examination, sources, width) +
          "\n";
  text += DeviceTable(report);
  text += Holders(report, examination, width) + "\n";
  return text + Actions(report) + Findings(report) + NextStep(report, file);
}

}  // namespace gmt::answers
