// Fuzzer (preset `fuzz`). For any input, reader and repair must terminate without a crash and
// without allocating memory that the size of the input does not justify, and every delivered id
// must be valid for a lookup.
//
// The input is used as a file; then as the body of a chunk in a file with correct checksums, both
// uncompressed and compressed, so that the fuzzer gets past the checksum; then as a header.
//
// Run: build/fuzz/fuzz/recording_reader_fuzz -max_len=65536 -rss_limit_mb=1024 -timeout=10 CORPUS
// tests/golden contains a recording to start with.

#include <zstd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <utility>

#include "format/framing.h"
#include "format/live_columns.h"
#include "format/recording_reader.h"
#include "format/repair.h"
#include "format/testing/recording_fixture.h"

namespace gmt::format {
namespace {

class LookUpEverything : public RecordingVisitor {
 public:
  explicit LookUpEverything(const Definitions* definitions) : definitions_(*definitions) {}

  absl::Status OnEvents(const EventBatch& batch) override {
    for (const Event& event : batch.events) {
      names_ += definitions_.string(event.heap).size() + definitions_.string(event.name).size();
      if (event.stack != 0 && ++stacks_ < kMaxStacks) {
        names_ += definitions_.StackFrames(event.stack).size();
      }
    }
    return absl::OkStatus();
  }
  absl::Status OnSnapshot(const Snapshot& snapshot) override {
    return DecodeLive(snapshot.live()).status();
  }

 private:
  static constexpr int kMaxStacks = 1000;  // limited because each may be deep

  const Definitions& definitions_;
  size_t names_ = 0;
  int stacks_ = 0;
};

// Returns whether it was read as a complete recording.
bool Read(const std::string& bytes) {
  auto reader = RecordingReader::FromBytes(bytes, "fuzz");
  if (!reader.ok()) return false;
  LookUpEverything visitor(&(*reader)->definitions());
  return (*reader)->Read(visitor).ok() && (*reader)->complete();
}

void ReadAndRepair(const std::string& bytes) {
  const bool whole = Read(bytes);
  std::string mended;
  const auto repaired = RepairBytes(bytes, "fuzz", std::make_unique<StringSink>(&mended));
  // A complete recording must remain complete.
  if (repaired.ok() && whole && !Read(mended)) std::abort();
}

std::string FileWithChunk(Chunk chunk) {
  chunk.set_sync(SyncWord(kChunkSync));
  return std::string(kFileMagic) + Frame(FrameTag::kHeader, "") +
         Frame(FrameTag::kChunk, chunk.SerializeAsString());
}

void ReadAsBody(const std::string& raw) {
  gmt::Body body;
  if (!body.ParseFromString(raw)) return;
  Chunk chunk;
  chunk.set_raw_size(static_cast<uint32_t>(raw.size()));
  *chunk.mutable_body() = std::move(body);
  ReadAndRepair(FileWithChunk(chunk));
  chunk.clear_body();
  chunk.set_codec(Chunk::ZSTD);
  std::string packed(ZSTD_compressBound(raw.size()), '\0');
  packed.resize(ZSTD_compress(packed.data(), packed.size(), raw.data(), raw.size(), 1));
  chunk.set_payload(packed);
  ReadAndRepair(FileWithChunk(chunk));
  chunk.set_payload(raw);  // not a zstd frame, or a hostile one
  ReadAndRepair(FileWithChunk(chunk));
}

}  // namespace
}  // namespace gmt::format

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace gmt::format;
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  ReadAndRepair(bytes);
  ReadAsBody(bytes);
  Read(std::string(kFileMagic) + Frame(FrameTag::kHeader, bytes));
  return 0;
}
