#include "preload/record/record_stack.h"

#include "preload/base/thread_state.h"
#include "preload/record/note_modules.h"
#include "preload/stacks/known_stack.h"
#include "preload/stacks/python/code_object.h"

namespace gmt::preload {
namespace {

using session::StackTable;

// Publishes what is known about Python to the collector.
void PublishPython(Process* p) {
  const char* status = p->python.status();
  if (status == p->python_source.exchange(status, std::memory_order_relaxed)) return;
  const session::TextTable texts = p->map.texts();
  auto& facts = p->map.control().facts;
  facts[session::kPythonVersion].store(texts.Intern(p->python.version()),
                                       std::memory_order_release);
  facts[session::kPythonSource].store(texts.Intern(status), std::memory_order_release);
}

// Interns the code objects of the stack's interpreter frames. They are running and therefore exist.
void InternCodes(const Process& p, const StackTable::Buffer& stack, uint32_t depth,
                 uint32_t* codes) {
  const session::CodeTable table = p.map.codes();
  const session::TextTable texts = p.map.texts();
  for (uint32_t i = 0; i < depth; ++i) {
    if ((stack.frames[i] & session::kInterpreterFrame) == 0) continue;
    *codes = InternCode(p.python, session::CodeAddress(stack.frames[i]), table, texts);
    if (*codes++ == 0) p.Count(session::kCodesFull);
  }
}

// Returns whether the stack is complete with regard to Python. An interpreter may have been loaded
// since, or the first comparison with the public functions may have disabled Python frames.
bool PythonIsAsItWas(Process* p, const StackBuilder& stack, bool modules_are_new) {
  if (!p->options.python_stacks) return true;
  const bool was_on = p->python.on();
  // Find() may allocate, so it must not run if a signal has interrupted arbitrary code.
  if (modules_are_new && !stack.was_interrupted()) p->python.Find();
  if (p->python.on() && !stack.was_interrupted()) p->python.CompareOnce();
  PublishPython(p);
  return p->python.on() == was_on;
}

// Not inlined: most stacks are known, and hooks also run on small stacks.
[[gnu::noinline]] uint32_t AddStack(Process* p, const StackTable::Buffer& stack,
                                    const StackBuilder& builder, uint32_t last) {
  uint32_t codes[session::kMaxStackDepth];
  InternCodes(*p, stack, builder.depth(), codes);
  const uint32_t id = p->stacks.Add(stack, builder.depth(), builder.flags(),
                                    p->map.modules().generation(), codes, last);
  if (id == 0) p->Count(session::kStacksFull);
  return id;
}

// Returns whether another walk would yield a different stack than this new one: because a library
// was replaced unnoticed and the walk used the rules of the old one, or because of Python.
[[gnu::noinline]] bool IsOutdated(Process* p, const StackTable::Buffer& stack,
                                  const StackBuilder& builder) {
  const uint32_t modules = p->map.modules().count();
  if (NoteModules(*p, stack.frames, builder.depth())) return true;
  return !PythonIsAsItWas(p, builder, p->map.modules().count() != modules);
}

// Returns the id of a stack that has been recorded before, 0 otherwise.
uint32_t FindKnown(const Process& p, const KnownStack& stack, LastStack* last) {
  const uint32_t id = p.stacks.Find(stack.Hash(p.map.modules().generation()));
  if (id != 0) last->Set(p.identity, id);
  return id;
}

// capture(builder) walks. `last`: the last stack of that kind that this thread recorded.
template <typename Capture>
uint32_t Record(Process* p, StackBuilder::Native native, LastStack* last, Capture capture) {
  // Libraries may be loaded and unloaded by other threads faster than this one walks.
  constexpr int kMaxWalks = 4;
  StackTable::Buffer stack;
  for (int walks = 1;; ++walks) {
    StackBuilder builder(&stack, p->python, native);
    capture(&builder);
    if (builder.depth() == 0) return 0;
    uint32_t id =
        p->stacks.Find(stack, builder.depth(), builder.flags(), p->map.modules().generation());
    if (id == 0) [[unlikely]] {
      if (IsOutdated(p, stack, builder) && walks < kMaxWalks) continue;
      id = AddStack(p, stack, builder, last->Of(p->identity));
    }
    last->Set(p->identity, id);
    return id;
  }
}

}  // namespace

uint32_t RecordStack(Process* p) {
  if (!p->WantsStacks()) return 0;
  if (p->capture.is_own() && p->options.native_stacks != session::Unwinder::kNone) {
    KnownStack known;
    if (FollowStack(p->python, &known)) {
      const uint32_t id = FindKnown(*p, known, &thread_state.last_stack);
      if (id != 0) return id;
    }
  }
  const auto native = p->options.native_stacks != session::Unwinder::kNone
                          ? StackBuilder::Native::kWanted
                          : StackBuilder::Native::kLeftOut;
  return Record(p, native, &thread_state.last_stack,
                [p](StackBuilder* stack) { p->capture.Capture(stack); });
}

uint32_t RecordForwardStack(Process* p) {
  if (p->python.on()) {
    KnownStack known;
    if (FollowPythonStack(p->python, &known)) {
      const uint32_t id = FindKnown(*p, known, &thread_state.last_forward_stack);
      if (id != 0) return id;
    }
    const uint32_t python =
        Record(p, StackBuilder::Native::kLeftOut, &thread_state.last_forward_stack,
               [](StackBuilder* stack) { stack->Finish(false); });
    if (python != 0) return python;
  }
  return RecordStack(p);
}

}  // namespace gmt::preload
