#include "format/chunk_codec.h"

#include <zstd.h>

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "format/framing.h"

namespace gmt::format {
namespace {

absl::Status Decompress(const Chunk& chunk, std::string* raw) {
  const std::string& payload = chunk.payload();
  // Check the content size in the zstd frame against the chunk before reserving memory.
  if (ZSTD_getFrameContentSize(payload.data(), payload.size()) != chunk.raw_size())
    return absl::DataLossError("size");
  raw->resize(chunk.raw_size());
  const size_t size = ZSTD_decompress(raw->data(), raw->size(), payload.data(), payload.size());
  if (ZSTD_isError(size) != 0 || size != raw->size()) return absl::DataLossError("zstd");
  return absl::OkStatus();
}

}  // namespace

void ChunkPacker::FreeContext::operator()(ZSTD_CCtx_s* context) const { ZSTD_freeCCtx(context); }

ChunkPacker::ChunkPacker(Chunk::Codec codec)
    : codec_(codec), context_(codec == Chunk::ZSTD ? ZSTD_createCCtx() : nullptr) {}

bool ChunkPacker::Compress(const gmt::Body& body, int zstd_level, std::string* packed) {
  if (context_ == nullptr || !body.SerializeToString(&raw_)) return false;
  packed->resize(ZSTD_compressBound(raw_.size()));
  const size_t size = ZSTD_compressCCtx(context_.get(), packed->data(), packed->size(), raw_.data(),
                                        raw_.size(), zstd_level);
  if (ZSTD_isError(size) != 0 || size >= raw_.size()) return false;
  packed->resize(size);
  return true;
}

absl::Status ChunkPacker::Pack(gmt::Body* body, int zstd_level, Chunk* chunk) {
  const size_t size = body->ByteSizeLong();
  if (size > kMaxBodyBytes) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "a chunk of ", size, " bytes exceeds the maximum of ", kMaxBodyBytes, " bytes"));
  }
  chunk->set_raw_size(static_cast<uint32_t>(size));
  if (codec_ == Chunk::ZSTD && Compress(*body, zstd_level, chunk->mutable_payload())) {
    chunk->set_codec(Chunk::ZSTD);
    return absl::OkStatus();
  }
  chunk->clear_payload();
  chunk->set_codec(Chunk::NONE);
  *chunk->mutable_body() = std::move(*body);
  return absl::OkStatus();
}

absl::Status UnpackBody(const Chunk& chunk, gmt::Body* body) {
  if (chunk.raw_size() > kMaxBodyBytes) return absl::DataLossError("size");
  switch (chunk.codec()) {
    case Chunk::NONE:
      *body = chunk.body();
      return absl::OkStatus();
    case Chunk::ZSTD: {
      std::string raw;
      absl::Status status = Decompress(chunk, &raw);
      if (!status.ok()) return status;
      return body->ParseFromString(raw) ? absl::OkStatus() : absl::DataLossError("body");
    }
    default:
      return absl::DataLossError("codec");
  }
}

}  // namespace gmt::format
