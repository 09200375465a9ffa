#include "analysis/examination/failures.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"

namespace gmt::analysis {
namespace {

// A process that makes less than this fraction (1/20) of its allocations after a failure is
// terminating.
constexpr uint64_t kWindingUp = 20;

using Asker = std::pair<int32_t, uint32_t>;  // device, thread

// One call into a framework's allocator; driver refusals within it are not failures by themselves.
struct Entry {
  int64_t begin_ns = 0, end_ns = 0;
};

absl::flat_hash_map<Asker, std::vector<Entry>> EntriesOf(const Examination& examination) {
  absl::flat_hash_map<Asker, std::vector<Entry>> entries;
  for (const AllocatorAction& action : examination.allocator_actions()) {
    const auto duration = static_cast<int64_t>(action.duration_ns);
    Entry entry{action.t_ns, action.t_ns + duration};
    if (action.kind == AllocatorAction::kOom) entry = {action.t_ns - duration, action.t_ns};
    if (action.kind == AllocatorAction::kOom || action.kind == AllocatorAction::kRetry) {
      entries[{action.device, action.thread}].push_back(entry);
    }
  }
  for (auto& [asker, of] : entries) {
    std::sort(of.begin(), of.end(),
              [](const Entry& a, const Entry& b) { return a.begin_ns < b.begin_ns; });
  }
  return entries;
}

class FailureFinder {
 public:
  explicit FailureFinder(const Examination& examination)
      : examination_(examination), trace_(examination.trace()) {}

  Failures Find() && {
    const std::vector<bool> recovered = FindRecovered();
    for (size_t i = 0; i < trace_.failed.size(); ++i) {
      const FailedAllocation& failed = trace_.failed[i];
      if (failed.heap == kHostHeap || failed.device == kHostDevice) {
        ++found_.of_host;
      } else if (recovered[i]) {
        ++found_.recovered;
      } else {
        ++found_.count;
        found_.counted.push_back(i);
        found_.decisive = i;
      }
    }
    if (found_.decisive) found_.was_fatal = WasFatal(trace_.failed[*found_.decisive]);
    return found_;
  }

 private:
  std::vector<bool> FindRecovered() const {
    const std::vector<FailedAllocation>& failed = trace_.failed;
    std::vector<bool> recovered(failed.size(), false);
    const auto of_driver = [](const FailedAllocation& f) { return f.heap == kDriverHeap; };
    if (std::none_of(failed.begin(), failed.end(), of_driver)) return recovered;
    const auto entries = EntriesOf(examination_);
    // Walks backwards, so that each thread's next successful request is known.
    absl::flat_hash_map<Asker, uint64_t> next;  // its size
    Step step = trace_.last_step();
    for (size_t i = failed.size(); i-- > 0;) {
      for (; step > failed[i].step; --step) NoteBirth(step, next);
      if (!of_driver(failed[i])) continue;
      const Asker asker{failed[i].device, failed[i].thread};
      const auto found = next.find(asker);
      const bool asked_again = found != next.end() && found->second >= failed[i].size;
      recovered[i] = asked_again || IsOfAnEntry(failed[i], entries);
    }
    return recovered;
  }

  void NoteBirth(Step step, absl::flat_hash_map<Asker, uint64_t>& next) const {
    const StepRecord record = trace_.steps[step - 1];
    if (record.row == kNoRow || record.is_death) return;
    const Rows& rows = trace_.rows;
    if (rows.heap[record.row] != kDriverHeap) return;
    next[{rows.device[record.row], rows.thread[record.row]}] = rows.size[record.row];
  }

  static bool IsOfAnEntry(const FailedAllocation& failed,
                          const absl::flat_hash_map<Asker, std::vector<Entry>>& entries) {
    const auto found = entries.find(Asker{failed.device, failed.thread});
    if (found == entries.end()) return false;
    // Ordered by beginning. Of overlapping calls, the last one before the failure contains it.
    const auto behind =
        std::partition_point(found->second.begin(), found->second.end(),
                             [&](const Entry& entry) { return entry.begin_ns <= failed.t_ns; });
    for (auto entry = behind; entry != found->second.begin() && behind - entry < 4;) {
      if (failed.t_ns <= (--entry)->end_ns) return true;
    }
    return false;
  }

  bool WasFatal(const FailedAllocation& failed) const {
    uint64_t before = 0, after = 0;
    for (Step step = 1; step <= trace_.last_step(); ++step) {
      const StepRecord record = trace_.steps[step - 1];
      if (record.row == kNoRow || record.is_death) continue;
      if (trace_.rows.device[record.row] != failed.device) continue;
      ++(step <= failed.step ? before : after);
    }
    for (const Cycle& cycle : examination_.cycles().cycles) {
      if (cycle.begin_t_ns > failed.t_ns) return false;
    }
    return after * kWindingUp <= before;
  }

  const Examination& examination_;
  const Trace& trace_;
  Failures found_;
};

}  // namespace

Failures FindFailures(const Examination& examination) { return FailureFinder(examination).Find(); }

}  // namespace gmt::analysis
