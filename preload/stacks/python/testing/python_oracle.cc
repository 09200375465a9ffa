// A small library that Python loads by ctypes. Provides the walk of this thread's frames in a form
// that scripts can compare with what the interpreter itself reports
// (preload/stacks/python/testing/oracle.py). If loaded by ctypes.CDLL it runs without the GIL, by
// ctypes.PyDLL with it.

#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/time.h>
#include <ucontext.h>

#include <atomic>
#include <chrono>

#include "preload/stacks/known_stack.h"
#include "preload/stacks/python/code_object.h"
#include "preload/stacks/python/interpreter.h"
#include "preload/stacks/python/python_walk.h"
#include "preload/stacks/stack_builder.h"
#include "preload/stacks/unwind/loaded_module.h"
#include "preload/stacks/unwind/native_walk.h"

#define ORACLE extern "C" __attribute__((visibility("default")))

namespace {

using gmt::preload::CaptureRegisters;
using gmt::preload::CodeView;
using gmt::preload::Interpreter;
using gmt::preload::NativeFrame;
using gmt::preload::NativeWalk;
using gmt::preload::PythonFrame;
using gmt::preload::PythonWalk;

constexpr uint32_t kGeneration = 7;  // any generation of modules

constinit Interpreter python;
constinit Interpreter another;  // for what is done once per interpreter object

// Returns an interpreter object as if Python were looked up for the first time.
Interpreter& Renewed() {
  another.~Interpreter();
  memset(static_cast<void*>(&another), 0, sizeof(another));
  another.Find();
  return another;
}

struct Frame {
  uint64_t code;
  uint32_t offset;
  uint32_t run;
};

int WalkAll(const Interpreter& interpreter, Frame* frames, int capacity, uint64_t* fingerprint) {
  PythonWalk walk(interpreter);
  walk.Begin();
  int n = 0;
  for (uint32_t run = 0; !walk.done() && n < capacity; ++run) {
    PythonFrame frame;
    while (n < capacity && walk.Next(&frame)) frames[n++] = {frame.code, frame.offset, run};
  }
  if (fingerprint != nullptr) *fingerprint = walk.fingerprint();
  return n;
}

struct OnThread {
  Frame frames[64];
  int count;
};

void* WalkOnThread(void* argument) {
  auto* result = static_cast<OnThread*>(argument);
  result->count = WalkAll(python, result->frames, 64, nullptr);
  return nullptr;
}

template <typename Function>
Function Find(const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_DEFAULT, name));
}

}  // namespace

ORACLE void oracle_find() {
  gmt::preload::PrepareModules();
  python.Find();
}
ORACLE const char* oracle_status() { return python.status(); }
ORACLE int oracle_walk(Frame* frames, int capacity, uint64_t* fingerprint) {
  return WalkAll(python, frames, capacity, fingerprint);
}
ORACLE int oracle_compare() { return python.CompareOnce() ? 1 : 0; }

// Nonzero while the next function runs.
extern "C" {
__attribute__((visibility("default"))) int oracle_is_comparing = 0;
}
// Checks and compares as at the first time. REQUIRES: the GIL.
ORACLE int oracle_compare_again() {
  oracle_is_comparing = 1;
  const Interpreter& renewed = Renewed();
  Frame frames[64];
  const int n = WalkAll(renewed, frames, 64, nullptr);
  const bool agrees = renewed.CompareOnce() && renewed.on();
  oracle_is_comparing = 0;
  return agrees ? n : -1;
}
ORACLE int oracle_owns(void* address) {
  return python.OwnsAddress(reinterpret_cast<uint64_t>(address)) ? 1 : 0;
}

// Signal handlers that walk wherever they interrupt, except in the interpreter's own code.
namespace {

struct Interruptions {
  std::atomic<int> walks, left_out, frames, wrong;
} interruptions;

void WalkInterrupted(int, siginfo_t*, void* context) {
  const auto* registers = static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
  if (python.OwnsAddress(static_cast<uint64_t>(registers[REG_RIP]))) {
    ++interruptions.left_out;
    return;
  }
  ++interruptions.walks;
  PythonWalk walk(python);
  walk.Begin();
  while (!walk.done()) {
    for (PythonFrame frame; walk.Next(&frame);) {
      CodeView view;
      ++interruptions.frames;
      if (!ReadCode(python, frame.code, &view)) ++interruptions.wrong;
    }
  }
}

}  // namespace

// Starts interrupting this process at that interval of its CPU time; 0 stops it.
ORACLE void oracle_interrupt(int microseconds) {
  struct sigaction action = {};
  action.sa_sigaction = WalkInterrupted;
  action.sa_flags = SA_SIGINFO | SA_RESTART;
  if (microseconds != 0) sigaction(SIGPROF, &action, nullptr);
  const itimerval timer = {{0, microseconds}, {0, microseconds}};
  setitimer(ITIMER_PROF, &timer, nullptr);
}

// Returns the number of walks, of interruptions of the interpreter itself, of the walks' frames,
// and of the frames that were invalid.
ORACLE void oracle_interruptions(int* result) {
  result[0] = interruptions.walks;
  result[1] = interruptions.left_out;
  result[2] = interruptions.frames;
  result[3] = interruptions.wrong;
}

// Returns how many frames a separate C thread sees while its creator waits.
ORACLE int oracle_walk_on_c_thread() {
  OnThread result;
  pthread_t thread;
  if (pthread_create(&thread, nullptr, WalkOnThread, &result) != 0) return -1;
  pthread_join(thread, nullptr);
  return result.count;
}

// Returns the number of runs placed, of frames placed, and of runs after a frame of the
// interpreter; whether anything is left; and whether that is because the native walk was truncated.
ORACLE void oracle_merge(int* result) {
  NativeWalk native(CaptureRegisters());
  PythonWalk walk(python);
  walk.Begin();
  int runs = 0, frames = 0, in_interpreter = 0;
  uint64_t low = 0;
  for (NativeFrame frame; native.Next(&frame);) {
    const bool is_interpreter = walk.IsInterpretedBy(frame, low);
    low = frame.cfa;
    if (!is_interpreter) continue;
    ++runs;
    in_interpreter += python.OwnsAddress(frame.address) ? 1 : 0;
    for (PythonFrame given; walk.Next(&given);) ++frames;
  }
  result[0] = runs;
  result[1] = frames;
  result[2] = in_interpreter;
  result[3] = walk.done() ? 0 : 1;
  result[4] = native.truncated() ? 1 : 0;
}

// Builds the stack of this thread as it would be recorded if the native walk ended after that many
// frames. Returns the number of its words.
ORACLE int oracle_stack(int native_frames, int breaks_off, uint64_t* words, int* flags) {
  using gmt::preload::StackBuilder;
  gmt::session::StackTable::Buffer stack;
  StackBuilder builder(&stack, python, StackBuilder::Native::kWanted);
  NativeWalk native(CaptureRegisters());
  NativeFrame frame;
  for (int n = 0; n < native_frames && native.Next(&frame); ++n) builder.Add(frame);
  builder.Finish(breaks_off != 0);
  *flags = builder.flags();
  memcpy(words, stack.frames, builder.depth() * sizeof(*words));
  return static_cast<int>(builder.depth());
}

namespace {

enum Known { kNotKnown = 0, kSame = 1, kDifferent = 2 };

Known Compare(const gmt::session::ContentHash& known, const gmt::session::StackTable::Buffer& stack,
              const gmt::preload::StackBuilder& builder) {
  const auto whole =
      gmt::session::StackTable::HashOf(stack, builder.depth(), builder.flags(), kGeneration);
  return known.digest() == whole.digest() && known.value() == whole.value() ? kSame : kDifferent;
}

}  // namespace

// Compares the digest of this thread's stack, computed from what has changed since the last one,
// with that of the whole stack.
ORACLE int oracle_known_stack() {
  using gmt::preload::StackBuilder;
  gmt::preload::KnownStack known;
  if (!gmt::preload::FollowStack(python, &known)) return kNotKnown;
  gmt::session::StackTable::Buffer stack;
  StackBuilder builder(&stack, python, StackBuilder::Native::kWanted);
  NativeWalk native(CaptureRegisters());
  builder.AddAll(&native);
  return Compare(known.Hash(kGeneration), stack, builder);
}
// The same for Python frames only.
ORACLE int oracle_known_python_stack() {
  using gmt::preload::StackBuilder;
  gmt::preload::KnownStack known;
  if (!gmt::preload::FollowPythonStack(python, &known)) return kNotKnown;
  gmt::session::StackTable::Buffer stack;
  StackBuilder builder(&stack, python, StackBuilder::Native::kLeftOut);
  builder.Finish(false);
  return Compare(known.Hash(kGeneration), stack, builder);
}

struct Description {
  uint32_t format, first_line;
  uint64_t table_bytes;
  const void* table;
  char name[1024], file[1024];
  uint32_t name_bytes, file_bytes;
};

ORACLE int oracle_describe(uint64_t code, Description* d) {
  CodeView view;
  if (!ReadCode(python, code, &view)) return 0;
  d->format = static_cast<uint32_t>(view.format);
  d->first_line = view.first_line;
  d->table = view.line_table;
  d->table_bytes = view.line_table_bytes;
  const auto put = [](uint64_t text, char* out, uint32_t* bytes) {
    char buffer[sizeof(d->name)];
    const std::string_view read = ReadText(python, text, buffer, sizeof(buffer));
    memcpy(out, read.data(), read.size());
    *bytes = static_cast<uint32_t>(read.size());
  };
  put(view.name, d->name, &d->name_bytes);
  put(view.file, d->file, &d->file_bytes);
  return 1;
}

// Walks and compares frames while an exception is set. Returns 1 if the exception is unchanged
// afterwards. REQUIRES: the GIL.
ORACLE int oracle_walk_with_error_set(Frame* frames, int capacity, int* count) {
  const auto set = Find<void (*)(void*, const char*)>("PyErr_SetString");
  const auto occurred = Find<void* (*)()>("PyErr_Occurred");
  const auto clear = Find<void (*)()>("PyErr_Clear");
  void** type = Find<void**>("PyExc_LookupError");
  set(*type, "on its way");
  *count = WalkAll(python, frames, capacity, nullptr);
  Renewed().CompareOnce();
  const bool same = occurred() == *type;
  clear();
  return same ? 1 : 0;
}

// Uses a second interpreter object whose layout has one wrong offset (`word`: index of the uint16_t
// after the first four bytes). Returns the number of frames; *status is its status.
ORACLE int oracle_walk_wrongly(int word, int delta, Frame* frames, int capacity,
                               const char** status) {
  Interpreter& wrong = Renewed();
  gmt::preload::Layout layout = wrong.layout();
  uint16_t offset;
  char* at = reinterpret_cast<char*>(&layout) + 4 + 2 * word;
  memcpy(&offset, at, sizeof(offset));
  offset = static_cast<uint16_t>(offset + delta);
  memcpy(at, &offset, sizeof(offset));
  wrong.UseLayout(layout);
  const int n = WalkAll(wrong, frames, capacity, nullptr);
  wrong.CompareOnce();
  *status = wrong.status();
  return n;
}

namespace {

// Not inlined, so that each is timed as a call.
__attribute__((noinline)) uint64_t OwnWalk(const Interpreter& interpreter) {
  PythonWalk walk(interpreter);
  walk.Begin();
  uint64_t sum = 0;
  while (!walk.done()) {
    for (PythonFrame frame; walk.Next(&frame);) sum += frame.code ^ frame.offset;
  }
  return sum + walk.fingerprint();
}

// As other tools do it. After the first time the frame objects already exist.
__attribute__((noinline)) uint64_t PublicWalk(const Interpreter& interpreter) {
  const gmt::preload::PythonApi& api = interpreter.api();
  uint64_t sum = 0;
  void* frame = api.innermost_frame(api.current_thread());
  while (frame != nullptr) {
    void* code = api.frame_code(frame);
    sum += reinterpret_cast<uint64_t>(code);
    if (api.frame_instruction != nullptr)
      sum ^= static_cast<uint32_t>(api.frame_instruction(frame));
    api.release(code);
    void* back = api.frame_back(frame);
    api.release(frame);
    frame = back;
  }
  return sum;
}

}  // namespace

// Returns the nanoseconds of one walk of the calling thread's frames. 0: ours, with the
// fingerprint; 1: by the public functions.
ORACLE double oracle_time(int kind, int rounds) {
  constexpr decltype(&OwnWalk) kWalks[] = {OwnWalk, PublicWalk};
  uint64_t sum = 0;
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < rounds; ++i) sum += kWalks[kind](python);
  const std::chrono::duration<double, std::nano> spent = std::chrono::steady_clock::now() - start;
  asm volatile("" : : "r"(sum));
  return spent.count() / rounds;
}
