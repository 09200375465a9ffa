#include "analysis/trace/stream_order.h"

#include <algorithm>

namespace gmt::analysis {
namespace {

// Knowledge beyond these bounds is dropped, which makes answers later, never wrong.
constexpr size_t kMaxReached = 512;              // streams in a clock
constexpr size_t kMaxEvents = size_t{1} << 20;   // handles
constexpr size_t kMaxWaiting = size_t{1} << 20;  // questions of one stream
constexpr size_t kShortList = 64;                // streams that a context keeps without checking

}  // namespace

// ---- Streams ------------------------------------------------------------------------------------

uint32_t StreamOrder::NewStream(uint32_t context, bool blocking, bool legacy) {
  const auto index = static_cast<uint32_t>(streams_.size());
  Stream& stream = streams_.emplace_back();
  stream.blocking = blocking;
  stream.legacy = legacy;
  Adopt(index, context);
  return index;
}

void StreamOrder::Adopt(uint32_t stream, uint32_t context) {
  streams_[stream].context = context;
  Context& own = contexts_[context];
  own.streams.push_back(stream);
  if (!streams_[stream].blocking) return;
  own.blocking.insert(std::lower_bound(own.blocking.begin(), own.blocking.end(), stream), stream);
}

void StreamOrder::Close(uint32_t stream) {
  streams_[stream].open = false;
  streams_[stream].capture = 0;
}

uint32_t StreamOrder::LegacyOf(uint32_t context) {
  if (context == last_legacy_context_) return last_legacy_;
  uint32_t stream = contexts_[context].legacy - 1;
  if (contexts_[context].legacy == 0) {
    stream = NewStream(context, false, true);
    contexts_[context].legacy = stream + 1;
  }
  last_legacy_context_ = context;
  return last_legacy_ = stream;
}

uint32_t StreamOrder::StreamOf(const HostCall& call, uint64_t handle) {
  const bool by_default = handle <= kPerThread;
  if (by_default && call.context == 0) return kNoStream;
  if (by_default && handle != kPerThread) return LegacyOf(call.context);
  if (by_default) {
    const auto [it, is_new] = per_thread_.try_emplace({call.context, call.thread});
    if (is_new) it->second = NewStream(call.context, true, false);
    return it->second;
  }
  const auto [it, is_new] = by_handle_.try_emplace(handle);
  if (is_new) {
    it->second = NewStream(call.context, false, false);
  } else if (call.context != 0 && streams_[it->second].context == 0) {
    std::erase(contexts_[0].streams, it->second);
    std::erase(contexts_[0].blocking, it->second);
    Adopt(it->second, call.context);
  }
  return it->second;
}

void StreamOrder::OnStreamCreated(const HostCall& call, uint64_t stream, bool blocking) {
  OnStreamDestroyed(stream);
  by_handle_[stream] = NewStream(call.context, blocking, false);
}

// Its work continues, and questions about it are answered by what waits for that work.
void StreamOrder::OnStreamDestroyed(uint64_t stream) {
  const auto known = by_handle_.find(stream);
  if (known == by_handle_.end()) return;
  // CUDA does not promise that the legacy stream waits for the work of a destroyed stream.
  std::erase(contexts_[streams_[known->second].context].blocking, known->second);
  Close(known->second);
  by_handle_.erase(known);
}

void StreamOrder::OnContextGone(uint32_t context) {
  const auto gone = contexts_.find(context);
  if (gone == contexts_.end()) return;
  for (uint32_t stream : gone->second.streams) {
    streams_[stream].questions.clear();
    streams_[stream].next = 0;
    Close(stream);
  }
  absl::erase_if(by_handle_, [&](const auto& e) { return streams_[e.second].context == context; });
  absl::erase_if(per_thread_, [&](const auto& e) { return e.first.first == context; });
  absl::erase_if(events_, [&](const auto& e) {
    return e.second.capture == 0 && streams_[e.second.stream].context == context;
  });
  contexts_.erase(gone);
  last_legacy_context_ = 0;
}

void StreamOrder::OnGap() {
  for (const auto& [handle, stream] : by_handle_) Close(stream);
  for (const auto& [key, stream] : per_thread_) Close(stream);
  events_.clear();
  by_handle_.clear();
  per_thread_.clear();
  for (auto& [number, context] : contexts_) context.blocking.clear();
}

// ---- Clocks -------------------------------------------------------------------------------------

StreamOrder::Clock StreamOrder::AsOf(const Stream& stream, int64_t t_ns) {
  return stream.changed_ns <= t_ns ? stream.clock : nullptr;
}

StreamOrder::Clock StreamOrder::Joined(const Clock& a, const Clock& b) const {
  if (a == b || b == nullptr) return a;
  if (a == nullptr) return b;
  std::vector<Reach> joined;
  joined.reserve(a->size() + b->size());
  const auto add = [&](const Reach& reach) {
    if (reach.until > streams_[reach.stream].done) joined.push_back(reach);
  };
  auto i = a->begin(), j = b->begin();
  while (i != a->end() || j != b->end()) {
    if (j == b->end() || (i != a->end() && i->stream < j->stream)) {
      add(*i++);
    } else if (i == a->end() || j->stream < i->stream) {
      add(*j++);
    } else {
      add({i->stream, std::max(i->until, j->until)});
      ++i, ++j;
    }
  }
  if (joined.size() > kMaxReached) {
    const auto newer = [](const Reach& x, const Reach& y) { return x.until > y.until; };
    std::nth_element(joined.begin(), joined.begin() + kMaxReached / 2, joined.end(), newer);
    joined.resize(kMaxReached / 2);
    std::sort(joined.begin(), joined.end(),
              [](const Reach& x, const Reach& y) { return x.stream < y.stream; });
  }
  if (joined.empty()) return nullptr;
  return std::make_shared<const std::vector<Reach>>(std::move(joined));
}

StreamOrder::Clock StreamOrder::With(const Clock& clock, Reach reach) const {
  if (reach.until <= streams_[reach.stream].done) return clock;
  return Joined(clock, std::make_shared<const std::vector<Reach>>(1, reach));
}

// O3. Returns what precedes an action, not counting its own stream's earlier work.
StreamOrder::Clock StreamOrder::Act(uint32_t stream, Moment begin, int64_t end_ns) {
  const bool legacy = streams_[stream].legacy;
  const Clock before = AsOf(streams_[stream], begin.t_ns);
  if (!legacy && !streams_[stream].blocking) return before;
  const Clock implied = legacy ? ImpliedByBlocking(stream, begin) : ImpliedByLegacy(stream, begin);
  if (implied == nullptr) return before;
  Stream& own = streams_[stream];
  own.clock = Joined(own.clock, implied);
  own.changed_ns = std::max(own.changed_ns, end_ns);
  return Joined(before, implied);
}

StreamOrder::Clock StreamOrder::ImpliedByBlocking(uint32_t legacy, Moment begin) {
  const std::vector<uint32_t>& blocking = contexts_[streams_[legacy].context].blocking;
  std::vector<Reach> all;
  for (uint32_t other : blocking) all.push_back({other, begin});
  Clock implied;
  for (uint32_t other : blocking) {
    Stream& given = streams_[other];
    if (given.given == given.version || given.changed_ns > begin.t_ns) continue;
    given.given = given.version;
    implied = Joined(implied, given.clock);
  }
  if (all.empty()) return nullptr;
  ++streams_[legacy].version;
  return Joined(std::make_shared<const std::vector<Reach>>(std::move(all)), implied);
}

StreamOrder::Clock StreamOrder::ImpliedByLegacy(uint32_t stream, Moment begin) {
  const uint32_t legacy = LegacyOf(streams_[stream].context);
  const Clock implied = With(nullptr, {legacy, begin});
  const Stream& other = streams_[legacy];
  Stream& own = streams_[stream];
  if (own.taken_in == other.version || other.changed_ns > begin.t_ns) return implied;
  own.taken_in = other.version;
  ++own.version;
  return Joined(implied, other.clock);
}

// ---- Work ---------------------------------------------------------------------------------------

void StreamOrder::OnRecord(const HostCall& call, uint64_t stream, uint64_t event) {
  const uint32_t index = StreamOf(call, stream);
  if (index == kNoStream) return OnEventGone(event);
  if (events_.size() >= kMaxEvents && !events_.contains(event)) events_.clear();
  const Moment begin = Begin(call);
  if (const uint32_t capture = streams_[index].capture; capture != 0) {
    events_[event] = {index, capture, {}, call.end_ns, nullptr};
    return;
  }
  const Clock clock = Act(index, begin, call.end_ns);
  events_[event] = {index, 0, begin, call.end_ns, clock};
}

void StreamOrder::OnWait(const HostCall& call, uint64_t stream, uint64_t event) {
  const uint32_t index = StreamOf(call, stream);
  if (index == kNoStream) return;
  const auto known = events_.find(event);
  if (known != events_.end() && known->second.capture != 0) {
    streams_[index].capture = known->second.capture;  // the stream joins the capture
    return;
  }
  if (streams_[index].capture != 0) return;
  // CUDA does nothing for an event that was never recorded, so O3 does not apply.
  if (known == events_.end() || known->second.end_ns > call.begin_ns) return;
  Act(index, Begin(call), call.end_ns);
  const Record& record = known->second;
  Clock reached = record.clock;
  if (record.stream != index) reached = With(reached, {record.stream, record.until});
  if (reached == nullptr) return;
  Stream& own = streams_[index];
  own.clock = Joined(own.clock, reached);
  own.changed_ns = std::max(own.changed_ns, call.end_ns);
  ++own.version;
}

void StreamOrder::OnWork(const HostCall& call, uint64_t stream) {
  const uint32_t index = StreamOf(call, stream);
  if (index != kNoStream && streams_[index].capture == 0) Act(index, Begin(call), call.end_ns);
}

void StreamOrder::OnCaptureBegun(const HostCall& call, uint64_t stream) {
  const uint32_t index = StreamOf(call, stream);
  if (index != kNoStream) streams_[index].capture = ++captures_;
}

void StreamOrder::OnCaptureEnded(const HostCall& call, uint64_t stream) {
  const uint32_t index = StreamOf(call, stream);
  if (index == kNoStream) return;
  const uint32_t capture = std::exchange(streams_[index].capture, 0);
  if (capture == 0) return;
  const auto leave = [&](uint32_t other) {
    if (streams_[other].capture == capture) streams_[other].capture = 0;
  };
  for (const auto& [handle, other] : by_handle_) leave(other);
  for (const auto& [key, other] : per_thread_) leave(other);
}

// ---- What is known to be done -------------------------------------------------------------------

void StreamOrder::Prove(uint32_t stream, Moment until, int64_t t_ns) {
  Stream& proved = streams_[stream];
  if (until <= proved.done) return;
  proved.done = until;
  proved.done_ns = t_ns;
  std::vector<Question>& questions = proved.questions;
  while (proved.next < questions.size() && questions[proved.next].asked <= until) {
    answers_.push_back({questions[proved.next++].token, t_ns});
  }
  if (proved.next == questions.size()) {
    questions.clear();
    proved.next = 0;
  }
}

void StreamOrder::Prove(const Clock& clock, int64_t t_ns) {
  if (clock == nullptr) return;
  for (const Reach& reach : *clock) Prove(reach.stream, reach.until, t_ns);
}

void StreamOrder::OnEventDone(const HostCall& call, uint64_t event) {
  const auto known = events_.find(event);
  if (known == events_.end() || known->second.capture != 0) return;
  Record& record = known->second;
  if (record.end_ns > call.begin_ns) return;
  Prove(record.stream, record.until, call.end_ns);
  Prove(record.clock, call.end_ns);
  record.clock = nullptr;  // all of it is known to be done
}

void StreamOrder::OnStreamDone(const HostCall& call, uint64_t stream) {
  const uint32_t index = StreamOf(call, stream);
  if (index == kNoStream || streams_[index].capture != 0) return;
  const Moment begin = Begin(call);
  const bool whole = streams_[index].changed_ns <= begin.t_ns;
  Prove(AsOf(streams_[index], begin.t_ns), call.end_ns);
  Prove(index, begin, call.end_ns);
  if (whole) streams_[index].clock = nullptr;
}

void StreamOrder::OnDeviceDone(const HostCall& call) {
  const Moment begin = Begin(call);
  if (call.context == 0) return;
  if (const auto context = contexts_.find(call.context); context != contexts_.end()) {
    for (uint32_t stream : context->second.streams) Prove(stream, begin, call.end_ns);
    ForgetStreams(call.context);
  }
}

// Removes closed streams without open questions.
void StreamOrder::ForgetStreams(uint32_t context) {
  std::vector<uint32_t>& streams = contexts_[context].streams;
  if (streams.size() <= kShortList + 2 * (by_handle_.size() + per_thread_.size())) return;
  std::erase_if(streams, [&](uint32_t stream) {
    return !streams_[stream].open && streams_[stream].questions.empty();
  });
}

void StreamOrder::AskStream(uint32_t stream, const HostCall& call, uint32_t token) {
  if (stream == kNoStream) return;
  Stream& asked = streams_[stream];
  if (asked.capture != 0) return;
  const Moment now = {call.end_ns, ++order_};
  if (now <= asked.done) {  // the call came late among the events
    answers_.push_back({token, std::max(call.end_ns, asked.done_ns)});
    return;
  }
  std::vector<Question>& questions = asked.questions;
  if (questions.size() - asked.next >= kMaxWaiting) asked.next += kMaxWaiting / 2;
  if (asked.next > questions.size() / 2) {
    questions.erase(questions.begin(), questions.begin() + static_cast<std::ptrdiff_t>(asked.next));
    asked.next = 0;
  }
  if (asked.next == questions.size() || questions.back().asked <= now) {
    Question& question = questions.emplace_back();
    question.asked = now;
    question.token = token;
    return;
  }
  const auto begin = questions.begin() + static_cast<std::ptrdiff_t>(asked.next);
  auto place = questions.end();
  while (place != begin && now < std::prev(place)->asked) --place;
  questions.insert(place, {now, token});
}

}  // namespace gmt::analysis
