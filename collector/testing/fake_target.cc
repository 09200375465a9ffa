#include "collector/testing/fake_target.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "collector/events/event_translator.h"
#include "collector/events/live_model.h"
#include "format/definitions_builder.h"
#include "format/live_columns.h"
#include "proto/gmt.pb.h"

namespace gmt::collector {

using session::Kind;
using session::Record;

void FakeClock::Wait(uint64_t ns) {
  now_ns += ns;
  while_waiting();
}

session::SessionSizes FakeTarget::SmallSizes() {
  session::SessionSizes sizes;
  sizes.ring = 1024;
  sizes.live = 4096;
  sizes.live_levels = 0;
  sizes.stack_index = 256;
  sizes.arena = 4096;
  sizes.arena_growth = 0;
  sizes.text_index = 64;
  sizes.code_index = 64;
  sizes.modules = 16;
  sizes.in_flight = 16;
  return sizes;
}

FakeTarget::FakeTarget(const session::SessionSizes& sizes, const std::string& options,
                       const std::string& output, const std::string& collector) {
  char directory[] = "/tmp/gmt-collector-XXXXXX";
  directory_ = mkdtemp(directory);
  setenv("GPUMEMTRACE_DIR", directory_.c_str(), 1);
  char buffer[4096];
  session::InfoWriter info(buffer, sizeof(buffer));
  info.Add("arg", "python");
  info.Add("arg", "train.py");
  info.Add("exe", "/usr/bin/python3");
  info.Add("run_id", "run-7");
  info.Add("api", "1 cudaMalloc");
  info.Add("api", "2 cudaFree");
  info.Add("setting", "CUDA_VISIBLE_DEVICES=3");
  if (!options.empty()) info.Add("option", options);
  if (!output.empty()) info.Add("output", output);
  if (!collector.empty()) info.Add("collector", collector);
  if (session::CreateSession(sizes, info.text(), &session_) != 0) abort();
  ring_ = session_.map.ring_writer();
  live_ = session_.map.live();
  now_ns = start_ns();
}

FakeTarget::~FakeTarget() {
  munmap(session_.base, session_.size);
  close(session_.fd);
  std::filesystem::remove_all(directory_);
}

Record FakeTarget::NewRecord(Kind kind, Layer layer, uint16_t api, uint64_t value) {
  Record record;
  record.kind = kind;
  record.space = layer.space;
  record.memory = layer.memory;
  record.api = api;
  record.device = layer.memory == session::Memory::kPinned ? session::kNoDevice : 0;
  record.value = value;
  record.thread = static_cast<uint32_t>(getpid());
  record.time_ns = now_ns += 1000;
  return record;
}

uint64_t FakeTarget::Write(const Record& record) {
  const auto reservation = ring_.Reserve();
  ring_.Commit(reservation, session::Pack(record));
  return reservation.ticket;
}

uint64_t FakeTarget::Alloc(uint64_t address, uint64_t size, Layer layer, uint32_t stack) {
  Record record = NewRecord(Kind::kAlloc, layer, kMalloc, address);
  record.size = size;
  record.stack = stack;
  record.duration_ns = 900;
  const auto reservation = ring_.Reserve();
  if (live_.Insert(layer.space, address, MakeLive(record, reservation.ticket)) ==
      session::LiveTable::Result::kFull) {
    control().counters[session::kLiveFull].fetch_add(1);
  }
  ring_.Commit(reservation, session::Pack(record));
  return reservation.ticket;
}

uint64_t FakeTarget::Free(uint64_t address, Layer layer) {
  const Record record = NewRecord(Kind::kFree, layer, kFree, address);
  const auto reservation = ring_.Reserve();
  session::LiveValue live;
  live_.Erase(layer.space, address, &live);
  ring_.Commit(reservation, session::Pack(record));
  return reservation.ticket;
}

uint64_t FakeTarget::FreeDone(uint64_t address, uint16_t result, const session::LiveValue& freed) {
  Record record = NewRecord(Kind::kFreeDone, {}, kFree, address);
  record.result = result;
  record.duration_ns = 100;
  const auto reservation = ring_.Reserve();
  session::LiveValue again = freed;
  again.ticket = reservation.ticket;
  if (result != 0) live_.Insert(session::Space::kDevice, address, again);
  ring_.Commit(reservation, session::Pack(record));
  return reservation.ticket;
}

uint64_t FakeTarget::FailAlloc(uint64_t size, uint16_t result) {
  Record record = NewRecord(Kind::kAllocFailed, {}, kMalloc, 0);
  record.size = size;
  record.result = result;
  return Write(record);
}

void FakeTarget::Exit(int code) {
  control().exit_code.store(code);
  control().exit_kind.store(session::ExitKind::kExited);
  control().closing.store(session::Handshake::kDone);
}

uint32_t FakeTarget::Code(const session::CodeObject& code) {
  return session_.map.codes().Intern(code);
}

uint32_t FakeTarget::Stack(const std::vector<uint64_t>& frames, uint16_t flags,
                           const std::vector<uint32_t>& codes) {
  session::StackTable::Buffer stack;
  stack.fingerprint = 0;
  std::copy(frames.begin(), frames.end(), stack.frames);
  return session_.map.stacks().Add(stack, static_cast<uint32_t>(frames.size()), flags,
                                   session_.map.modules().generation(), codes.data(), 0);
}

void FakeTarget::Map(const std::string& path, uint64_t start, uint64_t end) {
  session::ModuleRecord record = {};
  record.start = record.bias = start;
  record.end = end;
  record.seen_ns = now_ns;
  record.path_size = static_cast<uint32_t>(path.size());
  std::memcpy(record.path, path.data(), path.size());
  session_.map.modules().Append(record, 1);
}

std::map<uint64_t, uint64_t> Recording::LiveByEvents() const {
  std::map<uint64_t, uint64_t> live;
  for (const format::Event& event : events) {
    const Effect effect = EffectOf(static_cast<Kind>(event.kind));
    if (event.kind > gmt::SAMPLE || effect == Effect::kNone) continue;
    if (effect == Effect::kAcquires) {
      live[event.address] = event.size;
    } else {
      live.erase(event.address);
    }
  }
  return live;
}

std::map<uint64_t, uint64_t> Recording::LiveOf(const gmt::Snapshot& snapshot) {
  std::map<uint64_t, uint64_t> live;
  const auto rows = format::DecodeLive(snapshot.live());
  for (const format::Event& row : *rows) live[row.address] = row.size;
  return live;
}

int64_t Recording::TimeOf(const gmt::Snapshot& snapshot, size_t row) {
  return format::DecodeLive(snapshot.live())->at(row).t_ns;
}

const gmt::Snapshot* Recording::FindSnapshot(const std::string& name) const {
  for (const gmt::Snapshot& snapshot : snapshots) {
    if (snapshot.name() == name) return &snapshot;
  }
  return nullptr;
}

size_t Recording::Count(gmt::Kind kind) const {
  return static_cast<size_t>(std::count_if(
      events.begin(), events.end(), [kind](const format::Event& e) { return e.kind == kind; }));
}

namespace {

class Everything : public format::RecordingVisitor {
 public:
  explicit Everything(Recording* recording) : recording_(recording) {}
  absl::Status OnHeader(const gmt::Header& header) override {
    recording_->header = header;
    return absl::OkStatus();
  }
  absl::Status OnEvents(const format::EventBatch& batch) override {
    recording_->events.insert(recording_->events.end(), batch.events.begin(), batch.events.end());
    recording_->gaps.insert(recording_->gaps.end(), batch.gaps.begin(), batch.gaps.end());
    return absl::OkStatus();
  }
  absl::Status OnSnapshot(const gmt::Snapshot& snapshot) override {
    recording_->snapshots.push_back(snapshot);
    return absl::OkStatus();
  }
  absl::Status OnAggregates(const gmt::Aggregates& aggregates) override {
    recording_->aggregates.push_back(aggregates);
    return absl::OkStatus();
  }
  absl::Status OnFacts(const gmt::Facts& facts) override {
    recording_->facts.MergeFrom(facts);
    return absl::OkStatus();
  }

 private:
  Recording* recording_;
};

}  // namespace

Recording ReadBack(const std::string& bytes) {
  Recording recording;
  auto reader = format::RecordingReader::FromBytes(bytes, "test.gmt");
  recording.status = reader.status();
  if (!reader.ok()) return recording;
  recording.reader = *std::move(reader);
  Everything everything(&recording);
  recording.status = recording.reader->Read(everything);
  recording.complete = recording.reader->complete();
  return recording;
}

std::string FileBytes(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream bytes;
  bytes << file.rdbuf();
  return bytes.str();
}

}  // namespace gmt::collector
