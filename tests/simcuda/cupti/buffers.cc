#include "tests/simcuda/cupti/buffers.h"

#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "tests/simcuda/cupti/session.h"

namespace sim {
namespace {

using std::chrono::milliseconds;

struct Buffer {
  uint8_t* data = nullptr;
  size_t size = 0;
  size_t used = 0;
  size_t room = 0;  // maximum number of records set by the client; 0: as many as fit
  size_t records = 0;
  struct Pending {
    size_t record;
    LaterTimes times;
  };
  std::vector<Pending> pending;

  bool Fits(size_t bytes) const { return used + bytes <= size && (room == 0 || records < room); }
};
using BufferPointer = std::unique_ptr<Buffer>;

struct State {
  std::mutex mutex;
  std::condition_variable wake;
  CUpti_BuffersCallbackRequestFunc request = nullptr;
  CUpti_BuffersCallbackCompleteFunc complete = nullptr;
  bool per_thread = true;
  std::map<long, BufferPointer> open;  // by thread; 0: shared by all
  std::vector<BufferPointer> full;
  uint64_t dropped = 0;
  uint32_t period_ms = 0;
  uint64_t worker = 0;  // number of the current worker; earlier ones end
  bool working = false;
};

State& The() {
  static State& state = *new State;
  return state;
}

thread_local bool asking = false;     // this thread is in the client's request function
thread_local bool reporting = false;  // this thread is in OnBufferRequested()

// Fills in the times of work that has ended. Returns true if nothing is left to fill in.
bool Complete(Buffer& buffer) {
  if (buffer.pending.empty()) return true;
  uint64_t now = Driver().now();
  ClockMoment moment;
  std::erase_if(buffer.pending, [&](const Buffer::Pending& pending) {
    if (pending.times.end_ns > now) return false;
    uint64_t start = moment.Timestamp(pending.times.start_ns);
    uint64_t end = moment.Timestamp(pending.times.end_ns);
    std::memcpy(buffer.data + pending.record + pending.times.start_at, &start, sizeof(start));
    std::memcpy(buffer.data + pending.record + pending.times.end_at, &end, sizeof(end));
    return true;
  });
  return buffer.pending.empty();
}

// Moves the buffers that may be returned to the client out of the state. REQUIRES: its mutex is
// held.
std::vector<BufferPointer> Take(State& state, bool open_too, bool forced) {
  std::vector<BufferPointer> taken;
  for (BufferPointer& buffer : state.full) {
    if (Complete(*buffer) || forced) taken.push_back(std::move(buffer));
  }
  std::erase(state.full, nullptr);
  if (!open_too) return taken;
  for (auto entry = state.open.begin(); entry != state.open.end();) {
    Buffer& buffer = *entry->second;
    if (buffer.records == 0 || (!Complete(buffer) && !forced)) {
      ++entry;
    } else {
      taken.push_back(std::move(entry->second));
      entry = state.open.erase(entry);
    }
  }
  return taken;
}

void HandBack(const std::vector<BufferPointer>& buffers,
              CUpti_BuffersCallbackCompleteFunc complete) {
  for (const BufferPointer& buffer : buffers) {
    complete(nullptr, 0, buffer->data, buffer->size, buffer->used);
  }
}

void Work(uint64_t number) {
  State& state = The();
  std::unique_lock<std::mutex> lock(state.mutex);
  auto next_flush = std::chrono::steady_clock::now() + milliseconds(state.period_ms);
  while (state.worker == number) {
    if (!state.full.empty()) {
      state.wake.wait_for(lock, milliseconds(1));  // for work still running on the device
    } else if (state.period_ms > 0) {
      state.wake.wait_until(lock, next_flush);
    } else {
      state.wake.wait(lock);
    }
    if (state.worker != number) return;
    bool due = state.period_ms > 0 && std::chrono::steady_clock::now() >= next_flush;
    std::vector<BufferPointer> taken = Take(state, due, false);
    CUpti_BuffersCallbackCompleteFunc complete = state.complete;
    lock.unlock();
    HandBack(taken, complete);
    lock.lock();
    if (due || state.period_ms == 0) {
      next_flush = std::chrono::steady_clock::now() + milliseconds(state.period_ms);
    }
  }
}

// Requests a buffer from the client; may return null.
BufferPointer Ask(CUpti_BuffersCallbackRequestFunc request) {
  auto buffer = std::make_unique<Buffer>();
  asking = true;
  request(&buffer->data, &buffer->size, &buffer->room);
  asking = false;
  constexpr uintptr_t kAlignment = 8;
  bool aligned = reinterpret_cast<uintptr_t>(buffer->data) % kAlignment == 0;
  return buffer->data != nullptr && aligned && buffer->size > 0 ? std::move(buffer) : nullptr;
}

void Put(Buffer& buffer, const void* record, size_t size, const LaterTimes* later) {
  std::memcpy(buffer.data + buffer.used, record, size);
  if (later != nullptr) buffer.pending.push_back({buffer.used, *later});
  buffer.used += size;
  ++buffer.records;
}

}  // namespace

void SetBufferCallbacks(CUpti_BuffersCallbackRequestFunc request,
                        CUpti_BuffersCallbackCompleteFunc complete) {
  std::lock_guard<std::mutex> lock(The().mutex);
  The().request = request;
  The().complete = complete;
}

bool HasBufferCallbacks() {
  std::lock_guard<std::mutex> lock(The().mutex);
  return The().request != nullptr;
}

void SetBufferPerThread(bool per_thread) {
  std::lock_guard<std::mutex> lock(The().mutex);
  The().per_thread = per_thread;
}

void Append(const void* record, size_t size, const LaterTimes* later) {
  State& state = The();
  std::unique_lock<std::mutex> lock(state.mutex);
  long owner = state.per_thread ? syscall(SYS_gettid) : 0;
  uint64_t start = 0, end = 0;
  for (bool asked = false;; asked = true) {
    if (auto found = state.open.find(owner); found != state.open.end()) {
      if (found->second->Fits(size)) {
        Put(*found->second, record, size, later);
        break;
      }
      state.full.push_back(std::move(found->second));
      state.open.erase(found);
      state.wake.notify_one();
    }
    if (asked || asking || state.request == nullptr) {
      ++state.dropped;
      break;
    }
    CUpti_BuffersCallbackRequestFunc request = state.request;
    lock.unlock();
    start = Timestamp();
    BufferPointer buffer = Ask(request);
    end = Timestamp();
    lock.lock();
    if (buffer == nullptr) {
      ++state.dropped;
      return;
    }
    // If all threads share one buffer, another thread may have been faster.
    if (state.open.contains(owner)) state.full.push_back(std::move(state.open[owner]));
    state.open[owner] = std::move(buffer);
  }
  lock.unlock();
  if (end == 0 || std::exchange(reporting, true)) return;
  OnBufferRequested(start, end);
  reporting = false;
}

void Flush(bool forced) {
  State& state = The();
  std::unique_lock<std::mutex> lock(state.mutex);
  std::vector<BufferPointer> taken = Take(state, true, forced);
  CUpti_BuffersCallbackCompleteFunc complete = state.complete;
  lock.unlock();
  HandBack(taken, complete);
}

void SetFlushPeriod(uint32_t milliseconds) {
  std::lock_guard<std::mutex> lock(The().mutex);
  The().period_ms = milliseconds;
  The().wake.notify_one();
}

void StartWorker() {
  State& state = The();
  std::lock_guard<std::mutex> lock(state.mutex);
  if (std::exchange(state.working, true)) return;
  // Signals of the target process must not be handled by this thread.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread(Work, ++state.worker).detach();
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void EndBuffers() {
  State& state = The();
  std::lock_guard<std::mutex> lock(state.mutex);
  ++state.worker;
  state.working = false;
  state.open.clear();
  state.full.clear();
  state.period_ms = 0;
  state.request = nullptr;
  state.complete = nullptr;
  state.wake.notify_all();
}

uint64_t TakeDropped() {
  std::lock_guard<std::mutex> lock(The().mutex);
  return std::exchange(The().dropped, 0);
}

}  // namespace sim
