// format/chunk_codec.h
//
// Chunk <-> Body: compression, and the bounds that keep a hostile chunk from claiming more memory
// than kMaxBodyBytes.
//
// Thread safety: pure functions.

#ifndef GMT_FORMAT_CHUNK_CODEC_H_
#define GMT_FORMAT_CHUNK_CODEC_H_

#include "absl/status/status.h"
#include "proto/gmt.pb.h"

namespace gmt::format {

// Sets codec, raw_size and payload or body of `chunk`. With Chunk::ZSTD a body that does not shrink
// is stored as it is. Fails where the body is larger than a chunk may be.
absl::Status PackBody(gmt::Body body, Chunk::Codec codec, int zstd_level, Chunk* chunk);

// Fails where the chunk's payload is not a body of the size it states. The message is one word:
// "zstd", "size", "body", "codec".
absl::Status UnpackBody(const Chunk& chunk, gmt::Body* body);

}  // namespace gmt::format

#endif  // GMT_FORMAT_CHUNK_CODEC_H_
