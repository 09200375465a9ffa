// A fuzzer (preset `fuzz`): for any text, the event log's reader returns without a crash, and
// printing the result as a log and reading it again does not change it.
//
// Run: build/fuzz/fuzz/event_log_fuzz -max_len=65536 -rss_limit_mb=1024 -timeout=10 CORPUS
// tests/golden has a log to begin with.

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>

#include "format/recording_reader.h"
#include "format/recording_writer.h"
#include "format/testing/recording_fixture.h"
#include "interop/event_log/event_log.h"
#include "interop/event_log/writer_target.h"

namespace gmt::interop {
namespace {

class Nothing : public format::RecordingVisitor {
 public:
  absl::Status OnEvents(const format::EventBatch&) override { return absl::OkStatus(); }
};

// Returns the recording of a log, or "" if the log is rejected.
std::string Record(const std::string& log) {
  std::string bytes;
  auto writer =
      format::RecordingWriter::Create(std::make_unique<format::StringSink>(&bytes), Header(), {});
  if (!writer.ok()) std::abort();
  WriterTarget import(writer->get());
  Notes notes;
  const absl::Status status =
      ReadEventLog(*format::BytesInMemory(log), "fuzz", (*writer)->definitions(), import, &notes);
  if (!status.ok() || !(*writer)->Finish().ok()) return "";
  return bytes;
}

std::string Print(const std::string& recording) {
  std::string log;
  Nothing nothing;
  auto first = format::RecordingReader::FromBytes(recording, "fuzz");
  auto second = format::RecordingReader::FromBytes(recording, "fuzz");
  if (!first.ok() || !second.ok() || !(*first)->Read(nothing).ok()) std::abort();
  if (!(*first)->complete()) std::abort();
  EventLogWriter writer(&(*first)->definitions(), [&](absl::string_view line) {
    log.append(line.data(), line.size());
    log.push_back('\n');
    return absl::OkStatus();
  });
  if (!(*second)->Read(writer, format::Returns::kAsRecorded).ok()) std::abort();
  writer.End().IgnoreError();
  return log;
}

}  // namespace
}  // namespace gmt::interop

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace gmt::interop;
  const std::string recording = Record(std::string(reinterpret_cast<const char*>(data), size));
  if (recording.empty()) return 0;
  const std::string once = Print(recording);
  const std::string twice = Print(Record(once));
  if (once != twice) {
    std::fprintf(stderr, "printed first:\n%s\nprinted then:\n%s\n", once.c_str(), twice.c_str());
    std::abort();
  }
  return 0;
}
