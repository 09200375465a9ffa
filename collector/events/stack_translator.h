// collector/events/stack_translator.h
//
// StackTranslator: translates the stacks of a session, which are addresses in a process that may be
// gone, into the stacks of a recording, which are frames in modules.
//
//   session    stack 17: 0x7f31c0de1234 0x55d0...       generation 2
//   modules    the youngest record of generation <= 2 that covers 0x7f31c0de1234: libtorch_cuda.so,
//              bias 0x7f31b0000000
//   recording  frame (libtorch_cuda.so, 0x10de1234) -> its caller ...
//
// An interpreter's frame is translated to function, file and line immediately, because the session
// holds its code object with the line table.
//
// An address that lies in no known module keeps module 0 and its value in memory. A stack with such
// a frame is translated again after the module log has grown, because a module may be logged a
// moment after the stack that refers to it.
//
// Frames of the preloaded library itself are omitted. Its hooks may be in the middle of a stack,
// where PyTorch calls PyTorch.
//
// Thread safety: one thread at a time.

#ifndef GMT_COLLECTOR_EVENTS_STACK_TRANSLATOR_H_
#define GMT_COLLECTOR_EVENTS_STACK_TRANSLATOR_H_

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "format/definitions.h"
#include "format/definitions_builder.h"
#include "session/arena_reader.h"
#include "session/session_map.h"

namespace gmt::collector {

class StackTranslator {
 public:
  // A frame of the recording that needs a name.
  struct NativeFrame {
    uint32_t frame;    // id in the recording
    uint32_t module;   // number in the session's log
    uint64_t address;  // in the ELF file
    session::StackFrame::Kind kind;
  };

  // Adds new definitions to `definitions`, which must outlive this. `shim`: path of the preloaded
  // library.
  StackTranslator(const session::SessionMap& session, format::DefinitionsBuilder* definitions,
                  std::string shim = "")
      : session_(session), definitions_(definitions), shim_(std::move(shim)) {}

  // Returns the recording's id of a session's stack; 0 for "none" and for a stack that cannot be
  // read.
  uint32_t Translate(uint32_t stack) {
    if (stack == 0) return 0;
    const Recent& recent = RecentOf(stack);
    return recent.stack == stack && IsFinal(recent.known) ? recent.known.id : FindOrDefine(stack);
  }

  // Returns the native frames defined since the last call, in order of first use.
  std::vector<NativeFrame> TakeNewFrames();
  const session::ModuleCopy& module(uint32_t number) const { return modules_[number]; }

  // Returns the path of the library that made the call at the top of a session's stack; empty if
  // unknown.
  std::string CallerOf(uint32_t stack);
  // Returns the path of the last module in the session's log whose file name starts with
  // `beginning`; empty: none.
  std::string FindLibrary(std::string_view beginning);

 private:
  // What all frames of a code object have in common.
  struct Code {
    bool known = false;
    uint32_t function = 0, file = 0;  // string ids
    session::CodeCopy copy;
  };
  struct Known {
    uint32_t id;
    // Number of modules known when it was translated; kComplete: every frame found its module.
    uint32_t complete_at;
  };
  static constexpr uint32_t kComplete = ~uint32_t{0};
  static constexpr uint32_t kNoModule = ~uint32_t{0};

  // A cache in front of stacks_.
  struct Recent {
    uint32_t stack = 0;  // 0: empty
    Known known = {};
  };
  static constexpr int kRecentBits = 10;

  Recent& RecentOf(uint32_t stack) { return recent_[stack * 0x9E3779B9u >> (32 - kRecentBits)]; }
  // Whether translating the stack again would not yield more.
  bool IsFinal(const Known& known) const {
    return known.complete_at >= session_.control().module_count.load(std::memory_order_acquire);
  }
  uint32_t FindOrDefine(uint32_t stack);
  uint32_t FindModule(uint64_t address, uint32_t generation) const;
  bool IsShim(uint32_t module) const {
    return module != kNoModule && modules_[module].path == shim_;
  }
  uint32_t TranslateNative(const session::StackFrame& frame, uint32_t module);
  uint32_t TranslatePython(const session::StackFrame& frame);
  const Code& FindCode(uint32_t id);
  uint32_t ModuleId(uint32_t number);

  session::SessionMap session_;
  format::DefinitionsBuilder* definitions_;
  std::string shim_;
  std::vector<session::ModuleCopy> modules_;
  std::vector<uint32_t> module_ids_;  // by number; 0: not defined yet
  std::array<Recent, 1 << kRecentBits> recent_ = {};
  absl::flat_hash_map<uint32_t, Known> stacks_;
  absl::flat_hash_map<uint32_t, Code> codes_;
  std::vector<NativeFrame> new_frames_;
  uint32_t newest_frame_ = 0;
};

}  // namespace gmt::collector

#endif  // GMT_COLLECTOR_EVENTS_STACK_TRANSLATOR_H_
