// A fuzzer (clang, -DGMT_BUILD_FUZZERS=ON): whatever the bytes are, the reader ends, without a
// crash, and every id it hands out can be looked up. Run: recording_reader_fuzz -max_len=65536
// CORPUS

#include <cstddef>
#include <cstdint>
#include <string>

#include "format/live_columns.h"
#include "format/recording_reader.h"

namespace {

class LookUpEverything : public gmt::format::RecordingVisitor {
 public:
  explicit LookUpEverything(const gmt::format::Definitions* definitions)
      : definitions_(*definitions) {}

  absl::Status OnEvents(const gmt::format::EventBatch& batch) override {
    for (const gmt::format::Event& event : batch.events) {
      names_ += definitions_.string(event.heap).size() + definitions_.string(event.name).size();
      if (event.stack != 0) names_ += definitions_.StackFrames(event.stack).size();
    }
    return absl::OkStatus();
  }
  absl::Status OnSnapshot(const gmt::Snapshot& snapshot) override {
    return gmt::format::DecodeLive(snapshot.live()).status();
  }

 private:
  const gmt::format::Definitions& definitions_;
  size_t names_ = 0;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  auto reader = gmt::format::RecordingReader::FromBytes(
      std::string(reinterpret_cast<const char*>(data), size), "fuzz");
  if (!reader.ok()) return 0;
  LookUpEverything visitor(&(*reader)->definitions());
  (*reader)->Read(visitor).IgnoreError();
  return 0;
}
