// format/growing_parts.h
//
// GrowingParts: the bytes of a recording that is being written, as one growing source. It consists
// of the parts that existed at first, the newest part, and each later part that takes over the
// file name (format/parts.h).
//
//   run.part-000003.gmt | run.gmt (4) ..........        Refresh(): the newest has grown
//   run.part-000003.gmt | run.part-000004.gmt | run.gmt (5) ...      ... and was replaced by its next
//
// A file stays open until all of it has been forgotten, so that a part that is deleted meanwhile is
// still read to its end.
//
// Thread safety: one thread at a time.

#ifndef GMT_FORMAT_GROWING_PARTS_H_
#define GMT_FORMAT_GROWING_PARTS_H_

#include <sys/types.h>

#include <cstdint>
#include <deque>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "format/byte_source.h"
#include "proto/gmt.pb.h"

namespace gmt::format {

class GrowingParts : public ByteSource {
 public:
  // Fails as OpenFile() does for `path`.
  static absl::StatusOr<std::unique_ptr<GrowingParts>> Open(const std::string& path);
  ~GrowingParts() override;
  GrowingParts(const GrowingParts&) = delete;
  GrowingParts& operator=(const GrowingParts&) = delete;

  uint64_t size() const override;
  absl::Status Read(uint64_t offset, uint64_t count, std::string* out) override;

  // Picks up new data. Fails and changes nothing if the file at the path does not continue what was
  // read: NOT_FOUND if there is none, DATA_LOSS if it is another recording or has become shorter.
  absl::Status Refresh();

  // Declares that nothing before `offset` will be read again.
  void Forget(uint64_t offset);

 private:
  class File;

  explicit GrowingParts(std::string path);
  absl::Status Append(std::unique_ptr<File> newest);
  std::deque<std::unique_ptr<File>> PartsSince(std::unique_ptr<File> newest) const;

  const std::string path_;
  std::deque<std::unique_ptr<File>> files_;  // oldest first; never empty
  uint64_t begin_ = 0;                       // offset of the first of them
  Header last_header_;                       // of the newest; empty until it is written
};

}  // namespace gmt::format

#endif  // GMT_FORMAT_GROWING_PARTS_H_
