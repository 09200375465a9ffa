// cli/open_recording.h

#ifndef GMT_CLI_OPEN_RECORDING_H_
#define GMT_CLI_OPEN_RECORDING_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "answers/recording.h"

namespace gmt::cli {

// The form of a recording's text for an answer in JSON, or for a terminal.
inline answers::TextForm FormFor(bool json) {
  return json ? answers::TextForm::kAsRecorded : answers::TextForm::kPrintable;
}

// Loads a recording and shows on the terminal how far it has come (cli/progress.h). Fails as
// answers::LoadRecording does.
absl::StatusOr<std::unique_ptr<answers::Recording>> OpenRecording(
    const std::string& path, answers::ReadOptions options = {});

}  // namespace gmt::cli

#endif  // GMT_CLI_OPEN_RECORDING_H_
