#include "collector/events/frame_namer.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "format/definitions_builder.h"
#include "proto/gmt.pb.h"

namespace gmt::collector {
namespace {

constexpr int kNice = 10;

}  // namespace

FrameNamer::FrameNamer(symbols::SymbolizerOptions options, std::string cache_directory)
    : thread_([this, options = std::move(options), directory = std::move(cache_directory)] {
        Work(options, directory);
      }) {}

FrameNamer::~FrameNamer() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void FrameNamer::Add(std::vector<symbols::FrameRequest> requests) {
  if (requests.empty()) return;
  // Keeps frames of one module together, so that its file is likely to be open.
  std::sort(requests.begin(), requests.end(), [](const auto& a, const auto& b) {
    return std::tie(a.module.path, a.address) < std::tie(b.module.path, b.address);
  });
  {
    const std::lock_guard lock(mutex_);
    waiting_.insert(waiting_.end(), std::make_move_iterator(requests.begin()),
                    std::make_move_iterator(requests.end()));
  }
  changed_.notify_all();
}

void FrameNamer::Work(symbols::SymbolizerOptions options, const std::string& cache_directory) {
  setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), kNice);  // of this thread only
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return stop_ || !waiting_.empty(); });
  if (stop_) return;
  lock.unlock();
  // Without a cache, lookups just take longer.
  auto cache = symbols::SymbolCache::Open(cache_directory);
  options.cache = cache.ok() ? cache->get() : nullptr;
  symbols::Symbolizer symbolizer(std::move(options));
  NameFrames(symbolizer, cache.ok() ? cache->get() : nullptr);
}

void FrameNamer::NameFrames(symbols::Symbolizer& symbolizer, symbols::SymbolCache* cache) {
  std::unique_lock lock(mutex_);
  while (true) {
    if (waiting_.empty() && cache != nullptr) {
      lock.unlock();
      cache->Flush();
      lock.lock();
    }
    changed_.wait(lock, [&] { return stop_ || !waiting_.empty(); });
    if (stop_) return;
    const symbols::FrameRequest request = std::move(waiting_.front());
    waiting_.pop_front();
    busy_ = true;
    lock.unlock();
    Named named = {request.frame,
                   symbolizer.Resolve(request.module, request.address, request.kind)};
    lock.lock();
    busy_ = false;
    if (!named.symbols.empty()) named_.push_back(std::move(named));
    if (waiting_.empty()) changed_.notify_all();
  }
}

gmt::Symbols FrameNamer::TakeNames(format::DefinitionsBuilder* definitions) {
  std::vector<Named> named;
  {
    const std::lock_guard lock(mutex_);
    named.swap(named_);
  }
  gmt::Symbols names;
  for (const Named& frame : named) {
    for (const symbols::ResolvedSymbol& symbol : frame.symbols) {
      names.add_frame(frame.frame);
      names.add_function(definitions->InternString(symbol.function));
      names.add_file(definitions->InternString(symbol.file));
      names.add_line(static_cast<uint32_t>(symbol.line));
    }
  }
  names.set_count(static_cast<uint32_t>(names.frame_size()));
  return names;
}

bool FrameNamer::idle() const {
  const std::lock_guard lock(mutex_);
  return waiting_.empty() && !busy_ && named_.empty();
}

void FrameNamer::WaitUntilDone(uint64_t ns) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, std::chrono::nanoseconds(ns), [&] { return waiting_.empty() && !busy_; });
}

}  // namespace gmt::collector
