#include "cli/rank_digest.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "answers/ranks/digest_file.h"
#include "cli/open_recording.h"
#include "cli/terminal.h"

namespace gmt::cli {
namespace {

// Digests keep text as it was recorded. Where it is shown, it is made printable.
answers::ReadOptions AsRecorded(const symbols::FrameRules& rules) {
  return {.frames = rules, .text = answers::TextForm::kAsRecorded};
}

// Whether a digest that could not be read is worth a word. One that does not exist or is outdated
// is normal.
bool IsUnexpected(const absl::Status& status) {
  return !absl::IsNotFound(status) && !absl::IsFailedPrecondition(status);
}

}  // namespace

absl::StatusOr<RankRead> ReadRank(const std::string& path) {
  RankRead read;
  if (answers::RecordingOfDigest(path)) {
    auto digest = answers::ReadDigest(path);
    if (!digest.ok()) return digest.status();
    read.digest = *std::move(digest);
    return read;
  }
  if (auto digest = answers::ReadDigestOf(path); digest.ok()) {
    read.digest = *std::move(digest);
    return read;
  } else if (IsUnexpected(digest.status())) {
    read.unused = std::string(digest.status().message());
  }
  // Taken before the recording is read: if it changes meanwhile, the digest is outdated.
  const auto state = answers::StateOfRecording(path);
  const auto recording = OpenRecording(path, AsRecorded(symbols::FrameRules::BuiltIn()));
  if (!recording.ok()) return recording.status();
  read.digest = answers::MakeDigest(**recording);
  if (!state.ok()) {
    read.stored = state.status();
  } else if (!(*recording)->complete()) {
    read.stored =
        absl::FailedPreconditionError(absl::StrCat(path, " is not complete and gets no digest"));
  } else {
    read.stored = answers::WriteDigestOf(path, read.digest, *state);
  }
  return read;
}

absl::StatusOr<RankRead> ReadRankWith(const symbols::FrameRules& rules,
                                      const std::string& recording) {
  const auto opened = OpenRecording(recording, AsRecorded(rules));
  if (!opened.ok()) return opened.status();
  return RankRead{answers::MakeDigest(**opened), absl::OkStatus(), ""};
}

bool NoteUnstored(const absl::Status& stored) {
  if (!absl::IsUnavailable(stored) && !absl::IsResourceExhausted(stored)) return false;
  PrintNote(std::string(stored.message()));
  return true;
}

}  // namespace gmt::cli
