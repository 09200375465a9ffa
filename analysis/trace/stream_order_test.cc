#include "analysis/trace/stream_order.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <vector>

#include "tests/seeds/seeds.h"

namespace gmt::analysis {
namespace {

constexpr uint64_t kFirstStream = 0xa000, kSecondStream = 0xb000, kThirdStream = 0xc000;

class StreamOrderTest : public testing::Test {
 protected:
  // Every call begins and ends 10 after the previous one, unless given explicit times.
  HostCall Now() {
    now_ += 10;
    return Call(now_, now_);
  }
  HostCall Call(int64_t begin, int64_t end) { return {begin, end, thread_, context_}; }

  void Create(uint64_t stream, bool blocking = false) {
    order_.OnStreamCreated(Now(), stream, blocking);
  }
  void Record(uint64_t stream, uint64_t event) { order_.OnRecord(Now(), stream, event); }
  void Wait(uint64_t stream, uint64_t event) { order_.OnWait(Now(), stream, event); }
  void Ask(uint64_t stream, uint32_t token = 0) { order_.Ask(Now(), stream, token); }
  int64_t EventDone(uint64_t event) {
    order_.OnEventDone(Now(), event);
    return now_;
  }
  int64_t StreamDone(uint64_t stream) {
    order_.OnStreamDone(Now(), stream);
    return now_;
  }
  int64_t DeviceDone() {
    order_.OnDeviceDone(Now());
    return now_;
  }
  std::optional<int64_t> Done(uint32_t token = 0) {
    for (const StreamOrder::Answer& answer : order_.TakeAnswers()) {
      done_.emplace(answer.token, answer.done_ns);
    }
    const auto found = done_.find(token);
    return found == done_.end() ? std::nullopt : std::optional(found->second);
  }

  StreamOrder order_;
  std::map<uint32_t, int64_t> done_;
  int64_t now_ = 0;
  uint32_t thread_ = 1, context_ = 1;
};

TEST_F(StreamOrderTest, WorkIsDoneAfterAWaitForItsStream) {
  Ask(kFirstStream);
  EXPECT_EQ(Done(), std::nullopt);
  const int64_t end = StreamDone(kFirstStream);
  EXPECT_EQ(Done(), end);
}

TEST_F(StreamOrderTest, WaitForAnotherStreamProvesNothing) {
  Ask(kFirstStream);
  StreamDone(kSecondStream);
  EXPECT_EQ(Done(), std::nullopt);
}

TEST_F(StreamOrderTest, WaitThatBeganBeforeTheWorkWasEnqueuedProvesNothing) {
  Ask(kFirstStream);  // at 10
  order_.OnStreamDone(Call(5, 20), kFirstStream);
  EXPECT_EQ(Done(), std::nullopt);
}

TEST_F(StreamOrderTest, EventProvesWhatWasEnqueuedBeforeItsRecord) {
  Ask(kFirstStream, 0);
  Record(kFirstStream, 1);
  Ask(kFirstStream, 1);
  const int64_t end = EventDone(1);
  EXPECT_EQ(Done(0), end);
  EXPECT_EQ(Done(1), std::nullopt);
}

TEST_F(StreamOrderTest, EventRecordedAgainProvesItsLastRecord) {
  Record(kFirstStream, 1);
  Ask(kFirstStream);
  Record(kFirstStream, 1);
  const int64_t end = EventDone(1);
  EXPECT_EQ(Done(), end);
}

TEST_F(StreamOrderTest, EventRecordedAgainOnAnotherStreamProvesThatStream) {
  Ask(kFirstStream);
  Record(kFirstStream, 1);
  Record(kSecondStream, 1);
  EventDone(1);
  EXPECT_EQ(Done(), std::nullopt);
}

TEST_F(StreamOrderTest, HandleOfADestroyedEventProvesNothing) {
  Ask(kFirstStream);
  Record(kFirstStream, 1);
  order_.OnEventGone(1);
  EventDone(1);
  EXPECT_EQ(Done(), std::nullopt);
}

TEST_F(StreamOrderTest, WaitsCarryOrderFromStreamToStream) {
  Ask(kFirstStream);
  Record(kFirstStream, 1);
  Wait(kSecondStream, 1);
  Record(kSecondStream, 2);
  Wait(kThirdStream, 2);
  const int64_t end = StreamDone(kThirdStream);
  EXPECT_EQ(Done(), end);
}

TEST_F(StreamOrderTest, WaitOrdersOnlyLaterWork) {
  Ask(kFirstStream);
  Record(kSecondStream, 2);
  Record(kFirstStream, 1);
  Wait(kSecondStream, 1);
  EventDone(2);
  EXPECT_EQ(Done(), std::nullopt);
}

TEST_F(StreamOrderTest, DeviceProvesAllStreamsOfItsContext) {
  Ask(kFirstStream, 0);
  Ask(StreamOrder::kLegacy, 1);
  context_ = 2;
  Ask(kSecondStream, 2);
  Ask(StreamOrder::kLegacy, 3);
  context_ = 1;
  const int64_t end = DeviceDone();
  EXPECT_EQ(Done(0), end);
  EXPECT_EQ(Done(1), end);
  EXPECT_EQ(Done(2), std::nullopt);
  EXPECT_EQ(Done(3), std::nullopt);
}

// ---- The legacy default stream

TEST_F(StreamOrderTest, LegacyStreamComesAfterBlockingStreams) {
  Create(kFirstStream, true);
  Create(kSecondStream, false);
  Ask(kFirstStream, 0);
  Ask(kSecondStream, 1);
  Record(StreamOrder::kLegacy, 1);
  const int64_t end = EventDone(1);
  EXPECT_EQ(Done(0), end);
  EXPECT_EQ(Done(1), std::nullopt) << "a non-blocking stream goes its own way";
}

TEST_F(StreamOrderTest, BlockingStreamsComeAfterTheLegacyStream) {
  Create(kFirstStream, true);
  Create(kSecondStream, false);
  Ask(StreamOrder::kLegacy, 0);
  Record(kSecondStream, 2);
  EventDone(2);
  EXPECT_EQ(Done(0), std::nullopt);
  Record(kFirstStream, 1);
  const int64_t end = EventDone(1);
  EXPECT_EQ(Done(0), end);
}

TEST_F(StreamOrderTest, OneBlockingStreamFollowsAnotherThroughTheLegacyStream) {
  Create(kFirstStream, true);
  Create(kSecondStream, true);
  Ask(kFirstStream);
  Record(kSecondStream, 1);
  EventDone(1);
  EXPECT_EQ(Done(), std::nullopt);
  order_.OnWork(Now(), StreamOrder::kLegacy);
  Record(kSecondStream, 2);
  const int64_t end = EventDone(2);
  EXPECT_EQ(Done(), end);
}

TEST_F(StreamOrderTest, OneBlockingStreamFollowsAnotherThroughALegacyWait) {
  Create(kFirstStream, true);
  Create(kSecondStream, true);
  Record(kThirdStream, 1);
  Ask(kFirstStream);
  Wait(StreamOrder::kLegacy, 1);
  Record(kSecondStream, 2);
  const int64_t end = EventDone(2);
  EXPECT_EQ(Done(), end);
}

TEST_F(StreamOrderTest, WaitForAnEventThatWasNeverRecordedOrdersNoStreams) {
  Create(kFirstStream, true);
  Create(kSecondStream, true);
  Ask(kFirstStream);
  Wait(StreamOrder::kLegacy, 1);
  Record(kSecondStream, 2);
  EventDone(2);
  EXPECT_EQ(Done(), std::nullopt);
}

TEST_F(StreamOrderTest, HostMayReturnFromABlockingStreamBeforeTheLegacyStreamIsDone) {
  Create(kFirstStream, true);
  Ask(StreamOrder::kLegacy);
  StreamDone(kFirstStream);
  EXPECT_EQ(Done(), std::nullopt);
}

TEST_F(StreamOrderTest, BothHandlesOfTheLegacyStreamAreOneStream) {
  Ask(StreamOrder::kLegacy);
  const int64_t end = StreamDone(StreamOrder::kLegacyHandle);
  EXPECT_EQ(Done(), end);
}

TEST_F(StreamOrderTest, PerThreadStreamsAreOnePerThread) {
  Ask(StreamOrder::kPerThread);
  thread_ = 2;
  StreamDone(StreamOrder::kPerThread);
  EXPECT_EQ(Done(), std::nullopt);
  thread_ = 1;
  const int64_t end = StreamDone(StreamOrder::kPerThread);
  EXPECT_EQ(Done(), end);
}

TEST_F(StreamOrderTest, UnknownStreamsCountAsNonBlocking) {
  Ask(kFirstStream);
  Record(StreamOrder::kLegacy, 1);
  EventDone(1);
  EXPECT_EQ(Done(), std::nullopt);
}

// ---- Lives of streams, lost events

TEST_F(StreamOrderTest, NextStreamWithTheSameHandleProvesNothingAboutTheDestroyedOne) {
  Create(kFirstStream);
  Ask(kFirstStream);
  order_.OnStreamDestroyed(kFirstStream);
  Create(kFirstStream);
  StreamDone(kFirstStream);
  EXPECT_EQ(Done(), std::nullopt);
  const int64_t end = DeviceDone();
  EXPECT_EQ(Done(), end);
}

TEST_F(StreamOrderTest, AfterAGapEventsAndHandlesAreUnknown) {
  Ask(kFirstStream, 0);
  Record(kFirstStream, 1);
  Ask(StreamOrder::kLegacy, 1);
  order_.OnGap();
  EventDone(1);
  StreamDone(kFirstStream);
  EXPECT_EQ(Done(0), std::nullopt);
  EXPECT_EQ(Done(1), std::nullopt);
  const int64_t legacy = StreamDone(StreamOrder::kLegacy);  // there is only one
  EXPECT_EQ(Done(1), legacy);
  const int64_t device = DeviceDone();
  EXPECT_EQ(Done(0), device);
}

TEST_F(StreamOrderTest, ContextThatIsGoneAnswersNothing) {
  Ask(kFirstStream);
  order_.OnContextGone(1);
  StreamDone(kFirstStream);
  DeviceDone();
  EXPECT_EQ(Done(), std::nullopt);
}

TEST_F(StreamOrderTest, ContextLearntLaterCounts) {
  context_ = 0;
  Ask(kFirstStream);
  context_ = 3;
  Record(kFirstStream, 1);
  const int64_t end = DeviceDone();
  EXPECT_EQ(Done(), end);
}

// ---- Captures

TEST_F(StreamOrderTest, EventsOfACaptureOrderNothing) {
  Ask(kFirstStream);
  order_.OnCaptureBegun(Now(), kFirstStream);
  Record(kFirstStream, 1);
  Wait(kSecondStream, 1);  // kSecondStream joins the capture
  Record(kSecondStream, 2);
  Wait(kFirstStream, 2);
  order_.OnCaptureEnded(Now(), kFirstStream);
  EventDone(2);
  EventDone(1);
  StreamDone(kSecondStream);
  EXPECT_EQ(Done(), std::nullopt);
  const int64_t end = StreamDone(kFirstStream);
  EXPECT_EQ(Done(), end);
}

TEST_F(StreamOrderTest, JoinedStreamIsIndependentAgainAfterTheCapture) {
  order_.OnCaptureBegun(Now(), kFirstStream);
  Record(kFirstStream, 1);
  Wait(kSecondStream, 1);
  order_.OnCaptureEnded(Now(), kFirstStream);
  Ask(kSecondStream);
  const int64_t end = StreamDone(kSecondStream);
  EXPECT_EQ(Done(), end);
}

// ---- Calls of several threads that overlap

TEST_F(StreamOrderTest, RecordCoversNothingEnqueuedAfterItsBeginning) {
  Ask(kFirstStream);                              // at 10
  order_.OnRecord(Call(5, 20), kFirstStream, 1);  // the stream may have received it earlier
  now_ = 20;
  EventDone(1);
  EXPECT_EQ(Done(), std::nullopt);
}

TEST_F(StreamOrderTest, WaitThatOverlapsTheRecordMayHaveSeenThePreviousOne) {
  Ask(kFirstStream);
  order_.OnRecord(Call(20, 30), kFirstStream, 1);
  order_.OnWait(Call(25, 35), kSecondStream, 1);
  now_ = 40;
  StreamDone(kSecondStream);
  EXPECT_EQ(Done(), std::nullopt);
}

TEST_F(StreamOrderTest, RecordThatOverlapsAWaitMayPrecedeIt) {
  Ask(kFirstStream);
  Record(kFirstStream, 1);  // at 20
  order_.OnWait(Call(30, 40), kSecondStream, 1);
  order_.OnRecord(Call(35, 45), kSecondStream, 2);
  now_ = 50;
  EventDone(2);
  EXPECT_EQ(Done(), std::nullopt);
}

TEST_F(StreamOrderTest, SynchronisationThatOverlapsTheRecordProvesNothing) {
  Ask(kFirstStream);
  order_.OnRecord(Call(20, 30), kFirstStream, 1);
  order_.OnEventDone(Call(25, 40), 1);
  EXPECT_EQ(Done(), std::nullopt);
}

TEST_F(StreamOrderTest, LateQuestionIsAnsweredFromWhatIsKnown) {
  order_.OnStreamDone(Call(30, 40), kFirstStream);
  order_.Ask(Call(20, 20), kFirstStream, 0);
  EXPECT_EQ(Done(), 40);
}

TEST_F(StreamOrderTest, AtTheSameTimeTheOrderOfTheCallsCounts) {
  order_.OnRecord(Call(10, 10), kFirstStream, 1);
  order_.Ask(Call(10, 10), kFirstStream, 0);
  order_.OnRecord(Call(10, 10), kFirstStream, 2);
  order_.OnEventDone(Call(10, 10), 1);
  EXPECT_EQ(Done(), std::nullopt);
  order_.OnEventDone(Call(10, 10), 2);
  EXPECT_EQ(Done(), 10);
}

// ---- Random programs, compared with the graph of all enqueued work

// All work ever enqueued, each item with its direct predecessors.
class Graph {
 public:
  struct Node {
    uint64_t stream;
    int64_t t_ns;
    std::vector<size_t> before;
  };
  struct Life {
    bool blocking = false, alive = true;
  };

  void Create(uint64_t stream, bool blocking) { lives_[stream] = {blocking, true}; }
  void Destroy(uint64_t stream) { lives_[stream].alive = false; }
  size_t Enqueue(uint64_t stream, int64_t t_ns) {
    Node node{stream, t_ns, {}};
    for (size_t i = 0; i < nodes_.size(); ++i) {
      if (Follows(stream, nodes_[i].stream)) node.before.push_back(i);
    }
    nodes_.push_back(std::move(node));
    return nodes_.size() - 1;
  }
  void Record(uint64_t stream, uint64_t event, int64_t t_ns) {
    events_[event] = Enqueue(stream, t_ns);
  }
  void Wait(uint64_t stream, uint64_t event, int64_t t_ns) {
    if (!events_.contains(event)) return;
    const size_t node = Enqueue(stream, t_ns);
    nodes_[node].before.push_back(events_[event]);
  }
  void ForgetEvent(uint64_t event) { events_.erase(event); }

  struct Sync {
    enum { kStream, kEvent, kDevice } kind;
    uint64_t stream = 0;
    std::optional<size_t> node;
    int64_t t_ns = 0;
  };
  void StreamDone(uint64_t stream, int64_t t_ns) {
    std::optional<size_t> last;
    for (size_t i = 0; i < nodes_.size(); ++i) {
      if (nodes_[i].stream == stream) last = i;
    }
    syncs_.push_back({Sync::kStream, stream, last, t_ns});
  }
  void EventDone(uint64_t event, int64_t t_ns) {
    if (events_.contains(event)) syncs_.push_back({Sync::kEvent, 0, events_[event], t_ns});
  }
  void DeviceDone(int64_t t_ns) { syncs_.push_back({Sync::kDevice, 0, {}, t_ns}); }

  // Returns the end of the first synchronisation that proves all work on `stream` up to `asked`
  // done.
  std::optional<int64_t> Provable(uint64_t stream, int64_t asked) const {
    std::set<size_t> behind;  // work that certainly comes after it
    for (size_t i = 0; i < nodes_.size(); ++i) {
      const bool direct =
          nodes_[i].t_ns > asked && Followed(stream, nodes_[i].stream, nodes_[i].t_ns);
      const bool transitive = std::any_of(nodes_[i].before.begin(), nodes_[i].before.end(),
                                          [&](size_t before) { return behind.contains(before); });
      if (direct || transitive) behind.insert(i);
    }
    for (const Sync& sync : syncs_) {
      const bool later = sync.t_ns > asked;
      if (sync.kind == Sync::kDevice && later) return sync.t_ns;
      if (sync.kind == Sync::kStream && later && sync.stream == stream) return sync.t_ns;
      if (sync.node && behind.contains(*sync.node)) return sync.t_ns;
    }
    return std::nullopt;
  }
  void NoteEnd(uint64_t stream, int64_t t_ns) { ended_[stream] = t_ns; }

 private:
  bool Blocking(uint64_t stream) const {
    const auto life = lives_.find(stream);
    return life != lives_.end() && life->second.blocking && life->second.alive;
  }
  bool Follows(uint64_t later, uint64_t earlier) const {
    if (later == earlier) return true;
    if (later == StreamOrder::kLegacy) return Blocking(earlier);
    return earlier == StreamOrder::kLegacy && Blocking(later);
  }
  // Like Follows, for unobserved work on `stream`, at the time of the later node.
  bool Followed(uint64_t stream, uint64_t later, int64_t t_ns) const {
    if (later == stream) return true;
    const auto blocking = [&](uint64_t of) {
      const auto life = lives_.find(of);
      if (life == lives_.end() || !life->second.blocking) return false;
      const auto ended = ended_.find(of);
      return ended == ended_.end() || ended->second >= t_ns;
    };
    if (later == StreamOrder::kLegacy) return blocking(stream);
    return stream == StreamOrder::kLegacy && blocking(later);
  }

  std::vector<Node> nodes_;
  std::vector<Sync> syncs_;
  std::map<uint64_t, size_t> events_;
  std::map<uint64_t, Life> lives_;
  std::map<uint64_t, int64_t> ended_;
};

// One context, one thread, one call after the other. The graph numbers streams uniquely; handles
// are reused.
class Program {
 public:
  explicit Program(uint32_t seed) : random_(seed) {
    for (uint64_t handle = 1; handle <= kHandles; ++handle) Create(handle);
  }

  void Run(int calls) {
    for (int i = 0; i < calls; ++i) Step();
  }
  void Check() {
    for (const StreamOrder::Answer& answer : order_.TakeAnswers()) {
      ASSERT_TRUE(done_.emplace(answer.token, answer.done_ns).second) << "answered twice";
    }
    for (uint32_t token = 0; token < asked_.size(); ++token) {
      const auto& [stream, t_ns] = asked_[token];
      const std::optional<int64_t> provable = graph_.Provable(stream, t_ns);
      const auto found = done_.find(token);
      const std::optional<int64_t> ours =
          found == done_.end() ? std::nullopt : std::optional(found->second);
      ASSERT_EQ(ours, provable) << "asked at " << t_ns << " of stream " << stream;
    }
  }

 private:
  static constexpr uint64_t kHandles = 5, kFirstHandle = 0x1000;

  uint64_t Pick(uint64_t count) { return random_() % count; }
  HostCall Now() {
    now_ += 1 + static_cast<int64_t>(Pick(3));
    return {now_, now_, 1, 1};
  }
  uint64_t Handle(uint64_t index) { return index == 0 ? 0 : kFirstHandle + index; }
  uint64_t Id(uint64_t index) { return index == 0 ? StreamOrder::kLegacy : ids_[index]; }

  void Create(uint64_t index) {
    const bool blocking = Pick(2) == 0;
    if (ids_.contains(index)) {
      graph_.Destroy(ids_[index]);
      graph_.NoteEnd(ids_[index], now_);
    }
    ids_[index] = ++last_id_ + 100;
    graph_.Create(ids_[index], blocking);
    order_.OnStreamCreated(Now(), Handle(index), blocking);
  }

  void Step() {
    const uint64_t index = Pick(kHandles + 1), event = 1 + Pick(6);
    const uint64_t what = Pick(100);
    if (what < 25) {
      order_.OnRecord(Now(), Handle(index), event);
      graph_.Record(Id(index), event, now_);
    } else if (what < 50) {
      order_.OnWait(Now(), Handle(index), event);
      graph_.Wait(Id(index), event, now_);
    } else if (what < 58) {
      order_.OnWork(Now(), Handle(index));
      graph_.Enqueue(Id(index), now_);
    } else if (what < 86) {
      order_.Ask(Now(), Handle(index), static_cast<uint32_t>(asked_.size()));
      asked_.emplace_back(Id(index), now_);
    } else if (what < 92) {
      order_.OnEventDone(Now(), event);
      graph_.EventDone(event, now_);
    } else if (what < 95) {
      order_.OnStreamDone(Now(), Handle(index));
      graph_.StreamDone(Id(index), now_);
    } else if (what < 96) {
      order_.OnDeviceDone(Now());
      graph_.DeviceDone(now_);
    } else if (what < 98) {
      order_.OnEventGone(event);
      graph_.ForgetEvent(event);
    } else if (index != 0) {
      Create(index);
    }
  }

  std::mt19937 random_;
  StreamOrder order_;
  Graph graph_;
  std::map<uint64_t, uint64_t> ids_;  // by index of the handle
  uint64_t last_id_ = 0;
  std::vector<std::pair<uint64_t, int64_t>> asked_;
  std::map<uint32_t, int64_t> done_;
  int64_t now_ = 0;
};

TEST(StreamOrderProgramsTest, AnswersAreTheEarliestProvable) {
  ForEachSeed(SeedsUpTo(1000), [](uint32_t seed) {
    Program program(seed);
    program.Run(120);
    program.Check();
  });
}

}  // namespace
}  // namespace gmt::analysis
