// format/testing/recording_fixture.h
//
// RecordingFixture: for tests that write a recording in memory, damage it and read it back.

#ifndef GMT_FORMAT_TESTING_RECORDING_FIXTURE_H_
#define GMT_FORMAT_TESTING_RECORDING_FIXTURE_H_

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "format/definitions_builder.h"
#include "format/recording_reader.h"
#include "format/recording_writer.h"
#include "proto/gmt.pb.h"

namespace gmt::format {

// Appends to a string that must outlive it. Records the size of each write on request.
class StringSink : public Sink {
 public:
  explicit StringSink(std::string* bytes, std::vector<size_t>* writes = nullptr)
      : bytes_(bytes), writes_(writes) {}
  absl::Status Append(absl::string_view bytes) override {
    bytes_->append(bytes.data(), bytes.size());
    if (writes_ != nullptr) writes_->push_back(bytes.size());
    return absl::OkStatus();
  }
  absl::Status Sync() override { return absl::OkStatus(); }

 private:
  std::string* const bytes_;
  std::vector<size_t>* const writes_;
};

// Stores everything that a reader delivers.
struct Collected : RecordingVisitor {
  absl::Status OnHeader(const Header& header) override {
    headers.push_back(header);
    return absl::OkStatus();
  }
  absl::Status OnEvents(const EventBatch& batch) override {
    for (const Event& event : batch.events) {
      if (event.kind == GAP) gaps.push_back(batch.gaps[event.detail]);
      if (event.kind == SAMPLE) samples.push_back(batch.samples[event.detail]);
      if (event.kind == OTHER_KIND) others.push_back(batch.others[event.detail]);
      if (event.kind == SNAPSHOT_TAKEN) taken.push_back(batch.snapshots[event.detail]);
      events.push_back(event);
    }
    return absl::OkStatus();
  }
  absl::Status OnSnapshot(const Snapshot& snapshot) override {
    snapshots.push_back(snapshot);
    return absl::OkStatus();
  }
  absl::Status OnFacts(const Facts& value) override {
    facts.push_back(value);
    return absl::OkStatus();
  }
  absl::Status OnLosses(const Losses& value) override {
    losses.push_back(value);
    return absl::OkStatus();
  }

  std::vector<Header> headers;
  std::vector<Event> events;
  std::vector<Gap> gaps;
  std::vector<Sample> samples;
  std::vector<std::string> others;
  std::vector<SnapshotTaken> taken;
  std::vector<Snapshot> snapshots;
  std::vector<Facts> facts;
  std::vector<Losses> losses;
};

class RecordingFixture : public testing::Test {
 protected:
  // Starts another recording; what was written before remains in `bytes_`.
  void StartRecording(WriterOptions options = {}) {
    Header header;
    header.set_tool_version("test");
    header.set_pid(4711);
    auto writer =
        RecordingWriter::Create(std::make_unique<StringSink>(&bytes_, &writes_), header, options);
    ASSERT_TRUE(writer.ok()) << writer.status();
    writer_ = *std::move(writer);
  }

  Event Alloc(uint64_t address, uint64_t size) {
    Event event;
    event.kind = ALLOC;
    event.present = kHasTime | kHasThread | kHasAddress | kHasSize | kHasDevice;
    event.t_ns = now_ += 100;
    event.thread = 11;
    event.heap = writer_->definitions().InternString("driver");
    event.memory = DEVICE;
    event.address = address;
    event.size = size;
    return event;
  }

  Event Free(uint64_t address) {
    Event event;
    event.kind = FREE;
    event.present = kHasTime | kHasThread | kHasAddress | kHasDevice;
    event.t_ns = now_ += 100;
    event.thread = 11;
    event.heap = writer_->definitions().InternString("driver");
    event.address = address;
    return event;
  }

  Event Role(uint64_t address, uint32_t roles) {
    Event event = Free(address);
    event.kind = ROLE;
    event.roles = roles;
    return event;
  }

  void Add(const Event& event) { ASSERT_TRUE(writer_->Add(event).ok()); }
  void Flush() { ASSERT_TRUE(writer_->Flush().ok()); }
  void Finish() { ASSERT_TRUE(writer_->Finish().ok()); }

  // Returns the size of the file after `count` writes, which is the end of a chunk.
  size_t SizeAfterWrites(size_t count) const {
    size_t size = 0;
    for (size_t at = 0; at < count; ++at) size += writes_[at];
    return size;
  }

  // Reads `bytes` to the end. The reader remains available as reader_.
  Collected Read(const std::string& bytes, Returns returns = Returns::kCompleted) {
    Collected collected;
    auto reader = RecordingReader::FromBytes(bytes, "test.gmt");
    open_status_ = reader.status();
    if (!reader.ok()) return collected;
    reader_ = *std::move(reader);
    EXPECT_TRUE(reader_->Read(collected, returns).ok());
    return collected;
  }

  // Returns a complete recording with `chunks` chunks of two events each.
  std::string SmallRecording(int chunks, WriterOptions options = {}) {
    StartRecording(options);
    for (int chunk = 0; chunk < chunks; ++chunk) {
      Add(Alloc(0x7000 + 0x100 * static_cast<uint64_t>(chunk), 256));
      Add(Free(0x7000 + 0x100 * static_cast<uint64_t>(chunk)));
      Flush();
    }
    Finish();
    return bytes_;
  }

  std::string bytes_;
  std::vector<size_t> writes_;
  std::unique_ptr<RecordingWriter> writer_;
  std::unique_ptr<RecordingReader> reader_;
  absl::Status open_status_;
  int64_t now_ = 0;
};

}  // namespace gmt::format

#endif  // GMT_FORMAT_TESTING_RECORDING_FIXTURE_H_
