#include "analysis/report/before_matches.h"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"

namespace gmt::analysis {
namespace {

// Further suspects are not matched: a table of that many guesses is useless.
constexpr size_t kMaxSuspects = 64;
// Maximum ratio of a size's blocks to the number expected from the suspect's other sizes.
constexpr double kMaxAboveOthers = 2;

constexpr uint16_t kBefore = kRowReportedBefore | kRowUnreportedBefore;

bool IsState(Category category) {
  return category == Category::kParameters || category == Category::kOptimizerState;
}

// Determines which suspect blocks of a size may belong to: one that has kept such blocks since the
// attach, and more of them than all other stacks together.
class SuspectSizes {
 public:
  SuspectSizes(const Trace& trace, const LeakReport& leaks) : trace_(trace) {
    const size_t count = std::min(leaks.suspects.size(), kMaxSuspects);
    for (size_t i = 0; i < count; ++i) {
      for (const LeakStack& stack : leaks.suspects[i].stacks) stacks_.try_emplace(stack.stack, i);
    }
    if (stacks_.empty()) return;
    CountKept();
    ChooseSuspects();
  }

  // Counts a row for its size. REQUIRES: the row was reported at the attach.
  void NoteBefore(RowId row) {
    if (const auto of = sizes_.find(ClassOf(row)); of != sizes_.end()) ++of->second.before;
  }
  // Drops sizes that are too frequent. Call after all rows were noted.
  void LeaveOutCommonSizes() {
    std::map<size_t, std::vector<double>> ratios;  // by suspect: before / kept, of each size
    for (const auto& [size, of] : sizes_) {
      if (of.suspect && of.before > 0) ratios[*of.suspect].push_back(of.ratio());
    }
    for (auto& [size, of] : sizes_) {
      if (!of.suspect || of.before == 0) continue;
      std::vector<double>& others = ratios[*of.suspect];
      std::nth_element(others.begin(), others.begin() + static_cast<long>(others.size() / 2),
                       others.end());
      // With only two values, the median is meaningless.
      if (others.size() > 2 && of.ratio() > kMaxAboveOthers * others[others.size() / 2] + 1)
        of.suspect.reset();
    }
  }
  std::optional<size_t> Of(RowId row) const {
    const auto of = sizes_.find(ClassOf(row));
    return of == sizes_.end() ? std::nullopt : of->second.suspect;
  }

 private:
  using Class = std::tuple<int32_t, uint32_t, uint64_t>;  // device, heap, size
  struct Size {
    std::map<size_t, uint64_t> kept_by;  // suspect
    uint64_t kept = 0, kept_by_suspect = 0, before = 0;
    std::optional<size_t> suspect;
    double ratio() const {
      return static_cast<double>(before) / static_cast<double>(kept_by_suspect);
    }
  };

  Class ClassOf(RowId row) const {
    const Rows& rows = trace_.rows;
    return {rows.device[row], rows.heap[row], rows.size[row]};
  }
  void CountKept() {
    const Rows& rows = trace_.rows;
    for (RowId row = 0; row < rows.count(); ++row) {
      if (rows.death[row] != kNever || rows.birth[row] == 0) continue;
      Size& size = sizes_[ClassOf(row)];
      ++size.kept;
      const auto suspect = stacks_.find(rows.stack[row]);
      if (suspect != stacks_.end()) ++size.kept_by[suspect->second];
    }
  }
  void ChooseSuspects() {
    for (auto& [size, of] : sizes_) {
      for (const auto& [suspect, kept] : of.kept_by) {
        if (2 * kept <= of.kept) continue;
        of.suspect = suspect;
        of.kept_by_suspect = kept;
      }
    }
  }

  const Trace& trace_;
  absl::flat_hash_map<uint32_t, size_t> stacks_;  // stack to suspect
  absl::flat_hash_map<Class, Size> sizes_;
};

BeforeGroup OfSuspect(const LeakSuspect& suspect) {
  std::string place = "a stack";
  if (suspect.common_frame) {
    place = suspect.common_frame->Place();
    if (place.empty()) place = suspect.common_frame->Name();
  }
  return {
      BeforeMatch::kSuspect, absl::StrCat("before/", suspect.id),
      absl::StrCat("before attach: same sizes as ", place, ", suspect ", suspect.id, " (guess)"),
      suspect.id};
}

}  // namespace

std::string_view NameOf(BeforeMatch match) {
  switch (match) {
    case BeforeMatch::kState:
      return "state";
    case BeforeMatch::kSuspect:
      return "suspect";
    case BeforeMatch::kCache:
      return "cache";
    case BeforeMatch::kUnknown:
      return "unknown";
  }
  return "unknown";
}

BeforeMatches::BeforeMatches(const Examination& examination, const Categories& categories) {
  if (WasAttached(examination.trace())) Match(examination, categories, FindLeaks(examination));
}

BeforeMatches::BeforeMatches(const Examination& examination, const Categories& categories,
                             const LeakReport& leaks) {
  if (WasAttached(examination.trace())) Match(examination, categories, leaks);
}

const BeforeGroup* BeforeMatches::Of(RowId row) const {
  return of_rows_.empty() || of_rows_[row] == 0 ? nullptr : &groups_[of_rows_[row] - 1u];
}

uint8_t BeforeMatches::Add(BeforeGroup group) {
  groups_.push_back(std::move(group));
  return static_cast<uint8_t>(groups_.size());
}

void BeforeMatches::Match(const Examination& examination, const Categories& categories,
                          const LeakReport& leaks) {
  const Trace& trace = examination.trace();
  const Rows& rows = trace.rows;
  const uint8_t state = Add({BeforeMatch::kState, "before/state",
                             "before attach: parameters and optimizer state (guess)", ""});
  const uint8_t cache =
      Add({BeforeMatch::kCache, "before/cache", "before attach: free in segments", ""});
  const uint8_t unknown =
      Add({BeforeMatch::kUnknown, "before/unknown", "before attach: unknown", ""});
  // Memory that a suspect leaks is not freed.
  const auto may_be_suspects = [&](RowId row) {
    return (rows.flags[row] & kRowReportedBefore) != 0 && rows.death[row] == kNever &&
           !IsState(categories.Of(row).category);
  };
  SuspectSizes suspects(trace, leaks);
  of_rows_.resize(rows.count());
  for (RowId row = 0; row < rows.count(); ++row) {
    if ((rows.flags[row] & kBefore) == 0) continue;
    of_rows_[row] = (rows.flags[row] & kRowHoldsBlocks) != 0 ? cache
                    : IsState(categories.Of(row).category)   ? state
                                                             : unknown;
    if (of_rows_[row] == unknown && may_be_suspects(row)) suspects.NoteBefore(row);
  }
  suspects.LeaveOutCommonSizes();
  std::map<size_t, uint8_t> groups;  // by suspect
  for (RowId row = 0; row < rows.count(); ++row) {
    if (of_rows_[row] != unknown || !may_be_suspects(row)) continue;
    const std::optional<size_t> suspect = suspects.Of(row);
    if (!suspect) continue;
    const auto [group, is_new] = groups.try_emplace(*suspect);
    if (is_new) group->second = Add(OfSuspect(leaks.suspects[*suspect]));
    of_rows_[row] = group->second;
  }
}

}  // namespace gmt::analysis
