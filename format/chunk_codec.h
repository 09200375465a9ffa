// format/chunk_codec.h
//
// Chunk <-> Body: compression, and the bounds that keep a hostile chunk from claiming more memory
// than kMaxBodyBytes.
//
// Thread safety: a ChunkPacker, one thread at a time; UnpackBody() is a pure function.

#ifndef GMT_FORMAT_CHUNK_CODEC_H_
#define GMT_FORMAT_CHUNK_CODEC_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "proto/gmt.pb.h"

struct ZSTD_CCtx_s;

namespace gmt::format {

// Keeps the compressor's tables and buffers from one chunk to the next.
class ChunkPacker {
 public:
  // With Chunk::ZSTD a body that does not shrink is stored as it is.
  explicit ChunkPacker(Chunk::Codec codec);

  // Sets codec, raw_size and payload or body of `chunk`; what becomes of `body` is not specified.
  // Fails where the body is larger than a chunk may be.
  absl::Status Pack(gmt::Body* body, int zstd_level, Chunk* chunk);

 private:
  bool Compress(const gmt::Body& body, int zstd_level, std::string* packed);

  struct FreeContext {
    void operator()(ZSTD_CCtx_s* context) const;
  };
  const Chunk::Codec codec_;
  std::unique_ptr<ZSTD_CCtx_s, FreeContext> context_;
  std::string raw_;
};

// Fails where the chunk's payload is not a body of the size it states. The message is one word:
// "zstd", "size", "body", "codec".
absl::Status UnpackBody(const Chunk& chunk, gmt::Body* body);

}  // namespace gmt::format

#endif  // GMT_FORMAT_CHUNK_CODEC_H_
