// answers/ranks/ranks_answer.h
//
// RanksAnswer: the comparison of a job's ranks as text and as JSON.
//
// Thread safety: const methods from any thread.

#ifndef GMT_ANSWERS_RANKS_RANKS_ANSWER_H_
#define GMT_ANSWERS_RANKS_RANKS_ANSWER_H_

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "answers/ranks/rank_comparison.h"
#include "answers/terminal.h"

namespace gmt::answers {

class RanksAnswer {
 public:
  // REQUIRES: at least one digest. `unread`: sentences about files that could not be read;
  // `unused`: about digests in whose place recordings were read.
  RanksAnswer(JobDigests digests, std::vector<std::string> unread,
              std::vector<std::string> unused = {});

  const RankComparison& comparison() const { return comparison_; }
  // Returns which rank differs most, by how much and why, as one sentence.
  std::string Verdict() const;
  // `top`: rows of the table; 0: as many as fit a screen, those that differ first.
  std::string Text(const Terminal& terminal, size_t top = 0) const;
  std::string Json() const;
  // Writes the same in parts, because all of it may be larger than the digests.
  void WriteJson(const std::function<void(std::string_view)>& write) const;

 private:
  std::string NextCommand() const;

  const RankComparison comparison_;
  const std::vector<std::string> unread_, unused_;
};

}  // namespace gmt::answers

#endif  // GMT_ANSWERS_RANKS_RANKS_ANSWER_H_
