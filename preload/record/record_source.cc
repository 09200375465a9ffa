#include "preload/record/record_source.h"

#include "preload/base/clock.h"
#include "preload/base/thread_state.h"
#include "preload/record/record_event.h"

namespace gmt::preload {
namespace {

uint32_t IdOf(Process* p, std::string_view text) {
  const uint32_t id = p->map.texts().Intern(text);
  if (id == 0) p->Count(session::kTextsFull);
  return id;
}

}  // namespace

void SetSourceStatus(Process* p, session::Fact fact, std::string_view status) {
  p->map.control().facts[fact].store(IdOf(p, status), std::memory_order_release);
}

void RecordSource(Process* p, std::string_view source, std::string_view status) {
  session::Record r;
  r.kind = session::Kind::kSource;
  r.thread = ThreadId(p->identity);
  r.time_ns = NowNs();
  r.value = IdOf(p, source);
  r.size = IdOf(p, status);
  CommitAlone(p, r);
}

void RecordSource(Process* p, session::Fact fact, std::string_view source,
                  std::string_view status) {
  SetSourceStatus(p, fact, status);
  RecordSource(p, source, status);
}

}  // namespace gmt::preload
