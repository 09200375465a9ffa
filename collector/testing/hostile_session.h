// collector/testing/hostile_session.h
//
// For tests: a traced process that works, overwrites its own session and dies, controlled by a
// string of bytes, while the collector reads the session. In every case the collector must end, and
// the recording must be readable and complete.
//
// A byte selects an operation; the bytes after it are its arguments, missing ones being 0.
// session_fuzz.cc searches for such strings; hostile_session_test.cc makes random ones.

#ifndef GMT_COLLECTOR_TESTING_HOSTILE_SESSION_H_
#define GMT_COLLECTOR_TESTING_HOSTILE_SESSION_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "collector/collector.h"
#include "collector/testing/fake_target.h"

namespace gmt::collector {

class HostileSession {
 public:
  HostileSession(const uint8_t* data, size_t size) : data_(data), left_(size) {}

  // Returns OK, or an error that the collector or the reader of its recording must not produce.
  absl::Status Play() {
    clock_.now_ns = target_.now_ns;
    auto collector =
        Collector::Start({target_.map(), &process_, &clock_},
                         std::make_unique<OutputFile>([this](const char* bytes, size_t size) {
                           bytes_.append(bytes, size);
                           return static_cast<ssize_t>(size);
                         }));
    if (!collector.ok()) return collector.status();
    collector_ = *std::move(collector);
    while (left_ > 0) Step();
    target_.Exit(0);
    if (absl::Status status = collector_->Run(); !status.ok()) return status;
    return CheckRecording();
  }

 private:
  enum Operation { kAlloc, kFree, kFail, kDie, kWord, kControl, kTail, kLook, kClock, kOperations };

  uint64_t Take(size_t bytes) {
    uint64_t value = 0;
    const size_t n = std::min(bytes, left_);
    std::memcpy(&value, data_, n);
    data_ += n;
    left_ -= n;
    return value;
  }

  // Returns a value that an attacker, or chance, might choose.
  uint64_t TakeWord() {
    const uint64_t kind = Take(1), value = Take(8);
    const uint64_t tail = target_.control().tail.load();
    const uint64_t words[] = {value,
                              ~uint64_t{0},
                              0,
                              uint64_t{1} << (value & 63),
                              value & 0xffff,
                              tail + (value & 0xff),
                              tail - (value & 0xff)};
    return words[kind % std::size(words)];
  }

  void Put(size_t offset, size_t size) {
    const uint64_t word = TakeWord();
    char* const control = reinterpret_cast<char*>(&target_.control());
    std::memcpy(control + offset % (size - 8), &word, 8);
    target_.control().closing.store(session::Handshake::kNone);
  }

  void Step() {
    constexpr uint64_t kBehindHeader = session::kControlOffset;
    switch (Take(1) % kOperations) {
      case kAlloc: {
        const uint64_t address = 0x1000 + Take(1) * 16;
        target_.Alloc(address, Take(2), {}, target_.Stack({Take(1) + 1, Take(1) + 1}));
        break;
      }
      case kFree:
        target_.Free(0x1000 + Take(1) * 16);
        break;
      case kFail:
        target_.FailAlloc(Take(2), static_cast<uint16_t>(Take(1)));
        break;
      case kDie:
        target_.DieInTheMiddle();
        break;
      case kWord:
        Put(Take(4), target_.map().header().file_size - kBehindHeader);
        break;
      case kControl:
        Put(Take(2), sizeof(session::Control));
        break;
      case kTail:
        target_.control().tail.store(TakeWord());
        break;
      case kLook:
        collector_->Round();
        break;
      case kClock:
        clock_.now_ns += TakeWord();
        break;
    }
  }

  absl::Status CheckRecording() const {
    const Recording recording = ReadBack(bytes_);
    if (!recording.status.ok()) return recording.status;
    if (!recording.complete) return absl::InternalError("the recording is not complete");
    const gmt::Losses& l = recording.facts.losses();
    const uint64_t sum = l.delivered() + l.overrun() + l.holes() + l.abandoned() + l.backlog();
    if (l.written() == sum) return absl::OkStatus();
    return absl::InternalError(absl::StrCat(l.written(), " written, ", sum, " accounted for"));
  }

  const uint8_t* data_;
  size_t left_;
  FakeTarget target_;
  Target process_{target_.map().header(), -1};
  FakeClock clock_;
  std::string bytes_;
  std::unique_ptr<Collector> collector_;
};

}  // namespace gmt::collector

#endif  // GMT_COLLECTOR_TESTING_HOSTILE_SESSION_H_
