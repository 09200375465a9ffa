#include "analysis/diff/slope.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace gmt::analysis {
namespace {

// Bytes of the larger run may differ this much from a law that they follow.
constexpr double kTolerance = 0.05;
// Inputs of the larger run must be this many times as large.
constexpr double kMinFactor = 1.2;

// What grows by `linear` and by `quadratic`, which is 0 if nothing can.
struct Factors {
  double linear = 1, quadratic = 0;
};

uint64_t PartOf(uint64_t bytes, double share) {
  const double part = std::clamp(share, 0.0, 1.0) * static_cast<double>(bytes);
  return part >= static_cast<double>(bytes) ? bytes : static_cast<uint64_t>(part + 0.5);
}

// Blocks are divided as what was requested in them.
GrowthParts Divide(const DiffRow& row, const Factors& factors) {
  const auto before = static_cast<double>(row.base_requested);
  const auto after = static_cast<double>(row.new_requested);
  const auto grew_by = [&](double factor) {
    return std::abs(before * factor - after) <= kTolerance * after;
  };
  // If a part grew by `low` and the rest by `high`, returns that part's share of the larger run.
  const auto lower = [&](double low, double high) {
    return low * (before * high - after) / (high - low) / after;
  };
  GrowthParts parts;
  if (before == 0 || after == 0) {
    parts.unclear = row.new_bytes;
  } else if (grew_by(1)) {
    parts.constant = row.new_bytes;
  } else if (grew_by(factors.linear)) {
    parts.linear = row.new_bytes;
  } else if (grew_by(factors.quadratic)) {
    parts.quadratic = row.new_bytes;
  } else if (before < after && after < before * factors.linear) {
    parts.constant = PartOf(row.new_bytes, lower(1, factors.linear));
    parts.linear = row.new_bytes - parts.constant;
  } else if (before < after && after < before * factors.quadratic) {
    parts.linear = PartOf(row.new_bytes, lower(factors.linear, factors.quadratic));
    parts.quadratic = row.new_bytes - parts.linear;
  } else {
    parts.unclear = row.new_bytes;
  }
  return parts;
}

Growth GrowthOf(const GrowthParts& parts) {
  if (parts.unclear > 0) return Growth::kUnclear;
  if (parts.linear + parts.quadratic == 0) return Growth::kConstant;
  return parts.quadratic > parts.linear ? Growth::kQuadratic : Growth::kLinear;
}

uint64_t Growing(const GrowthParts& parts) {
  return parts.linear + parts.quadratic + parts.unclear;
}

// One run.
struct Run {
  const Examination& examination;
  const Categories& categories;
};

InputSize InputsAt(const Run& run, int32_t device, const Instant& at) {
  InputSize inputs;
  const auto facts = FindTensorFacts(run.examination, run.categories, device, at.step);
  if (facts && facts->batch) {
    inputs.samples = facts->batch->samples;
    inputs.tokens = facts->batch->tokens;
  }
  for (const CategoryUse& use : CategoriesAt(run.examination, run.categories, device, at.step)) {
    if (use.category == Category::kInputs) inputs.bytes = use.bytes;
  }
  return inputs;
}

// Removes what is not known of both.
void MakeComparable(InputSize& a, InputSize& b) {
  if (a.samples == 0 || b.samples == 0) a.samples = b.samples = 0;
  if (a.samples == 0 || a.tokens == 0 || b.tokens == 0) a.tokens = b.tokens = 0;
  if (a.samples > 0) a.bytes = b.bytes = 0;
}

Factors FactorsOf(const Slope& slope) {
  Factors factors;
  factors.linear =
      static_cast<double>(slope.large.Total()) / static_cast<double>(slope.base.Total());
  if (slope.unit == Slope::Unit::kByte) factors.quadratic = factors.linear * factors.linear;
  if (slope.unit == Slope::Unit::kToken) {
    factors.quadratic = factors.linear * static_cast<double>(slope.large.tokens) /
                        static_cast<double>(slope.base.tokens);
  }
  return factors;
}

void AddRows(std::vector<DiffRow> rows, Slope& slope) {
  const Factors factors = FactorsOf(slope);
  slope.parts.constant = slope.moment.unchanged_bytes;
  for (DiffRow& row : rows) {
    const GrowthParts parts = Divide(row, factors);
    slope.parts.constant += parts.constant;
    slope.parts.linear += parts.linear;
    slope.parts.quadratic += parts.quadratic;
    slope.parts.unclear += parts.unclear;
    const Growth growth = GrowthOf(parts);
    if (growth != Growth::kConstant) slope.rows.push_back({std::move(row), parts, growth});
  }
  std::stable_sort(slope.rows.begin(), slope.rows.end(), [](const SlopeRow& a, const SlopeRow& b) {
    return Growing(a.parts) > Growing(b.parts);
  });
}

void AddSquare(const Run& large, Slope& slope) {
  if (slope.unit != Slope::Unit::kToken || slope.parts.quadratic == 0) return;
  auto facts = FindTensorFacts(large.examination, large.categories, slope.moment.device,
                               slope.moment.new_at.step);
  if (!facts || !facts->batch) return;
  slope.square_bytes = facts->batch->square_bytes;
  slope.square = std::move(facts->batch->square);
}

absl::StatusOr<Slopes> Find(const Run& base, const Run& large, const DiffOptions& options,
                            bool swapped) {
  auto comparison =
      Compare(base.examination, base.categories, large.examination, large.categories, options);
  if (!comparison.ok()) return comparison.status();
  Slopes slopes;
  slopes.swapped = swapped;
  for (Diff& diff : comparison->devices) {
    if (diff.device == kHostDevice) continue;
    Slope slope;
    slope.base = InputsAt(base, diff.base_device, diff.base_at);
    slope.large = InputsAt(large, diff.device, diff.new_at);
    MakeComparable(slope.base, slope.large);
    const uint64_t units = slope.base.Total(), more = slope.large.Total();
    if (units == 0 || more == 0) continue;
    if (more < units && !swapped) return Find(large, base, options, true);
    if (static_cast<double>(more) < kMinFactor * static_cast<double>(units)) continue;
    slope.unit = slope.base.samples == 0                   ? Slope::Unit::kByte
                 : slope.base.tokens == slope.large.tokens ? Slope::Unit::kSample
                                                           : Slope::Unit::kToken;
    std::vector<DiffRow> rows = std::move(diff.rows);
    slope.moment = std::move(diff);
    AddRows(std::move(rows), slope);
    AddSquare(large, slope);
    slopes.devices.push_back(std::move(slope));
  }
  if (slopes.devices.empty()) {
    return absl::FailedPreconditionError(
        "the two recordings have no GPU on which inputs of different size are known. Record the "
        "same program twice, with another batch size or another length of the sequence");
  }
  return slopes;
}

}  // namespace

uint64_t InputSize::Total() const {
  return samples == 0 ? bytes : samples * std::max<uint64_t>(tokens, 1);
}

std::string_view NameOf(Slope::Unit unit) {
  return unit == Slope::Unit::kSample ? "sample" : unit == Slope::Unit::kToken ? "token" : "byte";
}

absl::StatusOr<Slopes> FindSlopes(const Examination& first, const Categories& first_categories,
                                  const Examination& second, const Categories& second_categories,
                                  const DiffOptions& options) {
  return Find({first, first_categories}, {second, second_categories}, options, false);
}

}  // namespace gmt::analysis
