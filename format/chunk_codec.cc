#include "format/chunk_codec.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/wire_format_lite.h>
#include <zstd.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "format/framing.h"

namespace gmt::format {
namespace {

using google::protobuf::internal::WireFormatLite;
using google::protobuf::io::CodedInputStream;

// Shorter columns are compressed together with the next one, because each block has its own table.
constexpr int kColumnBytes = 1024;

// Appends the positions at which long columns end, in ascending order, in a serialised message.
void AppendColumnEnds(const google::protobuf::Descriptor& type, CodedInputStream* in,
                      std::vector<size_t>* ends) {
  while (const uint32_t tag = in->ReadTag()) {
    if (WireFormatLite::GetTagWireType(tag) != WireFormatLite::WIRETYPE_LENGTH_DELIMITED) {
      if (!WireFormatLite::SkipField(in, tag)) return;
      continue;
    }
    int size = 0;
    if (!in->ReadVarintSizeAsInt(&size)) return;
    const auto* field = type.FindFieldByNumber(WireFormatLite::GetTagFieldNumber(tag));
    if (field != nullptr && field->message_type() != nullptr && !field->is_repeated()) {
      const CodedInputStream::Limit limit = in->PushLimit(size);
      AppendColumnEnds(*field->message_type(), in, ends);
      in->PopLimit(limit);
      continue;
    }
    if (!in->Skip(size)) return;
    if (size >= kColumnBytes) ends->push_back(static_cast<size_t>(in->CurrentPosition()));
  }
}

std::vector<size_t> ColumnEnds(const gmt::Body& body, const std::string& raw) {
  std::vector<size_t> ends;
  CodedInputStream in(reinterpret_cast<const uint8_t*>(raw.data()), static_cast<int>(raw.size()));
  AppendColumnEnds(*body.GetDescriptor(), &in, &ends);
  return ends;
}

absl::Status Decompress(const Chunk& chunk, gmt::Body* body) {
  const std::string& payload = chunk.payload();
  // Check the content size in the zstd frame against the chunk before reserving memory.
  if (ZSTD_getFrameContentSize(payload.data(), payload.size()) != chunk.raw_size())
    return absl::DataLossError("size");
  const auto raw = std::make_unique_for_overwrite<char[]>(chunk.raw_size());
  const size_t size = ZSTD_decompress(raw.get(), chunk.raw_size(), payload.data(), payload.size());
  if (ZSTD_isError(size) != 0 || size != chunk.raw_size()) return absl::DataLossError("zstd");
  return body->ParseFromArray(raw.get(), static_cast<int>(size)) ? absl::OkStatus()
                                                                 : absl::DataLossError("body");
}

}  // namespace

void ChunkPacker::FreeContext::operator()(ZSTD_CCtx_s* context) const { ZSTD_freeCCtx(context); }

ChunkPacker::ChunkPacker(Chunk::Codec codec)
    : codec_(codec), context_(codec == Chunk::ZSTD ? ZSTD_createCCtx() : nullptr) {}

bool ChunkPacker::Compress(const gmt::Body& body, int zstd_level, std::string* packed) {
  if (context_ == nullptr) return false;
  raw_.resize(static_cast<size_t>(body.GetCachedSize()));
  body.SerializeWithCachedSizesToArray(reinterpret_cast<uint8_t*>(raw_.data()));
  ZSTD_CCtx_reset(context_.get(), ZSTD_reset_session_only);
  ZSTD_CCtx_setParameter(context_.get(), ZSTD_c_compressionLevel, zstd_level);
  ZSTD_CCtx_setPledgedSrcSize(context_.get(), raw_.size());
  if (packed_.size() < raw_.size()) packed_.resize(raw_.size());
  ZSTD_outBuffer out = {packed_.data(), raw_.size(), 0};
  ZSTD_inBuffer in = {raw_.data(), 0, 0};
  // Flushing ends a block, and each block has a table of the frequencies of its bytes.
  for (const size_t end : ColumnEnds(body, raw_)) {
    in.size = end;
    if (ZSTD_compressStream2(context_.get(), &out, &in, ZSTD_e_flush) != 0) return false;
  }
  in.size = raw_.size();
  if (ZSTD_compressStream2(context_.get(), &out, &in, ZSTD_e_end) != 0) return false;
  packed->assign(packed_.data(), out.pos);
  return packed->size() < raw_.size();
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
    case Chunk::ZSTD:
      return Decompress(chunk, body);
    default:
      return absl::DataLossError("codec");
  }
}

}  // namespace gmt::format
