#include "preload/record_stack.h"

#include "preload/clock.h"
#include "preload/note_modules.h"
#include "preload/python/code_object.h"
#include "preload/thread_state.h"

namespace gmt::preload {
namespace {

using session::StackTable;

// What the process has learnt about Python goes where the collector finds it.
void PublishPythonSource(Process* p) {
  const char* status = p->python.status();
  if (status == p->python_source.exchange(status, std::memory_order_relaxed)) return;
  p->map.control().facts[session::kPythonSource].store(p->map.texts().Intern(status),
                                                       std::memory_order_release);
}

// The ids of the code objects of the stack's interpreter frames, which are running and therefore
// there.
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

[[gnu::noinline]] uint32_t AddStack(Process* p, StackTable::Buffer* stack, uint32_t depth,
                                    uint16_t flags) {
  NoteModules(*p, stack->frames, depth);  // which may raise the generation
  uint32_t codes[session::kMaxStackDepth];
  InternCodes(*p, *stack, depth, codes);
  const uint32_t id = p->stacks.Add(stack, depth, flags, p->map.modules().generation(), codes,
                                    LastStack(p->identity));
  if (id == 0) p->Count(session::kStacksFull);
  return id;
}

}  // namespace

uint32_t RecordStack(Process* p) {
  StackTable::Buffer stack;
  StackBuilder builder(&stack, p->python);
  p->capture.Capture(&builder);
  if (builder.depth() == 0) return 0;
  uint32_t id =
      p->stacks.Find(&stack, builder.depth(), builder.flags(), p->map.modules().generation());
  if (id == 0) [[unlikely]] {
    if (p->options.python_stacks) {
      p->python.LookAgain(NowNs());
      const bool fits = builder.was_interrupted() || p->python.CompareOnce();
      PublishPythonSource(p);
      if (!fits) return RecordStack(p);  // which has no Python frames now
    }
    id = AddStack(p, &stack, builder.depth(), builder.flags());
  }
  SetLastStack(p->identity, id);
  return id;
}

}  // namespace gmt::preload
