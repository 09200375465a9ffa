// cli/open_recording.h
//
// How commands open recordings: with progress on the terminal, and text in the form of the output.
//
// Thread safety: one thread at a time, because of the terminal.

#ifndef GMT_CLI_OPEN_RECORDING_H_
#define GMT_CLI_OPEN_RECORDING_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "answers/recording.h"
#include "format/byte_source.h"

namespace gmt::cli {

// The form of a recording's text for an answer in JSON, or for a terminal.
inline answers::TextForm FormFor(bool json) {
  return json ? answers::TextForm::kAsRecorded : answers::TextForm::kPrintable;
}

// Loads a recording and shows on the terminal how far it has come (cli/progress.h). Fails as
// answers::LoadRecording does.
absl::StatusOr<std::unique_ptr<answers::Recording>> OpenRecording(
    const std::string& path, answers::ReadOptions options = {});

// Opens a file that must be a .gmt recording, with its older parts, to copy it. Fails for another
// format with a message that names the command that converts it.
absl::StatusOr<std::shared_ptr<format::ByteSource>> OpenGmtFile(const std::string& path);

}  // namespace gmt::cli

#endif  // GMT_CLI_OPEN_RECORDING_H_
