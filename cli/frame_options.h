// cli/frame_options.h
//
// The options of every verb that shows or exports stacks: --raw-frames shows every frame, and
// --frames-rules FILE adds a user's own rules before the built-in ones (symbols/frame_rules.h).
//
// Thread safety: one thread at a time.

#ifndef GMT_CLI_FRAME_OPTIONS_H_
#define GMT_CLI_FRAME_OPTIONS_H_

#include <string>

#include "absl/status/statusor.h"
#include "answers/stacks/stack_text.h"
#include "cli/command.h"
#include "symbols/frame_rules.h"

namespace gmt::cli {

struct FrameOptions {
  bool raw = false;
  std::string rules_file;

  void AddTo(Command& command);
  absl::StatusOr<symbols::FrameRules> Rules() const;
  answers::FramesShown Shown() const {
    return raw ? answers::FramesShown::kRaw : answers::FramesShown::kFolded;
  }
};

}  // namespace gmt::cli

#endif  // GMT_CLI_FRAME_OPTIONS_H_
