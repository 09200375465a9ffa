#include "analysis/categories/step_profile.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "analysis/categories/power_fit.h"
#include "analysis/median.h"

namespace gmt::analysis {
namespace {

constexpr size_t kMinSteps = 3;
constexpr double kVaries = 0.1;      // minimum difference of inputs, relative to the largest
constexpr double kTolerance = 0.05;  // of a fit

struct OneStep {
  uint64_t least = 0, most = 0, inputs = 0;
  Step least_at = 0, most_at = 0;
};

uint64_t ToBytes(double bytes) {
  return bytes <= 0      ? 0
         : bytes >= 9e18 ? uint64_t{9'000'000'000'000'000'000}
                         : static_cast<uint64_t>(std::llround(bytes));
}

Growth GrowthOf(const PowerFit::Line& line) {
  constexpr Growth kGrowths[] = {Growth::kConstant, Growth::kLinear, Growth::kQuadratic};
  return line.power < 0 ? Growth::kUnclear : kGrowths[line.power];
}

class ProfileMaker {
 public:
  ProfileMaker(const Examination& examination, const Categories& categories, int32_t device)
      : examination_(examination), trace_(examination.trace()), categories_(categories) {
    profile_.device = device;
  }

  std::optional<StepProfile> Make() {
    const std::vector<Cycle>& cycles = examination_.cycles().cycles;
    if (cycles.size() < kMinSteps) return std::nullopt;
    FindBlocks();
    Step step = 0;
    for (size_t i = 0; i < cycles.size(); ++i) {
      for (; step < cycles[i].begin; ++step) Apply(step + 1);
      OneStep one{live_, live_, 0, step, step};
      for (; step < cycles[i].end; ++step) {
        Apply(step + 1);
        if (live_ < one.least) one.least = live_, one.least_at = step + 1;
        if (live_ > one.most) one.most = live_, one.most_at = step + 1;
        if (i > 0) NoteBirth(step + 1, one);
      }
      if (i > 0) Keep(one);  // the first step includes initialisation
    }
    if (std::all_of(steps_.begin(), steps_.end(), [](const OneStep& s) { return s.most == 0; })) {
      return std::nullopt;
    }
    Summarise();
    return std::move(profile_);
  }

 private:
  // Uses blocks if the device has any, otherwise all its memory.
  void FindBlocks() {
    const Rows& rows = trace_.rows;
    for (RowId row = 0; row < rows.count() && !has_blocks_; ++row) {
      has_blocks_ = rows.device[row] == profile_.device && rows.IsBlock(row);
    }
    for (RowId row = 0; row < rows.count(); ++row) {
      if (rows.birth[row] == 0 && Counts(row)) live_ += rows.size[row];
    }
  }
  bool Counts(RowId row) const {
    const Rows& rows = trace_.rows;
    return rows.device[row] == profile_.device && !rows.IsRegion(row) &&
           (has_blocks_ ? rows.heap[row] > kHostHeap : rows.heap[row] == kDriverHeap);
  }

  void Apply(Step step) {
    const StepRecord record = trace_.steps[step - 1];
    if (record.row == kNoRow || !Counts(record.row)) return;
    const uint64_t bytes = trace_.rows.size[record.row];
    live_ += record.is_death ? -bytes : bytes;
  }

  void NoteBirth(Step step, OneStep& one) {
    const StepRecord record = trace_.steps[step - 1];
    if (record.row == kNoRow || record.is_death || !Counts(record.row)) return;
    const uint64_t bytes = trace_.rows.size[record.row];
    if (categories_.Of(record.row).category == Category::kInputs) {
      one.inputs += bytes;
    } else {
      allocated_[trace_.rows.stack[record.row]] += static_cast<double>(bytes);
    }
  }

  void Keep(const OneStep& one) {
    const auto x = static_cast<double>(one.inputs);
    inputs_.Add(x);
    for (const auto& [stack, bytes] : allocated_) stacks_[stack].Add(x, bytes);
    allocated_.clear();
    peaks_.Add(x, static_cast<double>(one.most));
    steps_.push_back(one);
  }

  void Summarise() {
    std::vector<uint64_t> floors, peaks;
    for (const OneStep& step : steps_) {
      floors.push_back(step.least);
      peaks.push_back(step.most);
    }
    profile_.steps = steps_.size();
    profile_.floor = UpperMedian(std::move(floors));
    profile_.peak = UpperMedian(std::move(peaks));
    const auto typical = std::min_element(
        steps_.begin(), steps_.end(),
        [&](const OneStep& a, const OneStep& b) { return Distance(a) < Distance(b); });
    profile_.floor_uses = UsesAt(typical->least_at);
    profile_.peak_uses = UsesAt(typical->most_at);
    FitInputs();
  }
  double Distance(const OneStep& step) const {
    return std::abs(static_cast<double>(step.least) - static_cast<double>(profile_.floor)) +
           std::abs(static_cast<double>(step.most) - static_cast<double>(profile_.peak));
  }

  std::vector<CategoryUse> UsesAt(Step step) const {
    CategoryTotals totals(categories_);
    for (const RowId row : HeldAfter(trace_, step)) {
      if (Counts(row)) totals.Add(row, trace_.rows.size[row]);
    }
    return totals.Uses();
  }

  void FitInputs() {
    const auto [least, most] =
        std::minmax_element(steps_.begin(), steps_.end(),
                            [](const OneStep& a, const OneStep& b) { return a.inputs < b.inputs; });
    profile_.inputs_known = least->inputs > 0;
    const auto range = static_cast<double>(most->inputs - least->inputs);
    if (!profile_.inputs_known || range < kVaries * static_cast<double>(most->inputs)) return;
    InputGrowth growth;
    const double average = inputs_.x / inputs_.n;
    growth.least = least->inputs;
    growth.most = most->inputs;
    growth.average = ToBytes(average);
    for (const auto& [stack, fit] : stacks_) AddStack(stack, fit, average, growth);
    std::sort(growth.stacks.begin(), growth.stacks.end(),
              [](const StackGrowth& a, const StackGrowth& b) {
                return std::pair(b.bytes, a.stack) < std::pair(a.bytes, b.stack);
              });
    // If no allocation grows with the copies to the device, they are not the step's inputs: a
    // loader prefetches.
    if (growth.linear_bytes + growth.quadratic_bytes == 0) return;
    const PowerFit::Line peak = peaks_.Best(inputs_, kTolerance);
    growth.peak = GrowthOf(peak);
    if (peak.power > 0) growth.peak_with_twice = ToBytes(peak.At(2 * average));
    profile_.inputs = std::move(growth);
  }

  void AddStack(uint32_t stack, const PowerFit& fit, double average, InputGrowth& growth) const {
    const PowerFit::Line line = fit.Best(inputs_, kTolerance);
    StackGrowth of;
    of.stack = stack;
    of.growth = GrowthOf(line);
    of.bytes = ToBytes(fit.mean(inputs_));
    if (line.power > 0) {
      of.per_input_byte = line.slope * line.power * std::pow(average, line.power - 1);
    }
    switch (of.growth) {
      case Growth::kConstant:
        growth.constant_bytes += of.bytes;
        break;
      case Growth::kLinear:
        growth.linear_bytes += of.bytes;
        break;
      case Growth::kQuadratic:
        growth.quadratic_bytes += of.bytes;
        break;
      case Growth::kUnclear:
        growth.unclear_bytes += of.bytes;
        break;
    }
    growth.stacks.push_back(of);
  }

  const Examination& examination_;
  const Trace& trace_;
  const Categories& categories_;
  StepProfile profile_;
  bool has_blocks_ = false;
  uint64_t live_ = 0;
  std::vector<OneStep> steps_;
  absl::flat_hash_map<uint32_t, double> allocated_;  // in this step, by stack
  absl::flat_hash_map<uint32_t, PowerFit> stacks_;
  PowerFit peaks_;
  InputSums inputs_;
};

}  // namespace

std::string_view NameOf(Growth growth) {
  switch (growth) {
    case Growth::kConstant:
      return "constant";
    case Growth::kLinear:
      return "linear";
    case Growth::kQuadratic:
      return "quadratic";
    case Growth::kUnclear:
      break;
  }
  return "unclear";
}

std::optional<StepProfile> MakeStepProfile(const Examination& examination,
                                           const Categories& categories, int32_t device) {
  return ProfileMaker(examination, categories, device).Make();
}

}  // namespace gmt::analysis
