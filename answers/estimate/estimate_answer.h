// answers/estimate/estimate_answer.h
//
// EstimateAnswer: how much GPU memory a model will need, and whether a GPU has it
// (analysis/estimate/estimate.h). With a recording, what it filled in and how far the estimate is
// from what was recorded.
//
// Ownership: it needs a recording only while it is made. Thread safety: one thread at a time.

#ifndef GMT_ANSWERS_ESTIMATE_ESTIMATE_ANSWER_H_
#define GMT_ANSWERS_ESTIMATE_ESTIMATE_ANSWER_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "analysis/estimate/estimate.h"
#include "analysis/estimate/model.h"
#include "analysis/estimate/recorded.h"
#include "answers/recording.h"
#include "answers/terminal.h"

namespace gmt::answers {

struct EstimateOptions {
  std::string file;  // the configuration; empty if there is none
  // nullopt: only the number of parameters is known, and that from the recording.
  std::optional<analysis::Model> model;
  analysis::Plan plan;
  // Whether these of the plan were given; otherwise they are taken from the recording.
  bool has_batch = false, has_length = false, has_optimizer = false;
  // Empty and 0: that of the recording, or the smallest known one that suffices, or an H100.
  std::string gpu_name;
  uint64_t gpu_bytes = 0;
};

class EstimateAnswer {
 public:
  // `recording` may be null if there is a model. Fails as EstimateOf() does, and with
  // FAILED_PRECONDITION if the recording has no parameters to count.
  static absl::StatusOr<EstimateAnswer> Make(EstimateOptions options, const Recording* recording);

  std::string Text(const Terminal& terminal) const;
  std::string Json() const;

 private:
  // Another plan, as options of the command, and what it would need.
  struct Alternative {
    std::string options;
    uint64_t bytes = 0;
  };
  void FindGpu();
  void FindAlternatives();
  std::string Headline() const;
  std::string PartsText() const;
  std::string MomentsText() const;
  std::string RecordedText() const;
  std::string ServingText() const;
  uint64_t TokensLeft() const;
  std::string ModelText() const;

  std::string file_;
  analysis::Model model_;
  analysis::Plan plan_;
  analysis::Estimate estimate_;
  std::string gpu_name_;
  uint64_t gpu_bytes_ = 0;
  std::optional<uint64_t> fewest_gpus_;  // if one does not suffice
  std::optional<analysis::Serving> serving_;
  std::optional<analysis::Recorded> recorded_;
  std::vector<Alternative> alternatives_;
};

}  // namespace gmt::answers

#endif  // GMT_ANSWERS_ESTIMATE_ESTIMATE_ANSWER_H_
