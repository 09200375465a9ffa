// viewer/questions/queries.h
//
// The page's queries about blocks, stacks and amounts, and their answers: the structs of
// viewer/page/src/data/protocol.ts, which documents the fields. Differences are noted here.
//
// Ownership: plain data. Units: bytes, ns, events (births and deaths of memory).

#ifndef GMT_VIEWER_QUESTIONS_QUERIES_H_
#define GMT_VIEWER_QUESTIONS_QUERIES_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "viewer/index/tiles.h"

namespace gmt::viewer {

inline constexpr uint32_t kNever = UINT32_MAX;
inline constexpr uint32_t kMaxTableRows = 500;

// What a timeline shows: the memory of one heap on one device (kHostDevice: host memory).
struct LaneMemory {
  int32_t device = 0;
  uint32_t heap = 0;  // of Trace::heaps
};

// All given parts must match; empty strings and nullopt match anything.
struct Filter {
  // Text typed by the user. Plain text is searched for, ignoring case, in the functions ("forward
  // (model.py)"), files ("model.py:41" too) and libraries of the stack, and of the forward pass's
  // stack for memory of a backward pass; in the block's address and name, in the type and shape of
  // its tensor ("bfloat16 [8, 128]"), and in why it was alive ("saved for backward by
  // MulBackward0"). An address finds the block that contains it. '/.../' is a regular expression
  // (RE2) on the same texts.
  std::string text;
  std::string category;  // as FileMeta names them
  std::optional<uint32_t> stack, forward_stack, key;
  std::string stream, thread;
  std::optional<uint64_t> min_size, max_size;

  bool operator==(const Filter&) const = default;
};

struct Scope {
  enum Of : uint8_t { kLive, kGrowth, kBorn, kKept };

  uint32_t lane = 0;
  Filter filter;
  Of of = kLive;
  uint32_t from = 0, to = 0;  // events

  bool operator==(const Scope&) const = default;
};

struct Frame {
  enum Kind : uint8_t { kPython, kNative, kUser, kFolded };

  std::string function, file, library;
  uint32_t line = 0;
  Kind kind = kNative;
};

// Returns the name used in protocol.ts.
constexpr const char* TextOf(Frame::Kind kind) {
  switch (kind) {
    case Frame::kPython:
      return "python";
    case Frame::kNative:
      return "native";
    case Frame::kUser:
      return "user";
    case Frame::kFolded:
      return "folded";
  }
  return "";
}

struct StackInfo {
  uint32_t stack = 0, key = 0;
  std::string label, site, line, backward_of;
  std::vector<Frame> frames;  // innermost first
};

struct Neighbour {
  uint32_t row = kNoRow;
  uint64_t size = 0;
  std::string label;
};

struct BlockDetails {
  struct Segment {
    uint64_t address = 0, size = 0, offset = 0;
  };
  // All blocks of the lane with this stack: their number, the bytes they hold when the block is
  // born (including it), and their peak.
  struct SameStack {
    uint64_t blocks = 0, live_bytes = 0, peak_bytes = 0;
  };

  uint32_t row = kNoRow;
  std::optional<uint32_t> lane;  // nullopt: in none of the lanes shown
  uint64_t address = 0, size = 0;
  std::optional<uint64_t> requested;
  std::string name, category, reason, confidence, stream, thread, pool;
  std::string tensor;  // type and shape: "bfloat16 [8, 128, 768]"; "" if unknown
  std::string alive;   // what kept it alive, in words; "" if unknown
  uint32_t birth = 0, death = kNever, completed = kNever;
  int64_t birth_ns = 0;
  std::optional<int64_t> death_ns, completed_ns;
  std::optional<uint32_t> step;  // of the training loop, from 1
  std::string phase;
  StackInfo stack;
  std::optional<StackInfo> free_stack, forward_stack;
  std::optional<Segment> segment;
  std::optional<Neighbour> before, after;
  SameStack same_stack;
};

struct SourceText {
  std::string path;
  uint32_t first = 0;
  std::vector<std::string> lines;
  std::string note;
};

struct FlameQuery {
  Scope scope;
  bool inverted = false, folded = false;
};

// The bytes of a lane's blocks that match a filter.
struct PassingCurve {
  std::vector<double> live;  // at the midpoint of each column; NaN: outside of the recording
};

// What would be reserved with other settings of PyTorch's allocator.
struct PredictedCurve {
  std::vector<double> reserved;  // the most of each column; NaN: not known
  uint64_t peak_bytes = 0;       // of the whole recording
  uint64_t retries = 0;
  std::optional<uint32_t> failure;  // the event at which a request would fail
};

// Parents before children; node 0 is the root.
struct FlameTree {
  std::vector<uint32_t> parent;
  std::vector<double> bytes, blocks;
  std::vector<double> before;  // empty without a comparison
  // The category that has most of the bytes in and below each node, and how many it has. Empty in a
  // comparison.
  std::vector<uint8_t> category;
  std::vector<double> category_bytes;
  std::vector<uint32_t> name;      // index into names
  std::vector<std::string> names;  // "function\tfile:line\tkind"
  double total = 0;
};

struct TableQuery {
  enum By : uint8_t { kStack, kFunction, kFile, kCategory, kSize, kStream, kThread, kBlock };
  enum Sort : uint8_t { kBytes, kBlocks, kPeak, kGrowth, kRate, kLifetime, kName };

  Scope scope;
  By by = kStack;
  Sort sort = kBytes;
  bool descending = true;
  uint64_t offset = 0;
  uint32_t limit = 0;      // at most kMaxTableRows
  uint32_t sparkline = 0;  // columns; 0: none
};

struct TableRow {
  struct Block {
    uint64_t address = 0;
    std::string category;
    uint32_t birth = 0;
    int64_t birth_ns = 0;
  };

  std::string id, name, where;
  int64_t bytes = 0, blocks = 0;  // negative if less is held than before (kGrowth)
  uint64_t peak_bytes = 0;
  double mean_size = 0;
  std::optional<int64_t> median_lifetime_ns;
  std::optional<Block> block;
  uint32_t stack = 0;
  std::vector<double> sparkline;
};

struct Table {
  std::vector<TableRow> rows;
  uint64_t total_rows = 0;
  int64_t total_bytes = 0, total_blocks = 0;
};

// The part of a picture between two heights or places, over the events of a query.
struct Box {
  Axis axis = Axis::kEvent;  // the picture's: the order of a stack depends on it
  Layout layout = Layout::kStacked;
  double low = 0, high = 0;  // bytes, or place in the lane's address space
};

// A range of events, or a moment.
struct EventRange {
  uint32_t from = 0, to = 0;
  std::optional<Box> box;  // only the blocks in it
};

struct RangeQuery : EventRange {
  enum By : uint8_t {
    kCategory,
    kRole,   // the first of its alive reasons
    kDtype,  // of its tensor
    kModule,
    kFunction,
    kLine,
    kStack,
    kThread,
    kStream
  };
  enum Sort : uint8_t {
    kBytes,
    kInclusive,
    kByteSeconds,
    kMeanBytes,  // byte-seconds per second
    kAllocations,
    kAllocationRate,  // allocations per second
    kGrowth,
    kEndBytes,
    kName
  };
  // Which amounts are sorted, if there is another range.
  enum Side : uint8_t { kThis, kOther, kDifference };

  uint32_t lane = 0;
  Filter filter;
  std::optional<EventRange> other;  // with which the range is compared
  std::vector<std::string> within;  // ids of rows, each in the one before it: only what they count
  By by = kCategory;
  bool folded = false;  // a module, function or line without noise frames
  Sort sort = kBytes;
  Side side = kThis;
  bool descending = true;
  uint64_t offset = 0;
  uint32_t limit = 0;  // at most kMaxTableRows
};

// Amounts of a range.
struct RangeAmounts {
  uint64_t bytes = 0;  // at the peak
  double byte_seconds = 0;
  uint64_t allocations = 0;
  int64_t growth = 0;
  uint64_t end_bytes = 0;  // at the end of the range
};

struct RangeRow {
  std::string id, name, where;
  RangeAmounts amounts;
  std::optional<uint64_t> inclusive;
  // In the other range.
  std::optional<RangeAmounts> other;
  std::optional<uint64_t> other_inclusive;
  uint32_t stack = 0;
};

struct RangeTotal {
  RangeAmounts total;
  uint32_t peak_event = 0;
  int64_t from_ns = 0, to_ns = 0, peak_ns = 0;
};

struct RangeTable : RangeTotal {
  std::vector<RangeRow> rows;
  uint64_t total_rows = 0;
  std::optional<RangeTotal> other;
};

struct SegmentState {
  uint64_t address = 0, size = 0;
  std::string pool, stream;
  bool expandable = false;
  uint32_t stack = 0;
  // Blocks, including those that wait for a stream, by offset.
  std::vector<uint64_t> offset, bytes;
  std::vector<int64_t> requested;  // -1: unknown
  std::vector<uint32_t> row, key;
  std::vector<uint8_t> pending, category;
};

struct Segments {
  uint32_t event = 0;
  int64_t ns = 0;
  std::string what;
  uint32_t row = kNoRow;
  std::vector<SegmentState> segments;
  uint64_t live_bytes = 0, reserved_bytes = 0, largest_hole = 0;
};

struct Found {
  std::vector<uint32_t> row, birth, death;
  std::vector<uint64_t> size;
  uint64_t total = 0;
};

// What happened, in the order of the bits of EventsQuery::kinds.
enum class EventKind : uint8_t {
  kAlloc,
  kFree,           // can be used again at once
  kFreeRequested,  // still in use by another stream
  kFreeCompleted,  // that stream is done
  kFreeRefused,    // by the driver
  kSegmentAlloc,   // driver memory in which an allocator places its blocks
  kSegmentFree,
  kMap,
  kUnmap,
  kFailed,          // an allocation failed
  kAction,          // what an allocator did according to the events: a retry, an emptied cache
  kRecordedAction,  // what a framework reported that its allocator did
  kMark,
  kSnapshot,
};
inline constexpr size_t kEventKinds = 14;

// Returns the name used in protocol.ts.
constexpr const char* TextOf(EventKind kind) {
  constexpr const char* kNames[kEventKinds] = {"alloc",          "free",         "free_requested",
                                               "free_completed", "free_refused", "segment_alloc",
                                               "segment_free",   "map",          "unmap",
                                               "failed",         "action",       "recorded_action",
                                               "mark",           "snapshot"};
  return kNames[static_cast<size_t>(kind)];
}

inline constexpr uint32_t kAllEventKinds = (1u << kEventKinds) - 1;
inline constexpr uint32_t kMaxEventRows = 500;

struct EventsQuery {
  uint32_t lane = 0;
  uint32_t kinds = kAllEventKinds;
  uint64_t offset = 0;
  uint32_t limit = 0;  // at most kMaxEventRows
  uint32_t event = 0;  // whose position is requested
};

struct EventRow {
  uint32_t event = 0;  // births and deaths until then, including its own
  int64_t ns = 0;
  EventKind kind = EventKind::kAlloc;
  uint32_t row = kNoRow;
  std::optional<uint64_t> bytes, address;
  std::string heap, stream, text;
};

struct EventPage {
  std::vector<EventRow> rows;
  uint64_t total = 0, position = 0;
  std::array<uint64_t, kEventKinds> counts = {};
};

// Corresponding moments of two recordings.
struct Alignment {
  enum By : uint8_t { kStep, kTime, kEvent };

  By by = kEvent;
  std::vector<std::pair<uint32_t, uint32_t>> steps;  // their first events, in one and in the other
};

}  // namespace gmt::viewer

#endif  // GMT_VIEWER_QUESTIONS_QUERIES_H_
