// cli/rank_digest.h
//
// Gets the digest of a rank for `ranks`, and writes it for `run`: from the file beside the
// recording (answers/ranks/digest_file.h), otherwise by reading the recording.
//
// Thread safety: one thread at a time for one recording.

#ifndef GMT_CLI_RANK_DIGEST_H_
#define GMT_CLI_RANK_DIGEST_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "answers/ranks/rank_digest.h"
#include "symbols/frame_rules.h"

namespace gmt::cli {

struct RankRead {
  answers::RankDigest digest;
  // Set by ReadRank(): not OK if the recording has no digest that is up to date now, and why.
  // FAILED_PRECONDITION: the recording is not complete. INVALID_ARGUMENT: it is not a .gmt file.
  // Otherwise as answers::WriteDigestOf().
  absl::Status stored;
  std::string unused;  // why a digest that is there was not used; empty if it was, or was outdated
};

// `path`: a recording, or a digest without its recording. Fails if neither can be read.
absl::StatusOr<RankRead> ReadRank(const std::string& path);

// Reads the recording itself, and neither uses nor writes a digest: that would be of other rules.
absl::StatusOr<RankRead> ReadRankWith(const symbols::FrameRules& rules,
                                      const std::string& recording);

// Prints a note if a digest could not be written for a reason that concerns the user: not if the
// directory is read-only or the recording gets none. Returns whether it did.
bool NoteUnstored(const absl::Status& stored);

}  // namespace gmt::cli

#endif  // GMT_CLI_RANK_DIGEST_H_
