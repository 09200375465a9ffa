#include "format/tail_reader.h"

#include <utility>

namespace gmt::format {

absl::StatusOr<std::unique_ptr<TailReader>> TailReader::Open(const std::string& path) {
  auto source = GrowingParts::Open(path);
  if (!source.ok()) return source.status();
  return std::unique_ptr<TailReader>(new TailReader(*std::move(source)));
}

absl::Status TailReader::ReadOn(RecordingVisitor& visitor) {
  if (absl::Status status = source_->LookAgain(); !status.ok()) return status;
  bool ended = false;
  while (!ended) {
    if (absl::Status status = taker_.TakeNext(stream_, visitor, &ended); !status.ok())
      return status;
  }
  source_->Forget(taker_.bytes_taken());
  return absl::OkStatus();
}

}  // namespace gmt::format
