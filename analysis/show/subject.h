// analysis/show/subject.h
//
// Subject: what a printed id stands for.
//
//   stack/7  stack/7+9  thread/11  thread/unknown  stream/0x7f00  stream/none  size/512  heap/pytorch
//   library/NCCL  function/forward (model.py)  file/model.py  category/activations  layer/Net.fc
//   device/0  device/host  before/state  before/leak/1  leak/1  step/12  snapshot/oom-1  event/123
//   block/0x7f0000000000  range/NAME  mark/NAME, and a bare NAME or address
//
// Thread safety: pure functions.

#ifndef GMT_ANALYSIS_SHOW_SUBJECT_H_
#define GMT_ANALYSIS_SHOW_SUBJECT_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace gmt::analysis {

struct Subject {
  enum Kind : uint8_t {
    kStack,
    kThread,
    kStream,
    kSize,
    kHeap,
    kLibrary,
    kFunction,
    kFile,
    kCategory,
    kLayer,
    kDevice,
    kBefore,  // memory from before an attach: analysis/report/before_matches.h
    kLeak,
    kStep,
    kSnapshot,
    kEvent,
    kBlock,
    kRange,
    kMark,
    kNamed,  // a range or a mark
  };
  Kind kind = kStack;
  uint64_t number = 0;   // stack, thread, stream, size, device, leak, step, event, address
  uint64_t forward = 0;  // kStack: of the forward pass; 0: any
  bool unknown = false;  // "thread/unknown", "stream/none", "device/host"
  std::string name;      // the part after the slash

  // As printed: "stack/7+9".
  std::string id() const;
};

// "stack", ..., "mark"; "name" of kNamed.
std::string_view NameOf(Subject::Kind kind);

// Returns INVALID_ARGUMENT if a number was expected; the message describes the format. Any other
// text is taken as a name.
absl::StatusOr<Subject> ParseSubject(absl::string_view text);

}  // namespace gmt::analysis

#endif  // GMT_ANALYSIS_SHOW_SUBJECT_H_
