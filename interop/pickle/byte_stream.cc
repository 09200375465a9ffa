#include "interop/pickle/byte_stream.h"

#include <zlib.h>

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

namespace gmt::interop {
namespace {

using absl::string_view;
using format::ByteSource;

constexpr uint64_t kPiece = 1 << 20;
constexpr uint64_t kUnpackedPiece = 256 << 10;
constexpr string_view kGzipMagic("\x1f\x8b", 2);

class SourceStream : public ByteStream {
 public:
  explicit SourceStream(std::shared_ptr<ByteSource> source) : source_(std::move(source)) {}

  absl::StatusOr<string_view> Next() override {
    absl::Status status = source_->Read(offset_, kPiece, &piece_);
    if (!status.ok()) return status;
    offset_ += piece_.size();
    return string_view(piece_.data(), piece_.size());
  }

 private:
  const std::shared_ptr<ByteSource> source_;
  uint64_t offset_ = 0;
  std::string piece_;
};

// Decompresses a gzip file, which has one or several members in sequence.
class GzipStream : public ByteStream {
 public:
  GzipStream(std::unique_ptr<ByteStream> packed, string_view name)
      : packed_(std::move(packed)), name_(name) {
    // 15 + 16: windows of any size, with a gzip header.
    ready_ = inflateInit2(&state_, 15 + 16) == Z_OK;
  }
  ~GzipStream() override {
    if (ready_) inflateEnd(&state_);
  }
  GzipStream(const GzipStream&) = delete;
  GzipStream& operator=(const GzipStream&) = delete;

  absl::StatusOr<string_view> Next() override {
    if (!ready_)
      return absl::ResourceExhaustedError(absl::StrCat(name_, ": out of memory for decompression"));
    unpacked_.resize(kUnpackedPiece);
    state_.next_out = reinterpret_cast<Bytef*>(unpacked_.data());
    state_.avail_out = static_cast<uInt>(unpacked_.size());
    while (state_.avail_out > 0) {
      if (state_.avail_in == 0) {
        absl::Status status = Refill();
        if (!status.ok()) return status;
        if (state_.avail_in == 0) break;
      }
      absl::Status status = Inflate();
      if (!status.ok()) return status;
    }
    const size_t size = unpacked_.size() - state_.avail_out;
    if (size == 0 && inside_member_) return Damaged("unexpected end of file");
    return string_view(unpacked_.data(), size);
  }

 private:
  absl::Status Refill() {
    absl::StatusOr<string_view> piece = packed_->Next();
    if (!piece.ok()) return piece.status();
    state_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(piece->data()));
    state_.avail_in = static_cast<uInt>(piece->size());
    return absl::OkStatus();
  }

  absl::Status Inflate() {
    inside_member_ = true;
    const int result = inflate(&state_, Z_NO_FLUSH);
    if (result == Z_STREAM_END) {
      inside_member_ = false;
      return inflateReset(&state_) == Z_OK ? absl::OkStatus() : Damaged("cannot reset");
    }
    if (result == Z_OK || result == Z_BUF_ERROR) return absl::OkStatus();
    return Damaged(state_.msg == nullptr ? "invalid gzip data" : state_.msg);
  }

  absl::Status Damaged(string_view why) const {
    return absl::DataLossError(
        absl::StrCat(name_, ": gzip-compressed data cannot be decompressed: ", why));
  }

  const std::unique_ptr<ByteStream> packed_;
  const std::string name_;
  z_stream state_ = {};
  bool ready_ = false;
  bool inside_member_ = false;
  std::string unpacked_;
};

}  // namespace

std::unique_ptr<ByteStream> StreamOf(std::shared_ptr<ByteSource> source, string_view name) {
  std::string head;
  const bool is_packed =
      source->Read(0, kGzipMagic.size(), &head).ok() && string_view(head) == kGzipMagic;
  auto bytes = std::make_unique<SourceStream>(std::move(source));
  if (!is_packed) return bytes;
  return std::make_unique<GzipStream>(std::move(bytes), name);
}

}  // namespace gmt::interop
