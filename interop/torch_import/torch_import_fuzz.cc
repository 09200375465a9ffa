// A fuzzer (preset `fuzz`): for any bytes, the pickle reader and the import of PyTorch snapshots
// return without a crash, in bounded memory, and the import of a snapshot gives a readable
// recording.
//
// Run: build/fuzz/fuzz/torch_import_fuzz -max_len=65536 -rss_limit_mb=1024 -timeout=10 CORPUS
// tests/golden has snapshots to begin with.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>

#include "format/recording_reader.h"
#include "format/recording_writer.h"
#include "format/testing/recording_fixture.h"
#include "interop/event_log/writer_target.h"
#include "interop/torch_import/torch_import.h"

namespace gmt::interop {
namespace {

constexpr PickleLimits kLimits = {.bytes = 8 << 20, .memory = 256 << 20, .text = 1 << 20};

void Import(std::string pickle) {
  auto snapshot = TorchImport::Open(format::BytesInMemory(std::move(pickle)), "fuzz", kLimits);
  if (!snapshot.ok()) return;
  std::string recording;
  auto writer = format::RecordingWriter::Create(std::make_unique<format::StringSink>(&recording),
                                                (*snapshot)->header(), {});
  if (!writer.ok()) std::abort();
  WriterTarget target(writer->get());
  if (!(*snapshot)->Read((*writer)->definitions(), target).ok()) return;
  if (!(*writer)->Finish().ok()) std::abort();
  auto reader = format::RecordingReader::FromBytes(std::move(recording), "fuzz");
  format::Collected all;
  if (!reader.ok() || !(*reader)->Read(all).ok() || !(*reader)->complete()) std::abort();
}

}  // namespace
}  // namespace gmt::interop

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  gmt::interop::Import(std::string(reinterpret_cast<const char*>(data), size));
  return 0;
}
