#include "format/tail_reader.h"

#include <utility>

#include "format/chunk_stream.h"
#include "format/delivery_taker.h"
#include "format/growing_parts.h"

namespace gmt::format {

class TailReader::Impl {
 public:
  explicit Impl(std::unique_ptr<GrowingParts> growing)
      : source(std::move(growing)), stream(source.get(), Returns::kCompleted, Tail::kGrows) {}

  const std::unique_ptr<GrowingParts> source;
  ChunkStream stream;
  DeliveryTaker taker;
};

absl::StatusOr<std::unique_ptr<TailReader>> TailReader::Open(const std::string& path) {
  auto source = GrowingParts::Open(path);
  if (!source.ok()) return source.status();
  return std::unique_ptr<TailReader>(new TailReader(std::make_unique<Impl>(*std::move(source))));
}

TailReader::TailReader(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
TailReader::~TailReader() = default;

void TailReader::MakeStringsPrintable() { impl_->taker.MakeStringsPrintable(); }

absl::Status TailReader::ReadMore(RecordingVisitor& visitor) {
  if (absl::Status status = impl_->source->Refresh(); !status.ok()) return status;
  bool ended = false;
  while (!ended) {
    if (absl::Status status = impl_->taker.TakeNext(impl_->stream, visitor, &ended); !status.ok())
      return status;
  }
  impl_->source->Forget(impl_->taker.bytes_taken());
  return absl::OkStatus();
}

const Definitions& TailReader::definitions() const { return impl_->taker.definitions(); }
bool TailReader::complete() const { return impl_->taker.complete(); }
uint64_t TailReader::bytes() const { return impl_->source->size(); }
uint64_t TailReader::bytes_taken() const { return impl_->taker.bytes_taken(); }
uint64_t TailReader::names_taken() const { return impl_->taker.names_taken(); }
const std::vector<Damage>& TailReader::damage() const { return impl_->taker.damage(); }

}  // namespace gmt::format
