// viewer/served/served_ranks.h
//
// ServedRanks: compares the recordings that the page shows as the ranks of a job, as
// `gpumemtrace ranks` does (answers/ranks/). The digest beside a recording is used before the
// recording is loaded, and whether or not it ever is. Without one, the rank is known when its
// recording is ready.
//
// Thread safety: any thread at any time.

#ifndef GMT_VIEWER_SERVED_SERVED_RANKS_H_
#define GMT_VIEWER_SERVED_SERVED_RANKS_H_

#include <memory>
#include <mutex>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "answers/ranks/rank_digest.h"
#include "viewer/served/recording.h"

namespace gmt::viewer {

class ServedRanks {
 public:
  // `files`: by number; null for a recording in progress, which is not compared.
  explicit ServedRanks(std::vector<std::shared_ptr<ServedRecording>> files);
  ~ServedRanks();

  // Returns JSON of Ranks (protocol.ts) of the ranks that are known. Digests that have to be made
  // take time: after a part of a second the rest is left to the next call.
  std::string Answer();

 private:
  struct File {
    std::shared_ptr<ServedRecording> recording;
    std::optional<answers::RankDigest> digest;
  };
  void ReadStoredDigests();
  // Makes digests of recordings that are ready. Returns whether it left any to the next call.
  bool MakeDigests();
  nlohmann::ordered_json CompareKnown() const;

  std::mutex mutex_;  // guards the following
  std::vector<File> files_;
  bool has_read_stored_ = false;
  // The comparison of all digests of files_; null if there is a digest that it does not cover.
  std::unique_ptr<nlohmann::ordered_json> compared_;
};

}  // namespace gmt::viewer

#endif  // GMT_VIEWER_SERVED_SERVED_RANKS_H_
