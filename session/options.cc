#include "session/options.h"

#include <string.h>

#include "session/slice.h"

namespace gmt::session {
namespace {

struct Unit {
  std::string_view name;
  uint64_t factor;
};

constexpr Unit kSizeUnits[] = {{"", 1},          {"B", 1},         {"KiB", 1 << 10},
                               {"K", 1 << 10},   {"MiB", 1 << 20}, {"M", 1 << 20},
                               {"GiB", 1 << 30}, {"G", 1 << 30},   {"TiB", 1ull << 40}};
constexpr Unit kTimeUnits[] = {
    {"ms", 1000000}, {"s", 1000000000}, {"m", 60000000000}, {"h", 3600000000000}};

template <size_t kCount>
bool ParseWithUnit(std::string_view text, const Unit (&units)[kCount], uint64_t* result) {
  uint64_t number = 0;
  size_t digits = 0;
  for (; digits < text.size() && text[digits] >= '0' && text[digits] <= '9'; ++digits) {
    if (__builtin_mul_overflow(number, 10, &number)) return false;
    if (__builtin_add_overflow(number, static_cast<uint64_t>(text[digits] - '0'), &number))
      return false;
  }
  if (digits == 0) return false;
  for (const Unit& unit : units) {
    if (Slice(text, digits) == unit.name)
      return !__builtin_mul_overflow(number, unit.factor, result);
  }
  return false;
}

const char* TakeOutput(std::string_view value, Options* o) {
  if (value.empty()) return "no path";
  if (value.size() >= sizeof(o->output)) return "the path is too long";
  memcpy(o->output, value.data(), value.size());
  o->output[value.size()] = '\0';
  return nullptr;
}

const char* TakeStacks(std::string_view value, Options* o) {
  Unwinder native = Unwinder::kNone;
  bool python = false;
  while (!value.empty()) {
    const std::string_view item = Cut(&value, '+');
    if (item == "native") {
      native = Unwinder::kBest;
    } else if (item == "native:libunwind") {
      native = Unwinder::kLibunwind;
    } else if (item == "native:libgcc") {
      native = Unwinder::kLibgcc;
    } else if (item == "python") {
      python = true;
    } else if (item != "none") {
      return "not one of none, native, native:libunwind, native:libgcc, python";
    }
  }
  // libunwind does not report where a signal interrupted a thread. If that was inside the
  // interpreter, Python's frames must not be read.
  if (native == Unwinder::kLibunwind && python)
    return "python cannot be combined with native:libunwind, only with native or native:libgcc";
  o->native_stacks = native;
  o->python_stacks = python;
  return nullptr;
}

const char* TakeHeap(std::string_view value, Options* o) {
  uint32_t heaps = 0;
  while (!value.empty()) {
    const std::string_view item = Cut(&value, '+');
    if (item == "driver") {
      heaps |= kDriverHeap;
    } else if (item == "host") {
      heaps |= kHostHeap;
    } else if (item == "pytorch") {
      heaps |= kPytorchHeap;
    } else if (item == "nvtx") {
      heaps |= kNvtxHeap;
    } else {
      return "not one of driver, host, pytorch, nvtx";
    }
  }
  if (heaps == 0) return "no heap is given";
  o->heaps = heaps;
  return nullptr;
}

const char* TakeCupti(std::string_view value, Options* o) {
  if (value == "off") {
    o->cupti = Cupti::kOff;
  } else if (value == "auto") {
    o->cupti = Cupti::kAuto;
  } else if (value == "full") {
    o->cupti = Cupti::kFull;
  } else {
    return "not one of auto, full, off";
  }
  return nullptr;
}

const char* TakeRing(std::string_view value, Options* o) {
  uint64_t bytes;
  if (!ParseSize(value, &bytes)) return "not a size such as 16MiB";
  if (bytes < (64 << 10) || bytes > (uint64_t{4} << 30) || (bytes & (bytes - 1)) != 0) {
    return "not a power of two from 64KiB to 4GiB";
  }
  o->ring_bytes = bytes;
  return nullptr;
}

const char* TakeSnapshot(std::string_view value, Options* o) {
  constexpr uint64_t kMinEvery = 1000000000, kMinGrowth = 1 << 20;
  bool oom = false, exit = false;
  uint64_t every = 0, growth = 0;
  bool at_marks = false;
  std::string_view mark;
  while (!value.empty()) {
    std::string_view item = Cut(&value, '+');
    const std::string_view what = Cut(&item, ':');
    if (what == "oom" && item.empty()) {
      oom = true;
    } else if (what == "exit" && item.empty()) {
      exit = true;
    } else if (what == "every") {
      if (!ParseDuration(item, &every) || every < kMinEvery)
        return "every is not a time of at least a second, such as every:10m";
    } else if (what == "growth") {
      if (!ParseSize(item, &growth) || growth < kMinGrowth)
        return "growth is not a size of at least 1MiB, such as growth:1GiB";
    } else if (what == "mark") {
      if (item.size() >= sizeof(o->snapshot_mark)) return "the name of the mark is too long";
      at_marks = true;
      mark = item;
    } else {
      return "not one of oom, exit, every:TIME, growth:SIZE, mark:NAME";
    }
  }
  o->snapshot_at_oom = oom;
  o->snapshot_at_exit = exit;
  o->snapshot_every_ns = every;
  o->snapshot_growth_bytes = growth;
  o->snapshot_at_marks = at_marks;
  if (!mark.empty()) memcpy(o->snapshot_mark, mark.data(), mark.size());
  o->snapshot_mark[mark.size()] = '\0';
  return nullptr;
}

// Does not validate the address; the collector does so when it tries to listen on it.
const char* TakeListen(std::string_view value, Options* o) {
  if (value.empty()) return "no address";
  if (value.size() >= sizeof(o->listen)) return "the address is too long";
  memcpy(o->listen, value.data(), value.size());
  o->listen[value.size()] = '\0';
  return nullptr;
}

const char* TakeStrip(std::string_view value, Options* o) {
  bool paths = false, args = false;
  while (!value.empty()) {
    const std::string_view item = Cut(&value, '+');
    if (item == "paths") {
      paths = true;
    } else if (item == "args") {
      args = true;
    } else {
      return "not one of paths, args";
    }
  }
  o->strip_paths = paths;
  o->strip_args = args;
  return nullptr;
}

const char* TakeExitWait(std::string_view value, Options* o) {
  return ParseDuration(value, &o->exit_wait_ns) ? nullptr : "not a time such as 1s";
}

const char* TakeMaxSize(std::string_view value, Options* o) {
  constexpr uint64_t kMin = 16 << 20;  // less would not hold the initial contents of a part
  uint64_t bytes;
  if (!ParseSize(value, &bytes) || bytes < kMin) return "not a size of at least 16MiB";
  o->max_bytes = bytes;
  return nullptr;
}

const char* TakeMaxTime(std::string_view value, Options* o) {
  constexpr uint64_t kMin = 1000000000;
  uint64_t ns;
  if (!ParseDuration(value, &ns) || ns < kMin) return "not a time of at least 1s, such as 24h";
  o->max_ns = ns;
  return nullptr;
}

const char* TakeRotate(std::string_view value, Options* o) {
  uint64_t parts;
  if (!ParseSize(value, &parts) || parts < 2 || parts > 1000) return "not a number from 2 to 1000";
  o->parts = static_cast<uint32_t>(parts);
  return nullptr;
}

using TakeFlag = bool Options::*;
struct Flag {
  std::string_view key;
  TakeFlag member;
};
constexpr Flag kFlags[] = {{"free_stacks", &Options::free_stacks},
                           {"roles", &Options::roles},
                           {"follow_fork", &Options::follow_fork},
                           {"quiet", &Options::quiet},
                           {"dormant", &Options::dormant}};

struct Key {
  std::string_view key;
  const char* (*take)(std::string_view value, Options*);  // returns nullptr or an error
};
constexpr Key kKeys[] = {
    {"output", TakeOutput},      {"stacks", TakeStacks},    {"heap", TakeHeap},
    {"cupti", TakeCupti},        {"ring", TakeRing},        {"snapshot", TakeSnapshot},
    {"exit_wait", TakeExitWait}, {"strip", TakeStrip},      {"listen", TakeListen},
    {"max_size", TakeMaxSize},   {"max_time", TakeMaxTime}, {"rotate", TakeRotate}};

const char* TakePair(std::string_view pair, Options* options) {
  const size_t equals = pair.find('=');
  const std::string_view key = Slice(pair, 0, equals);
  const bool has_value = equals != std::string_view::npos;
  const std::string_view value = has_value ? Slice(pair, equals + 1) : std::string_view();
  for (const Flag& flag : kFlags) {
    if (key != flag.key) continue;
    if (has_value && value != "on" && value != "off") return "not on or off";
    options->*flag.member = !has_value || value == "on";
    return nullptr;
  }
  for (const Key& known : kKeys) {
    if (key == known.key) return has_value ? known.take(value, options) : "it needs a value";
  }
  return "unknown option";
}

}  // namespace

bool ParseSize(std::string_view text, uint64_t* bytes) {
  return ParseWithUnit(text, kSizeUnits, bytes);
}
bool ParseDuration(std::string_view text, uint64_t* ns) {
  return ParseWithUnit(text, kTimeUnits, ns);
}

void ParseOptions(std::string_view text, Options* options,
                  void (*report)(void* context, const OptionError& error), void* context) {
  while (!text.empty()) {
    const std::string_view pair = Cut(&text, ',');
    if (pair.empty()) continue;
    const char* why = TakePair(pair, options);
    if (why != nullptr) report(context, {pair, why});
  }
}

}  // namespace gmt::session
