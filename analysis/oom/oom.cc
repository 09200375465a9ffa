#include "analysis/oom/oom.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "analysis/categories/alive_by_category.h"
#include "analysis/examination/failures.h"
#include "analysis/examination/layers.h"
#include "analysis/oom/actions.h"
#include "analysis/oom/evidence.h"
#include "analysis/oom/verdict.h"
#include "format/event.h"

namespace gmt::analysis {
namespace {

constexpr size_t kHolders = 8;
constexpr uint64_t kSmallestSquare = 1024;  // N; smaller squares occur by chance

// Returns N if the size is that of N x N numbers of 2 or 4 bytes.
std::optional<uint64_t> SquareOf(uint64_t bytes) {
  for (const uint64_t width : {uint64_t{4}, uint64_t{2}}) {
    const uint64_t numbers = bytes / width;
    const auto root = static_cast<uint64_t>(std::llround(std::sqrt(static_cast<double>(numbers))));
    if (bytes % width == 0 && root >= kSmallestSquare && root < (uint64_t{1} << 31) &&
        root * root == numbers) {
      return root;
    }
  }
  return std::nullopt;
}

bool IsOpenAt(const Range& range, int64_t t_ns) {
  return range.begin_t_ns <= t_ns && t_ns <= range.end_t_ns;
}

// Returns whether the program asked for memory while it was recorded.
bool HasRequests(const Trace& trace) {
  const AscendingColumn& births = trace.rows.birth;
  return !trace.failed.empty() ||
         std::any_of(births.begin(), births.end(), [](Step birth) { return birth > 0; });
}

class OomExplainer {
 public:
  OomExplainer(const Examination& examination, const Categories& categories,
               const LeakReport& leaks)
      : examination_(examination),
        trace_(examination.trace()),
        categories_(categories),
        leaks_(leaks) {}

  OomReport Explain() && {
    const Failures failures = FindFailures(examination_);
    report_.failures = failures.count;
    report_.host_failures = failures.of_host;
    if (!failures.decisive) {
      NoteRetries();
      report_.verdict = HasRequests(trace_) ? OomVerdict::kNone : OomVerdict::kUnknown;
      const bool is_whole = trace_.unknowns.gaps == 0;
      report_.confidence = is_whole ? Confidence::kHigh : Confidence::kLow;
      if (!is_whole) report_.findings.push_back("events are missing: a failure may be among them");
      return std::move(report_);
    }
    const FailedAllocation& failed = trace_.failed[*failures.decisive];
    report_.was_fatal = failures.was_fatal;
    Describe(failed);
    OomFacts facts = FactsOf(examination_, failed);
    const LeakAtFailure leak = LargestLeak(trace_, leaks_, failed);
    AddWhatWasLive(failed);
    if (!report_.phase && leaf_bytes_ > 0) {
      report_.phase = Phase::kForward;
      if (!report_.cycle) report_.cycle = 1;
    }
    const std::vector<Cycle> earlier = StepsBefore(examination_, failed);
    AddNeeds();
    if (facts.by_framework) {
      facts.evidence.expected = ExpectPeak(examination_, categories_, failed, earlier, needs_);
    }
    report_.evidence = facts.evidence;
    report_.evidence.leaked_bytes = leak.bytes;
    if (leak.suspect != nullptr) report_.leak_id = leak.suspect->id;
    OomDecision decision = Decide(facts, leak);
    report_.verdict = decision.verdict;
    report_.confidence = decision.confidence;
    report_.causes = std::move(decision.causes);
    report_.pins = facts.fragmentation.pins;
    for (const LedgerRow& row : facts.ledger.rows) {
      if (row.group != LedgerGroup::kReserved && row.bytes > 0) report_.outside.push_back(row);
    }
    AddActions(examination_, facts, leak, report_);
    AddFindings(facts);
    return std::move(report_);
  }

 private:
  void NoteRetries() {
    for (const AllocatorAction& action : examination_.allocator_actions()) {
      if (action.kind != AllocatorAction::kRetry || !action.succeeded) continue;
      if (report_.evidence.retries++ == 0) {
        report_.evidence.first_retry_t_ns = action.t_ns;
        report_.device = action.device;
      }
      report_.evidence.retry_ns += action.duration_ns;
    }
  }

  void Describe(const FailedAllocation& failed) {
    report_.device = failed.device;
    report_.heap = trace_.heaps[failed.heap];
    report_.requested_bytes = failed.size;
    report_.step = failed.step;
    report_.t_ns = failed.t_ns;
    report_.stack = failed.stack;
    report_.forward_stack = failed.forward_stack;
    const format::Definitions& definitions = examination_.definitions();
    report_.dtype = definitions.string(failed.dtype);
    report_.shape = definitions.string(failed.shape);
    const std::optional<uint64_t> square = SquareOf(failed.size);
    // Beside a framework, libraries ask the driver for workspaces rather than for tensors.
    const bool may_be_one = failed.heap > kHostHeap || trace_.heaps.size() <= kHostHeap + 1;
    const bool is_one = square && may_be_one &&
                        (failed.shape == 0 ||
                         absl::StrContains(report_.shape, absl::StrCat(*square, ", ", *square)));
    if (is_one) report_.square = square;
    FindPhase(failed);
  }

  // Determined by the ranges that are open at the failure and the number of steps that ended before
  // it.
  void FindPhase(const FailedAllocation& failed) {
    uint64_t optimizer = 0, backward = 0;
    bool in_optimizer = false, in_backward = failed.forward_stack != 0;
    for (const Range& range : trace_.ranges) {
      if (range.begin_t_ns > failed.t_ns) continue;
      const std::string kind = KindOfRange(range, examination_.definitions());
      const bool is_open = IsOpenAt(range, failed.t_ns);
      if (kind == "backward") (is_open ? in_backward = true, 0 : ++backward);
      if (kind == "backward" && !is_open) backward_end_ = std::max(backward_end_, range.end);
      if (kind == "Optimizer.step") (is_open ? in_optimizer = true, 0 : ++optimizer);
    }
    const std::vector<Cycle>& cycles = examination_.cycles().cycles;
    const bool trains = optimizer + backward > 0 || in_optimizer || in_backward;
    if (!cycles.empty()) {
      report_.cycle = 1;
      for (const Cycle& cycle : cycles) {
        if (cycle.end_t_ns < failed.t_ns) ++*report_.cycle;
      }
    } else if (trains) {
      report_.cycle = 1 + (optimizer > 0 || in_optimizer ? optimizer : backward);
    }
    optimizer_steps_ = optimizer;
    if (in_backward) {
      report_.phase = Phase::kBackward;
    } else if (in_optimizer && !IsOfAModule(failed.stack)) {  // not the forward pass of a closure
      report_.phase = Phase::kOptimizer;
    } else if (trains || IsOfAModule(failed.stack)) {
      report_.phase = Phase::kForward;
      if (!report_.cycle) report_.cycle = 1;
    }
  }
  bool IsOfAModule(uint32_t stack) const {
    const std::vector<FrameText>& frames = examination_.stacks().Frames(stack);
    return std::any_of(frames.begin(), frames.end(), IsModuleCall);
  }

  void AddWhatWasLive(const FailedAllocation& failed) {
    report_.categories = CategoriesAt(examination_, categories_, report_.device, failed.step);
    absl::flat_hash_map<uint64_t, size_t> index;
    const Rows& rows = trace_.rows;
    const AliveByCategory alive(trace_, categories_, failed.step);
    std::vector<AliveSums> sums;  // one per holder
    for (const OwnBytes& own : OwnBytesAfter(trace_, failed.step)) {
      const bool is_cache = (rows.flags[own.row] & kRowHoldsBlocks) != 0;
      if (rows.device[own.row] != report_.device || own.bytes == 0 || is_cache) continue;
      const uint64_t key = uint64_t{rows.forward_stack[own.row]} << 32 | rows.stack[own.row];
      const auto [known, is_new] = index.try_emplace(key, report_.holders.size());
      if (is_new) {
        OomHolder holder;
        holder.stack = rows.stack[own.row];
        holder.forward_stack = rows.forward_stack[own.row];
        holder.each_bytes = own.bytes;
        holder.category = categories_.Of(own.row).category;
        report_.holders.push_back(holder);
        sums.emplace_back();
      }
      OomHolder& holder = report_.holders[known->second];
      holder.bytes += own.bytes;
      ++holder.count;
      if (holder.each_bytes != own.bytes) holder.each_bytes = 0;
      alive.AddTo(sums[known->second], own.row, own.bytes);
      CountTraining(own, alive.roles().Of(own.row).roles);
    }
    for (size_t i = 0; i < sums.size(); ++i)
      report_.holders[i].alive = sums[i].Sorted(examination_.stacks());
    AddCheckpointed();
    std::stable_sort(report_.holders.begin(), report_.holders.end(),
                     [](const OomHolder& a, const OomHolder& b) { return a.bytes > b.bytes; });
    if (report_.holders.size() > kHolders) report_.holders.resize(kHolders);
  }

  // The input of each layer remains; it is at most the smallest that a line of the layer keeps.
  void AddCheckpointed() {
    uint64_t spared = 0, input = 0, layers = 0;
    for (const OomHolder& holder : report_.holders) {
      if (holder.category != Category::kActivations || holder.count < 2) continue;
      const uint64_t each = holder.bytes / holder.count;
      spared += holder.bytes - each;
      if (each > input / 2 && (input == 0 || each < input)) input = each;
      layers = std::max(layers, holder.count);
    }
    report_.checkpoint_bytes = spared - std::min(spared, input * layers);
  }

  void CountTraining(const OwnBytes& own, uint32_t roles) {
    const bool is_leaf = (roles & format::kRoleExpectsGradient) != 0;
    if (is_leaf) leaf_bytes_ += own.bytes;
    if (categories_.Of(own.row).category == Category::kActivations)
      largest_activation_ = std::max(largest_activation_, own.bytes);
    if (categories_.Of(own.row).category != Category::kParameters) return;
    ++parameters_;
    parameter_bytes_ += own.bytes;
    if (!is_leaf) return;
    parameters_reached_ = parameters_;
    reached_bytes_ = parameter_bytes_;
  }

  // Before an optimizer's first step, gradients and state are still to come unless they exist
  // already.
  void AddNeeds() {
    const bool is_first = report_.cycle == 1 || Accumulates();
    if (optimizer_steps_ > 0 || !is_first || !report_.phase) return;
    uint64_t parameters = 0, gradients = 0, state = 0;
    for (const CategoryUse& use : report_.categories) {
      if (use.category == Category::kParameters) parameters = use.bytes;
      if (use.category == Category::kGradients) gradients = use.bytes;
      if (use.category == Category::kOptimizerState) state = use.bytes;
      if (use.category == Category::kWorkspaces) needs_.workspace_bytes = use.bytes;
    }
    const bool in_optimizer = report_.phase == Phase::kOptimizer;
    const Optimizer optimizer = FindOptimizer(examination_, report_.t_ns);
    // What an optimizer whose state exists already allocates in its step is temporary.
    if (in_optimizer && optimizer.makes_state_at_once) return;
    const bool has_state = state > 0 && !optimizer.makes_state_at_once;
    if (parameters == 0 || (has_state && !in_optimizer) || parameters > UINT64_MAX / 4) return;
    const bool observed = leaf_bytes_ > 0 && report_.phase != Phase::kForward;
    const uint64_t trained =
        observed ? leaf_bytes_
                 : static_cast<uint64_t>(TrainedShare() * static_cast<double>(parameters));
    needs_.parameter_bytes = parameters;
    needs_.trained_bytes = trained;
    // An optimizer that allocates in its first step keeps state.
    const uint64_t tensors = in_optimizer ? optimizer.most_state : optimizer.least_state;
    needs_.optimizer_bytes = tensors * trained;
    // Master weights of half-precision parameters are more than the class is known to keep.
    if (state > needs_.optimizer_bytes)
      needs_.optimizer_bytes = state + (in_optimizer ? report_.requested_bytes : 0);
    needs_.more_optimizer_bytes = (optimizer.most_state - tensors) * trained;
    needs_.made_bytes = state;
    needs_.forward_share = ForwardShare();
    // The gradients of an operator's output and of its input, of the size of what was saved; and
    // the workspaces of the backward pass, which runs in a thread of its own.
    if (report_.phase == Phase::kForward && gradients == 0)
      needs_.backward_bytes = needs_.workspace_bytes + 2 * largest_activation_;
    if (in_optimizer) return;
    StillToCome coming;
    coming.observed = observed;
    coming.gradient_bytes = trained - std::min(trained, gradients);
    coming.optimizer = optimizer;
    coming.optimizer_bytes = needs_.optimizer_bytes - std::min(needs_.optimizer_bytes, state);
    coming.most_optimizer_bytes = coming.optimizer_bytes + needs_.more_optimizer_bytes;
    coming.floor_bytes = parameters + trained + needs_.optimizer_bytes;
    report_.still_to_come = coming;
  }
  // Whether the gradients of earlier backward passes are still held: these were micro-batches and
  // not steps.
  bool Accumulates() const {
    if (backward_end_ == 0) return false;
    for (RowId row : HeldAfter(trace_, backward_end_)) {
      const bool is_gradient = categories_.Of(row).category == Category::kGradients;
      if (is_gradient && trace_.rows.device[row] == report_.device &&
          trace_.rows.HeldAfter(row, report_.step))
        return true;
    }
    return false;
  }
  // In the forward pass the graph has not reached all parameters yet. Of the others, the same share
  // is assumed to be trained as of those that it has passed: adapters in a frozen model are small.
  double TrainedShare() const {
    if (reached_bytes_ == 0) return 1;
    return std::min(1.0, static_cast<double>(leaf_bytes_) / static_cast<double>(reached_bytes_));
  }
  // Models are created in the order in which they are used. So the forward pass has advanced to the
  // last parameter that its graph has reached.
  double ForwardShare() const {
    if (report_.phase != Phase::kForward || parameters_reached_ == 0) return 1;
    return static_cast<double>(parameters_reached_) / static_cast<double>(parameters_);
  }

  void AddFindings(const OomFacts& facts) {
    const OomEvidence& evidence = report_.evidence;
    std::vector<std::string>& findings = report_.findings;
    if (evidence.split.awaiting_stream > 0 && evidence.captures == 0 && facts.is_pytorch) {
      findings.push_back(
          "freed blocks were awaiting other streams at the failure; PyTorch waits for them before "
          "it "
          "fails");
    }
    if (evidence.captures > 0) {
      findings.push_back(
          "a CUDA graph was being captured: PyTorch does not retry or wait for streams then");
    }
    if (evidence.not_apart_bytes + evidence.grown_bytes > 0 &&
        report_.verdict == OomVerdict::kOtherProcess) {
      findings.push_back(
          "the source does not distinguish processes: nvidia-smi shows whose memory that is");
    }
    if (report_.failures > 1) {
      findings.push_back(
          absl::StrCat(report_.failures, " requests failed; this is about the last"));
    }
    if (trace_.unknowns.gaps > 0) {
      findings.push_back("events are missing: live memory may be more or less than shown here");
    }
  }

  const Examination& examination_;
  const Trace& trace_;
  const Categories& categories_;
  const LeakReport& leaks_;
  OomReport report_;
  uint64_t optimizer_steps_ = 0;  // that ended before the failure
  Step backward_end_ = 0;         // where the last backward pass before it ended
  FirstStepNeeds needs_;
  uint64_t largest_activation_ = 0;
  uint64_t leaf_bytes_ = 0;  // parameters reached by an autograd graph
  // Number of parameters, and number of those up to the last one that a graph has reached; and
  // their bytes.
  uint64_t parameters_ = 0, parameters_reached_ = 0;
  uint64_t parameter_bytes_ = 0, reached_bytes_ = 0;
};

}  // namespace

std::string_view NameOf(OomVerdict verdict) {
  static constexpr std::array<std::string_view, kOomVerdicts> kNames = {
      "none",           "unknown", "capacity",      "fragmentation",   "leak",        "outside",
      "single_request", "cap",     "other_process", "stream_deferred", "private_pool"};
  return kNames[static_cast<size_t>(verdict)];
}

OomReport ExplainOom(const Examination& examination, const Categories& categories,
                     const LeakReport& leaks) {
  return OomExplainer(examination, categories, leaks).Explain();
}

}  // namespace gmt::analysis
