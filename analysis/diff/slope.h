// analysis/diff/slope.h
//
// Slope: how memory grows with the inputs, from two runs of one program with inputs of different
// size. Each stack of the larger run is divided into parts:
//
//   constant + linear + quadratic = its bytes in the larger run
//
//   inputs            linear factor       quadratic factor
//   4 x 128, 8 x 128  samples: 2          -                 per sample
//   4 x 128, 4 x 256  tokens: 2           4                 per token
//   4 x 128, 8 x 256  tokens: 4           8                 per token
//   256 KiB, 512 KiB  bytes: 2            4                 per byte of input, if shapes are unknown
//
// Bytes that grew by one of these factors, or did not grow, are that part. Growth between two
// factors is divided between their parts. Other growth, and stacks that only one run has, are
// unclear.
//
//   S1  For each device, the parts of its rows, and constant memory that has no row, add up to
//       what the larger run has allocated.
//
// Thread safety: pure functions. Cost: that of Compare().

#ifndef GMT_ANALYSIS_DIFF_SLOPE_H_
#define GMT_ANALYSIS_DIFF_SLOPE_H_

#include <cstdint>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "analysis/categories/categories.h"
#include "analysis/categories/step_profile.h"
#include "analysis/categories/tensor_facts.h"
#include "analysis/diff/diff.h"
#include "analysis/examination/examination.h"

namespace gmt::analysis {

struct InputSize {
  uint64_t samples = 0, tokens = 0;  // tokens per sample; 0: not known, or no sequence
  uint64_t bytes = 0;                // the inputs' size, if samples are not known in both runs

  // All tokens; samples if tokens are not known; bytes if neither is.
  uint64_t Total() const;
};

struct GrowthParts {
  uint64_t constant = 0, linear = 0, quadratic = 0, unclear = 0;  // bytes in the larger run
};

struct SlopeRow {
  DiffRow row;  // base: the smaller run
  GrowthParts parts;
  Growth growth = Growth::kUnclear;  // the larger of its growing parts
};

struct Slope {
  enum class Unit : uint8_t { kSample, kToken, kByte };

  Diff moment;  // the compared moments, smaller run first; without its rows
  InputSize base, large;
  Unit unit = Unit::kSample;
  GrowthParts parts;
  std::vector<SlopeRow> rows;  // those that grow or are unclear, most bytes of such parts first
  // Set if something is quadratic in the tokens: the tensors of the larger run whose shapes contain
  // the length of the sequence twice, as the scores of attention do, and their bytes.
  std::vector<ShapedMemory> square;
  uint64_t square_bytes = 0;

  // Bytes of a part per unit of input, in the larger run. The quadratic part per token is valid for
  // its length of the sequence and grows in proportion to it.
  double PerUnit(uint64_t part) const {
    const uint64_t units = unit == Unit::kSample ? large.samples : large.Total();
    return static_cast<double>(part) / static_cast<double>(units);
  }
};
std::string_view NameOf(Slope::Unit unit);  // "sample", "token", "byte"

// One Slope for each GPU. Either recording may be the larger run; `swapped` is set if it is the
// first. Returns FAILED_PRECONDITION if the inputs of a run are not known or if both are equally
// large, and what Compare() returns.
struct Slopes {
  std::vector<Slope> devices;
  bool swapped = false;
};
absl::StatusOr<Slopes> FindSlopes(const Examination& first, const Categories& first_categories,
                                  const Examination& second, const Categories& second_categories,
                                  const DiffOptions& options);

}  // namespace gmt::analysis

#endif  // GMT_ANALYSIS_DIFF_SLOPE_H_
