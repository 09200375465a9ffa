#include "analysis/show/life.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <tuple>

#include "absl/container/flat_hash_map.h"
#include "analysis/categories/alive_by_category.h"
#include "analysis/examination/layers.h"
#include "analysis/trace/recorded_time.h"

namespace gmt::analysis {
namespace {

constexpr size_t kMaxDistinctSizes = 100'000;
constexpr uint32_t kNoCycle = UINT32_MAX;

// Returns the loop's step that contains birth or death number `step`; must be called in order.
class CycleCursor {
 public:
  explicit CycleCursor(const std::vector<Cycle>& cycles) : cycles_(cycles) {}

  uint32_t Of(Step step) {
    while (next_ < cycles_.size() && cycles_[next_].end < step) ++next_;
    const bool inside = next_ < cycles_.size() && cycles_[next_].begin < step;
    return inside ? static_cast<uint32_t>(next_) : kNoCycle;
  }

 private:
  const std::vector<Cycle>& cycles_;
  size_t next_ = 0;
};

// The same for any step, in any order.
uint32_t CycleOf(const std::vector<Cycle>& cycles, Step step) {
  const auto found =
      std::lower_bound(cycles.begin(), cycles.end(), step,
                       [](const Cycle& cycle, Step wanted) { return cycle.end < wanted; });
  if (found == cycles.end() || found->begin >= step) return kNoCycle;
  return static_cast<uint32_t>(found - cycles.begin());
}

// Maps times to one of `buckets` equal parts of [begin, end].
class Timeline {
 public:
  Timeline(int64_t begin_ns, int64_t end_ns, size_t buckets)
      : begin_ns_(begin_ns),
        buckets_(std::max<size_t>(buckets, 1)),
        width_ns_(Between(begin_ns, end_ns) / buckets_ + 1) {}

  size_t BucketOf(int64_t t_ns) const {
    return std::min<uint64_t>(Between(begin_ns_, t_ns) / width_ns_, buckets_ - 1);
  }
  size_t buckets() const { return buckets_; }

 private:
  const int64_t begin_ns_;
  const size_t buckets_;
  const uint64_t width_ns_;
};

class ValueCounts {
 public:
  void Add(uint64_t value, uint64_t bytes) {
    if (last_ >= values_.size() || values_[last_].value != value) {
      const auto [it, is_new] = index_.try_emplace(value, values_.size());
      if (is_new) values_.push_back({value, 0, 0});
      last_ = it->second;
    }
    ++values_[last_].count;
    values_[last_].bytes += bytes;
  }
  std::vector<LifeValue> Take() {
    std::sort(values_.begin(), values_.end(), [](const LifeValue& a, const LifeValue& b) {
      return std::tie(b.count, a.value) < std::tie(a.count, b.value);
    });
    return std::move(values_);
  }

 private:
  absl::flat_hash_map<uint64_t, size_t> index_;
  std::vector<LifeValue> values_;
  size_t last_ = 0;  // most rows repeat the previous value
};

std::vector<LifeValue> MostBytesFirst(ValueCounts counts) {
  std::vector<LifeValue> values = counts.Take();
  std::stable_sort(values.begin(), values.end(),
                   [](const LifeValue& a, const LifeValue& b) { return a.bytes > b.bytes; });
  return values;
}

class LifeBuilder {
 public:
  LifeBuilder(const Examination& examination, const Categories& categories,
              const Selection& selection, size_t buckets)
      : examination_(examination),
        trace_(examination.trace()),
        rows_(trace_.rows),
        categories_(categories),
        selection_(selection),
        cycles_(examination.cycles().cycles),
        begin_ns_(trace_.steps.empty() ? 0 : std::min<int64_t>(trace_.steps[0].t_ns, 0)),
        timeline_(begin_ns_, trace_.end_t_ns, buckets) {}

  Life Build() {
    life_.begin_t_ns = begin_ns_;
    life_.end_t_ns = trace_.end_t_ns;
    life_.cycles.resize(cycles_.size());
    life_.most_bytes.resize(timeline_.buckets());
    Walk();
    for (RowId row = 0; row < rows_.count(); ++row) {
      if (selection_.Counts(row)) AddRow(row);
    }
    Finish();
    return std::move(life_);
  }

 private:
  // ---- Amounts over time

  struct PartState {
    LifePart out;
    uint64_t live = 0;
  };

  void Walk() {
    for (RowId row = 0; row < rows_.count(); ++row) {
      if (rows_.birth[row] == 0 && selection_.Counts(row)) Move(row, false);
    }
    NotePeak(0);
    life_.most_bytes[0] = live_;
    CycleCursor cursor(cycles_);
    for (Step step = 1; step <= trace_.last_step(); ++step) {
      const StepRecord record = trace_.steps[step - 1];
      EnterCycle(cursor.Of(step));
      EnterBucket(timeline_.BucketOf(record.t_ns));
      if (record.row == kNoRow || !selection_.Counts(record.row)) continue;
      Move(record.row, record.is_death);
      Count(record);
      NotePeak(step);
    }
    EnterBucket(timeline_.buckets() - 1);
  }

  void Move(RowId row, bool is_death) {
    const uint64_t bytes = rows_.size[row];
    PartState& part = PartOf(row);
    is_death ? part.live -= bytes : part.live += bytes;
    is_death ? live_ -= bytes : live_ += bytes;
    is_death ? --live_count_ : ++live_count_;
    part.out.peak_bytes = std::max(part.out.peak_bytes, part.live);
  }

  PartState& PartOf(RowId row) {
    const std::pair<int32_t, uint32_t> key{rows_.device[row], rows_.heap[row]};
    if (last_part_ == nullptr || key != last_key_) {
      last_key_ = key;
      last_part_ = &parts_[key];
    }
    return *last_part_;
  }

  void Count(const StepRecord record) {
    if (!record.is_death) {
      if (!life_.first_t_ns) life_.first_t_ns = record.t_ns;
      life_.last_t_ns = record.t_ns;
    }
    life_.most_bytes[bucket_] = std::max(life_.most_bytes[bucket_], live_);
    if (cycle_ == kNoCycle) return;
    LifeCycle& cycle = life_.cycles[cycle_];
    ++(record.is_death ? cycle.frees : cycle.births);
    cycle.peak_bytes = std::max(cycle.peak_bytes, live_);
  }

  void NotePeak(Step step) {
    if (live_ <= life_.peak_bytes) return;
    life_.peak_bytes = live_;
    life_.peak_count = live_count_;
    life_.peak_step = step;
  }

  // A step, or a part of the time, begins with what is held at that moment.
  void EnterCycle(uint32_t cycle) {
    if (cycle == cycle_) return;
    cycle_ = cycle;
    if (cycle != kNoCycle) life_.cycles[cycle].peak_bytes = live_;
  }
  void EnterBucket(size_t bucket) {
    for (; bucket_ < bucket; ++bucket_) life_.most_bytes[bucket_ + 1] = live_;
  }

  // ---- Rows

  void AddRow(RowId row) {
    const uint64_t size = rows_.size[row];
    LifePart& part = PartOf(row).out;
    if (rows_.birth[row] == 0) {
      ++life_.from_before, ++part.from_before;
    } else {
      ++life_.allocations, ++part.allocations;
      life_.allocated_bytes += size;
    }
    if (rows_.death[row] == kNever) {
      ++life_.held, ++part.held;
      life_.held_bytes += size;
      part.held_bytes += size;
    } else {
      ++life_.frees, ++part.frees;
      AddLifetime(row);
    }
    AddSize(size);
    AddValues(row, size);
    if (!rows_.HeldAfter(row, life_.peak_step)) return;
    AddCategory(row, size);
    AddAlive(row, size);
    stacks_.Add(rows_.stack[row], size);
  }

  void AddLifetime(RowId row) {
    if (rows_.birth[row] == 0) return;  // its birth time is unknown
    lifetimes_.push_back(Between(trace_.TimeOf(rows_.birth[row]), trace_.TimeOf(rows_.death[row])));
    const uint32_t born = CycleOf(cycles_, rows_.birth[row]);
    const uint32_t died = CycleOf(cycles_, rows_.death[row]);
    if (born == kNoCycle || died == kNoCycle) return;
    Lifetimes& lifetimes = life_.lifetimes;
    ++(born == died       ? lifetimes.same_step
       : born + 1 == died ? lifetimes.next_step
                          : lifetimes.later_step);
  }

  void AddSize(uint64_t size) {
    LifeSizes& sizes = life_.sizes;
    const bool is_first = sizes_.empty();
    sizes.smallest = is_first ? size : std::min(sizes.smallest, size);
    sizes.biggest = is_first ? size : std::max(sizes.biggest, size);
    const auto found = sizes_.find(size);
    if (found != sizes_.end()) {
      ++found->second;
    } else if (sizes_.size() < kMaxDistinctSizes) {
      sizes_.emplace(size, 1);
    } else {
      sizes.more = true;
    }
  }

  void AddValues(RowId row, uint64_t size) {
    if ((rows_.flags[row] & kRowHasThread) != 0) threads_.Add(rows_.thread[row], size);
    if ((rows_.flags[row] & kRowHasStream) != 0) streams_.Add(rows_.stream[row], size);
    if (rows_.forward_stack[row] != 0) forward_stacks_.Add(rows_.forward_stack[row], size);
    if (rows_.FreeStack(row) != 0) free_stacks_.Add(rows_.FreeStack(row), size);
  }

  void AddCategory(RowId row, uint64_t size) {
    const Categories::Assignment& of = categories_.Of(row);
    CategoryState& category = by_category_[static_cast<size_t>(of.category)];
    category.bytes += size;
    ++category.count;
    uint64_t& of_reason = category.by_reason[{of.reason, of.confidence}];
    of_reason += size;
    if (of_reason < category.most) return;
    category.most = of_reason;
    category.confidence = of.confidence;
    category.row = row;
  }

  void AddAlive(RowId row, uint64_t size) {
    if (!alive_by_)
      alive_by_.emplace(trace_, categories_, life_.peak_step, RolesAt::When::kNowOrNext);
    alive_by_->AddTo(alive_, row, size);
  }

  // ---- Results

  void Finish() {
    life_.alive = alive_.Sorted(examination_.stacks());
    life_.peak_t_ns = trace_.TimeOf(life_.peak_step);
    FinishParts();
    FinishLifetimes();
    FinishSizes();
    FinishCategories();
    AddAtPeaks();
    life_.threads = threads_.Take();
    life_.streams = streams_.Take();
    life_.stacks = MostBytesFirst(std::move(stacks_));
    life_.forward_stacks = forward_stacks_.Take();
    life_.free_stacks = free_stacks_.Take();
  }

  void FinishParts() {
    for (auto& [key, part] : parts_) {
      part.out.device = key.first;
      part.out.heap = key.second;
      life_.parts.push_back(part.out);
    }
    std::stable_sort(
        life_.parts.begin(), life_.parts.end(),
        [](const LifePart& a, const LifePart& b) { return a.peak_bytes > b.peak_bytes; });
  }

  void FinishLifetimes() {
    Lifetimes& out = life_.lifetimes;
    out.count = lifetimes_.size();
    if (lifetimes_.empty()) return;
    const auto quantile = [&](size_t percent) {
      const auto at =
          lifetimes_.begin() + static_cast<std::ptrdiff_t>((lifetimes_.size() - 1) * percent / 100);
      std::nth_element(lifetimes_.begin(), at, lifetimes_.end());
      return *at;
    };
    out.median_ns = quantile(50);
    out.p90_ns = quantile(90);
    out.longest_ns = quantile(100);
  }

  void FinishSizes() {
    life_.sizes.distinct = sizes_.size();
    for (const auto& [size, count] : sizes_) {
      LifeSizes& sizes = life_.sizes;
      if (std::tie(count, size) > std::tie(sizes.most_common_count, sizes.most_common)) {
        sizes.most_common = size;
        sizes.most_common_count = count;
      }
    }
  }

  void FinishCategories() {
    for (size_t i = 0; i < kCategories; ++i) {
      const CategoryState& state = by_category_[i];
      if (state.count == 0) continue;
      life_.categories.push_back({static_cast<Category>(i), state.confidence,
                                  categories_.Reason(state.row), state.bytes, state.count});
    }
    std::stable_sort(
        life_.categories.begin(), life_.categories.end(),
        [](const LifeCategory& a, const LifeCategory& b) { return a.bytes > b.bytes; });
  }

  void AddAtPeaks() {
    for (const auto& [device, totals] : examination_.replay().devices()) {
      AddAtPeak(device, totals.allocated.peak_step);
    }
    life_.device_stacks = MostBytesFirst(std::move(device_stacks_));
    std::stable_sort(life_.at_peaks.begin(), life_.at_peaks.end(),
                     [](const LifeAtPeak& a, const LifeAtPeak& b) { return a.bytes > b.bytes; });
  }

  void AddAtPeak(int32_t device, Step step) {
    uint64_t device_bytes = 0, bytes = 0;
    std::map<uint32_t, LifeAtPeak> by_heap;
    ValueCounts stacks;
    for (const OwnBytes& own : OwnBytesAfter(trace_, step)) {
      if (rows_.device[own.row] != device || own.bytes == 0) continue;
      device_bytes += own.bytes;
      if (!selection_.Has(own.row)) continue;
      LifeAtPeak& at = by_heap[rows_.heap[own.row]];
      at.bytes += own.bytes;
      ++at.count;
      bytes += own.bytes;
      stacks.Add(rows_.stack[own.row], own.bytes);
    }
    if (bytes > most_at_peak_) {
      most_at_peak_ = bytes;
      device_stacks_ = std::move(stacks);
    }
    for (auto& [heap, at] : by_heap) {
      at.device = device;
      at.heap = heap;
      at.t_ns = trace_.TimeOf(step);
      at.device_bytes = device_bytes;
      life_.at_peaks.push_back(at);
    }
  }

  struct CategoryState {
    uint64_t bytes = 0, count = 0, most = 0;
    Confidence confidence = Confidence::kLow;
    RowId row = 0;
    std::map<std::pair<uint16_t, Confidence>, uint64_t> by_reason;
  };

  const Examination& examination_;
  const Trace& trace_;
  const Rows& rows_;
  const Categories& categories_;
  const Selection& selection_;
  const std::vector<Cycle>& cycles_;
  const int64_t begin_ns_;
  const Timeline timeline_;
  Life life_;
  uint64_t live_ = 0, live_count_ = 0;
  size_t bucket_ = 0;
  uint32_t cycle_ = kNoCycle;
  std::map<std::pair<int32_t, uint32_t>, PartState> parts_;
  std::pair<int32_t, uint32_t> last_key_;
  PartState* last_part_ = nullptr;
  std::vector<uint64_t> lifetimes_;
  absl::flat_hash_map<uint64_t, uint64_t> sizes_;
  ValueCounts threads_, streams_, stacks_, device_stacks_, forward_stacks_, free_stacks_;
  std::optional<AliveByCategory> alive_by_;
  AliveSums alive_;
  uint64_t most_at_peak_ = 0;
  std::array<CategoryState, kCategories> by_category_;
};

}  // namespace

Life LifeOf(const Examination& examination, const Categories& categories,
            const Selection& selection, size_t buckets) {
  return LifeBuilder(examination, categories, selection, buckets).Build();
}

}  // namespace gmt::analysis
