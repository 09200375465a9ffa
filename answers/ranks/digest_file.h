// answers/ranks/digest_file.h
//
// The file with the digest of a recording (proto/digest.proto). It is beside the recording, and
// its name is that of the recording with a suffix:
//
//   out/r3.gmt    out/r3.gmt.digest
//
// A digest is made of a finished recording, and is used as long as the recording is the same
// (RecordingState). It may also be used alone, where the recording is not.
//
// Digests are untrusted: they are checked, and texts and numbers in them are as a recording could
// hold them.
//
// Thread safety: free functions, callable from any thread.

#ifndef GMT_ANSWERS_RANKS_DIGEST_FILE_H_
#define GMT_ANSWERS_RANKS_DIGEST_FILE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "answers/ranks/rank_digest.h"

namespace gmt::answers {

inline constexpr size_t kMaxDigestBytes = 200'000;
inline constexpr uint32_t kDigestVersion = 2;

std::string DigestPathOf(absl::string_view recording);
// Returns the path of the recording; nullopt if `path` is not the path of a digest.
std::optional<std::string> RecordingOfDigest(absl::string_view path);

// By what a recording is recognised. A copy of it may have another time.
struct RecordingState {
  uint64_t bytes = 0;
  int64_t modified_ns = 0;   // since 1970
  uint32_t ends_crc32c = 0;  // covers the first and the last 4 KiB
};
// Fails if the file cannot be read; INVALID_ARGUMENT if it is not a .gmt recording.
absl::StatusOr<RecordingState> StateOfRecording(const std::string& path);

std::string EncodeDigest(const RankDigest& digest, const RecordingState& state);

struct StoredDigest {
  RankDigest digest;  // without the name of its file
  RecordingState state;
};
// Fails with INVALID_ARGUMENT for something else, UNIMPLEMENTED for a digest of another version and
// DATA_LOSS for a damaged one. `name` is that of the file, for messages.
absl::StatusOr<StoredDigest> DecodeDigest(std::string_view bytes, const std::string& name);

// Reads the digest of a recording that is there. Fails as DecodeDigest() does; NOT_FOUND without a
// digest, FAILED_PRECONDITION if it is of another recording.
absl::StatusOr<RankDigest> ReadDigestOf(const std::string& recording);
// Reads a digest whose recording need not be there.
absl::StatusOr<RankDigest> ReadDigest(const std::string& path);

// Replaces the digest of a recording; one that is being read stays whole. `state` is that of the
// recording before it was read. Fails with ALREADY_EXISTS if the file that would be replaced is not
// a digest, and with PERMISSION_DENIED if nothing may be written there.
absl::Status WriteDigestOf(const std::string& recording, const RankDigest& digest,
                           const RecordingState& state);

}  // namespace gmt::answers

#endif  // GMT_ANSWERS_RANKS_DIGEST_FILE_H_
