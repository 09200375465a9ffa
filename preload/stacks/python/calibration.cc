// Checks that an interpreter's layout must pass before its frames are trusted.

#include "preload/stacks/python/interpreter.h"
#include "preload/stacks/python/python_walk.h"
#include "preload/stacks/python/readable.h"

namespace gmt::preload {
namespace {

constexpr uint32_t kCheckedFrames = 1024;
constexpr uint32_t kComparedFrames = 64;
constexpr int32_t kLastTraceable = 1 << 16;  // allows for the instructions that store the arguments
constexpr uint8_t kLastOwner = 4;            // FRAME_OWNED_BY_CSTACK of 3.14

// Reads frames as PythonWalk does, but trusts nothing.
class FrameChecker {
 public:
  FrameChecker(const Layout& layout, const PythonApi& api) : l_(layout), api_(api) {}

  // Returns whether the thread's frames, up to a limit, look like frames.
  bool Check(uint64_t thread) {
    uint64_t frame;
    if (!reader_.Read(thread + l_.thread_frame, &frame)) return false;
    if (l_.chain == FrameChain::kCFrames) {
      const uint64_t cframe = frame;
      if (!CheckCFrames(cframe) || !reader_.Read(cframe + l_.cframe_frame, &frame)) return false;
    }
    if (frame == 0) return true;
    for (uint32_t i = 0; i < kCheckedFrames; ++i) {
      if (!CheckFrame(frame)) return false;
      const uint64_t last = frame;
      if (!reader_.Read(last + l_.frame_previous, &frame)) return false;
      if (frame == 0) return EndsChain(last);
    }
    return true;
  }

 private:
  // The outermost frame was entered from C; since 3.12 it is the interpreter's own.
  bool EndsChain(uint64_t frame) {
    uint8_t mark = 1;
    if (l_.frame_is_entry != 0) return reader_.Read(frame + l_.frame_is_entry, &mark) && mark != 0;
    if (l_.frame_owner == 0) return true;
    return reader_.Read(frame + l_.frame_owner, &mark) && mark >= kOwnedByInterpreter;
  }

  bool CheckCFrames(uint64_t cframe) {
    for (uint32_t i = 0; cframe != 0 && i < kCheckedFrames; ++i) {
      uint64_t frame;
      if (cframe % 8 != 0 || !reader_.Read(cframe + l_.cframe_frame, &frame) ||
          !reader_.Read(cframe + l_.cframe_previous, &cframe)) {
        return false;
      }
    }
    return true;
  }

  bool CheckFrame(uint64_t frame) {
    if (frame % 8 != 0) return false;
    uint8_t is_entry = 0;
    if (l_.frame_is_entry != 0 &&
        (!reader_.Read(frame + l_.frame_is_entry, &is_entry) || is_entry > 1)) {
      return false;
    }
    if (l_.frame_owner != 0) {
      uint8_t owner;
      if (!reader_.Read(frame + l_.frame_owner, &owner) || owner > kLastOwner) return false;
      if (owner >= kOwnedByInterpreter) return true;
    }
    uint64_t code;
    if (!reader_.Read(frame + l_.frame_code, &code)) return false;
    code &= ~uint64_t{l_.code_flags};
    return IsOf(code, api_.code_type) && CheckCode(code) && CheckInstruction(frame, code);
  }

  bool IsOf(uint64_t object, uint64_t type) {
    uint64_t found;
    return reader_.Read(object + l_.object_type, &found) && found == type;
  }

  bool RefersToText(uint64_t code, uint16_t field) {
    uint64_t text, length;
    uint32_t state;
    if (!reader_.Read(code + field, &text) || !IsOf(text, api_.text_type) ||
        !reader_.Read(text + l_.text_length, &length) ||
        !reader_.Read(text + l_.text_state, &state)) {
      return false;
    }
    state >>= l_.text_kind_shift;
    const uint32_t character = state & 7;
    const bool compact = (state >> 3 & 1) != 0, ascii = (state >> 4 & 1) != 0;
    if (!compact || (character != 1 && character != 2 && character != 4)) return false;
    return EndsWithZero(text + (ascii ? l_.ascii_text : l_.compact_text), length, character);
  }

  bool RefersToBytes(uint64_t code, uint16_t field) {
    uint64_t bytes, size;
    return reader_.Read(code + field, &bytes) && IsOf(bytes, api_.bytes_type) &&
           reader_.Read(bytes + l_.object_size, &size) &&
           EndsWithZero(bytes + l_.bytes_data, size, 1);
  }

  // CPython terminates every text and bytes object with a zero.
  bool EndsWithZero(uint64_t data, uint64_t length, uint32_t unit) {
    constexpr uint64_t kLongest = 64 << 20;
    uint8_t first, zero;
    return length < kLongest && reader_.Read(data, &first) &&
           reader_.Read(data + length * unit, &zero) && zero == 0;
  }

  bool CheckCode(uint64_t code) {
    int32_t first_line, traceable = 0;
    uint32_t version;
    if (!reader_.Read(code + l_.code_version, &version) ||
        !reader_.Read(code + l_.code_traceable, &traceable)) {
      return false;
    }
    if (l_.code_traceable != 0 && (traceable < 0 || traceable > kLastTraceable)) return false;
    return reader_.Read(code + l_.code_first_line, &first_line) && first_line >= 0 &&
           RefersToText(code, l_.code_name) && RefersToText(code, l_.code_short_name) &&
           RefersToText(code, l_.code_file) && RefersToBytes(code, l_.code_line_table);
  }

  // The bytecode's size in units of 2 bytes.
  bool ReadSize(uint64_t code, int64_t* units) {
    if (l_.instruction == Instruction::kPointer) return reader_.Read(code + l_.object_size, units);
    uint64_t bytes;
    if (!reader_.Read(code + l_.code_bytes, &bytes) || !IsOf(bytes, api_.bytes_type) ||
        !reader_.Read(bytes + l_.object_size, units)) {
      return false;
    }
    *units /= 2;
    return true;
  }

  // Reads the instruction's position, in units of 2 bytes.
  bool ReadIndex(uint64_t frame, uint64_t code, int64_t* index) {
    if (l_.instruction != Instruction::kPointer) {
      int32_t lasti;
      if (!reader_.Read(frame + l_.frame_instruction, &lasti)) return false;
      *index = l_.instruction == Instruction::kByteIndex && lasti > 0 ? lasti / 2 : lasti;
      return true;
    }
    uint64_t instruction, base;
    if (!reader_.Read(frame + l_.frame_instruction, &instruction) ||
        !FindBytecode(frame, code, &base) || (instruction - base) % 2 != 0) {
      return false;
    }
    *index = static_cast<int64_t>(instruction - base) / 2;
    return true;
  }

  bool FindBytecode(uint64_t frame, uint64_t code, uint64_t* base) {
    *base = code + l_.code_bytes;
    int32_t copy = 0;
    if (l_.code_tlbc == 0) return true;
    if (!reader_.Read(frame + l_.frame_tlbc, &copy)) return false;
    if (copy <= 0) return copy == 0;
    uint64_t copies;
    int64_t count;
    return reader_.Read(code + l_.code_tlbc, &copies) && reader_.Read(copies, &count) &&
           copy < count && reader_.Read(copies + 8 + 8 * static_cast<uint64_t>(copy), base);
  }

  bool CheckInstruction(uint64_t frame, uint64_t code) {
    int64_t units, index;
    return ReadSize(code, &units) && ReadIndex(frame, code, &index) && index >= -1 && index < units;
  }

  const Layout& l_;
  const PythonApi& api_;
  CarefulReader reader_;
};

// Keeps the garbage collector and the error indicator unchanged while public functions run.
// Creating a frame object allocates memory, which up to 3.11 may trigger a collection and run
// arbitrary code.
class Undisturbed {
 public:
  explicit Undisturbed(const PythonApi& api) : api_(api) {
    collects_ = api_.disable_gc != nullptr && api_.disable_gc() != 0;
    api_.take_error(&type_, &value_, &traceback_);
  }
  ~Undisturbed() {
    api_.put_error(type_, value_, traceback_);
    if (collects_) api_.enable_gc();
  }
  Undisturbed(const Undisturbed&) = delete;
  Undisturbed& operator=(const Undisturbed&) = delete;

 private:
  const PythonApi& api_;
  bool collects_;
  void *type_ = nullptr, *value_ = nullptr, *traceback_ = nullptr;
};

// Returns the next frame of the walk, across the ends of runs.
bool NextOfAll(PythonWalk* walk, PythonFrame* frame) {
  while (!walk->done()) {
    if (walk->Next(frame)) return true;
  }
  return false;
}

bool Agree(const PythonApi& api, void* frame, const PythonFrame& own) {
  void* code = api.frame_code(frame);
  api.release(code);  // the frame holds it too
  if (reinterpret_cast<uint64_t>(code) != own.code) return false;
  if (api.frame_instruction == nullptr) return true;
  const int byte = api.frame_instruction(frame);
  return byte < 0 || static_cast<uint32_t>(byte) == 2 * own.offset;
}

}  // namespace

const char* Interpreter::CheckFrames(uint64_t thread) const {
  return FrameChecker(layout_, api_).Check(thread)
             ? nullptr
             : "this Python's frames are not laid out as in other builds of its version";
}

bool Interpreter::Compare() const {
  const bool can = api_.innermost_frame != nullptr && api_.frame_back != nullptr &&
                   api_.frame_code != nullptr && api_.release != nullptr &&
                   api_.take_error != nullptr && api_.put_error != nullptr;
  const uint64_t thread = can ? CurrentThread().state : 0;
  if (can && (thread == 0 || reinterpret_cast<uint64_t>(api_.gil_holder()) != thread)) return true;
  if (compared_.exchange(true, std::memory_order_relaxed) || !can) return true;

  const Undisturbed undisturbed(api_);
  PythonWalk walk(*this);
  walk.Begin();
  void* frame = api_.innermost_frame(reinterpret_cast<void*>(thread));
  bool agree = true;
  for (uint32_t i = 0; i < kComparedFrames && agree; ++i) {
    PythonFrame own;
    const bool any = NextOfAll(&walk, &own);
    agree = any == (frame != nullptr) && (!any || Agree(api_, frame, own));
    if (frame == nullptr || !any) break;
    void* back = api_.frame_back(frame);
    api_.release(frame);
    frame = back;
  }
  if (frame != nullptr) api_.release(frame);
  if (!agree) TurnOff("this Python's frames differ from what its public functions say");
  return agree;
}

}  // namespace gmt::preload
