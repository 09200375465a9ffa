// analysis/report/before_matches.h
//
// BeforeMatches: guesses the purpose of memory allocated before gpumemtrace attached. No stack was
// recorded for it, so only sizes and counts can be compared: every match is a guess and is labelled
// so.
//
//   block of a gradient's size, no more than   parameters and optimizer state (categories.h)
//     parameters and their state can be
//   block of the size of what a suspect keeps  same sizes as the suspect's line
//   memory of a segment beside its blocks      free in segments; not a guess
//   all others                                 unknown
//
// Each block is in exactly one group, so the groups add up to the memory held at attach.
//
// Thread safety: const methods from any thread. Cost: a walk over the rows; for an attached
// recording also the search for leaks and two more walks.

#ifndef GMT_ANALYSIS_REPORT_BEFORE_MATCHES_H_
#define GMT_ANALYSIS_REPORT_BEFORE_MATCHES_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/categories/categories.h"
#include "analysis/examination/examination.h"
#include "analysis/leaks/leaks.h"

namespace gmt::analysis {

enum class BeforeMatch : uint8_t { kState, kSuspect, kCache, kUnknown };
// As in JSON: "state", "suspect", "cache", "unknown".
std::string_view NameOf(BeforeMatch match);

struct BeforeGroup {
  BeforeMatch match = BeforeMatch::kUnknown;
  std::string id;       // "before/state", "before/leak/1", "before/cache", "before/unknown"
  std::string label;    // for people; marks a guess as such
  std::string suspect;  // "leak/1"; "" for other groups
  bool is_guess() const { return match == BeforeMatch::kState || match == BeforeMatch::kSuspect; }
};

class BeforeMatches {
 public:
  // Creates no groups for a recording without an attach.
  BeforeMatches(const Examination& examination, const Categories& categories);
  // `leaks`: the leak report, if the caller has computed it already.
  BeforeMatches(const Examination& examination, const Categories& categories,
                const LeakReport& leaks);

  // Returns nullptr for memory allocated after the attach.
  const BeforeGroup* Of(RowId row) const;
  const std::vector<BeforeGroup>& groups() const { return groups_; }

 private:
  void Match(const Examination& examination, const Categories& categories, const LeakReport& leaks);
  uint8_t Add(BeforeGroup group);

  std::vector<BeforeGroup> groups_;
  std::vector<uint8_t> of_rows_;  // index of groups_ + 1; empty without an attach
};

}  // namespace gmt::analysis

#endif  // GMT_ANALYSIS_REPORT_BEFORE_MATCHES_H_
