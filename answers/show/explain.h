// answers/show/explain.h
//
// What an id is that an answer printed, or a name that the program gave (analysis/show/subject.h).
//
// Thread safety: one thread at a time for one recording.

#ifndef GMT_ANSWERS_SHOW_EXPLAIN_H_
#define GMT_ANSWERS_SHOW_EXPLAIN_H_

#include <cstddef>

#include "absl/status/statusor.h"
#include "analysis/show/subject.h"
#include "answers/answer.h"
#include "answers/recording.h"
#include "answers/stacks/stack_text.h"
#include "answers/terminal.h"

namespace gmt::answers {

struct ShowOptions {
  FramesShown shown = FramesShown::kFolded;
  size_t top = 0;  // rows of a list; 0: the default
};

// NOT_FOUND, with what there is instead, if the recording has no such subject.
absl::StatusOr<Answer> Explain(const Recording& recording, const analysis::Subject& subject,
                               const ShowOptions& options, const Terminal& terminal);

}  // namespace gmt::answers

#endif  // GMT_ANSWERS_SHOW_EXPLAIN_H_
