// format/chunk_codec.h
//
// Converts between Chunk and Body: compression, and limits that keep a hostile chunk from claiming
// more memory than kMaxBodyBytes.
//
// Thread safety: a ChunkPacker may be used by one thread at a time; UnpackBody() is a pure
// function.

#ifndef GMT_FORMAT_CHUNK_CODEC_H_
#define GMT_FORMAT_CHUNK_CODEC_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "proto/gmt.pb.h"

struct ZSTD_CCtx_s;

namespace gmt::format {

// Packs chunks and reuses the compressor's tables and buffers between them.
class ChunkPacker {
 public:
  // With Chunk::ZSTD, a body that compression does not shrink is stored uncompressed.
  explicit ChunkPacker(Chunk::Codec codec);

  // Sets codec, raw_size and payload or body of `chunk`; `body` is unspecified afterwards. Fails if
  // the body exceeds the maximum size of a chunk. The zstd frame has a block for each long column.
  absl::Status Pack(gmt::Body* body, int zstd_level, Chunk* chunk);

 private:
  // Returns false if that does not shrink it. REQUIRES: ByteSizeLong() has been called.
  bool Compress(const gmt::Body& body, int zstd_level, std::string* packed);

  struct FreeContext {
    void operator()(ZSTD_CCtx_s* context) const;
  };
  const Chunk::Codec codec_;
  std::unique_ptr<ZSTD_CCtx_s, FreeContext> context_;
  std::string raw_, packed_;
};

// Fails if the chunk's payload is not a body of the stated size. The error message is one word:
// "zstd", "size", "body" or "codec".
absl::Status UnpackBody(const Chunk& chunk, gmt::Body* body);

}  // namespace gmt::format

#endif  // GMT_FORMAT_CHUNK_CODEC_H_
