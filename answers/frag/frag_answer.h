// answers/frag/frag_answer.h
//
// FragAnswer: what a caching allocator holds besides its live blocks, and why
// (analysis/fragmentation/fragmentation.h).
//
// Ownership: the recording must outlive it. Thread safety: one thread at a time.

#ifndef GMT_ANSWERS_FRAG_FRAG_ANSWER_H_
#define GMT_ANSWERS_FRAG_FRAG_ANSWER_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "analysis/fragmentation/fragmentation.h"
#include "answers/frag/replays.h"
#include "answers/recording.h"
#include "answers/terminal.h"

namespace gmt::answers {

class FragAnswer {
 public:
  static absl::StatusOr<FragAnswer> Make(const Recording& recording,
                                         const analysis::FragmentationOptions& options = {});

  // `top`: lines of code that pin memory; 0: the default.
  std::string Text(const Terminal& terminal, size_t top = 0) const;
  // 0: all.
  std::string Json(size_t top = 0) const;

 private:
  FragAnswer(const Recording& recording, std::vector<DeviceFragmentation> devices);

  const Recording* recording_;
  std::vector<DeviceFragmentation> devices_;
};

}  // namespace gmt::answers

#endif  // GMT_ANSWERS_FRAG_FRAG_ANSWER_H_
