// analysis/report/before_matches.h
//
// BeforeMatches: whose the memory may be that was there before somebody attached to the program. No
// stack was seen of it. Sizes and numbers are what there is to go by, so every match is a guess, and is
// called one.
//
//   block of a gradient's size, no more than   parameters and optimizer state (categories.h)
//     parameters and their state can be
//   block of the size of what a suspect keeps  same sizes as the suspect's line
//   memory of a segment beside its blocks      free in segments: this is no guess
//   all others                                 unknown
//
// A block is in one of them, so that groups add up to what was there.
//
// Thread safety: const methods from any thread. Cost: a walk over the rows; of a recording that somebody
// attached for, the search for leaks, and two walks.

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
  std::string label;    // for people; says of a guess that it is one
  std::string suspect;  // "leak/1"; "" of others
  bool is_guess() const { return match == BeforeMatch::kState || match == BeforeMatch::kSuspect; }
};

class BeforeMatches {
 public:
  // Groups nothing in a recording that nobody attached for.
  BeforeMatches(const Examination& examination, const Categories& categories);
  // `leaks`: what is known of them already.
  BeforeMatches(const Examination& examination, const Categories& categories,
                const LeakReport& leaks);

  // Null of memory that came later.
  const BeforeGroup* Of(RowId row) const;
  const std::vector<BeforeGroup>& groups() const { return groups_; }

 private:
  void Match(const Examination& examination, const Categories& categories, const LeakReport& leaks);
  uint8_t Add(BeforeGroup group);

  std::vector<BeforeGroup> groups_;
  std::vector<uint8_t> of_rows_;  // index of groups_ + 1; empty: nobody attached
};

}  // namespace gmt::analysis

#endif  // GMT_ANALYSIS_REPORT_BEFORE_MATCHES_H_
