// What clients of the control socket may request (collector/mailbox/mailbox.h).

#include <string>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "collector/collector.h"
#include "format/definitions_builder.h"
#include "session/attach.h"
#include "session/slice.h"

namespace gmt::collector {
namespace {

using control::Mailbox;

// Allows only what the collector itself implements; the other options are fixed when the session is
// created.
absl::Status CheckChangeable(std::string_view text) {
  if (text.empty()) return absl::InvalidArgumentError("no option is named");
  while (!text.empty()) {
    const std::string_view pair = session::Cut(&text, ',');
    const std::string_view key = pair.substr(0, pair.find('='));
    if (key != "snapshot") {
      return absl::InvalidArgumentError(absl::StrCat(
          "the option ", std::string(key), " cannot be changed while a program is recorded"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

void Collector::SnapshotIfDue() {
  const char* reason = policy_.Due(deps_.clock->NowNs(), recorder_.tally().heaps());
  if (reason != nullptr) AddSnapshot(reason, reason);
}

void Collector::ServeMailbox(bool drained) {
  if (deps_.mailbox == nullptr) return;
  const uint64_t now = deps_.clock->NowNs();
  if (const uint32_t kinds = deps_.mailbox->TakeRequestedKinds(now); kinds != 0)
    Publish(kinds, drained);
  if (!deps_.mailbox->has_requests()) return;
  for (const Mailbox::QueuedRequest& asked : deps_.mailbox->TakeRequests()) {
    control::Reply reply = HandleRequest(asked.request, drained);
    reply.set_id(asked.request.id());
    deps_.mailbox->Answer(asked.client, std::move(reply));
  }
}

void Collector::Publish(uint32_t kinds, bool drained) {
  const uint64_t began = deps_.clock->NowNs();
  // If the disk is full, the status says so.
  if ((kinds & Mailbox::kWritten) != 0 && !output_.file().stalled()) Flush(began);
  deps_.mailbox->Publish(copies_.Make(kinds, began, drained, output_.file(), drain_.exactness()));
}

control::Reply Collector::HandleRequest(const control::Request& request, bool drained) {
  control::Reply reply;
  const uint64_t now = deps_.clock->NowNs();
  switch (request.what_case()) {
    case control::Request::kSnapshot: {
      const Exactness exactness = drain_.exactness();
      control::SnapshotDone* done = reply.mutable_snapshot();
      done->set_name(AddSnapshot(request.snapshot().name(), "request"));
      done->set_t_ns(recorder_.translator().Time(recorder_.newest_ns()));
      done->set_exact(exactness.inexact_because.empty());
      done->set_inexact_because(exactness.inexact_because);
      done->set_recording(deps_.output_path);
      if (output_.file().stalled()) {
        reply.set_error(absl::StrCat("the snapshot is kept until the recording can be written: ",
                                     output_.file().stall_reason()));
      }
      break;
    }
    case control::Request::kMark: {
      const control::SetMark& mark = request.mark();
      recorder_.AddMark(drained ? now : recorder_.newest_ns(), mark.name(),
                        mark.has_index() ? std::optional<uint64_t>(mark.index()) : std::nullopt);
      SnapshotAtMark(mark.name(), now);
      recorder_.Flush();
      reply.mutable_done();
      break;
    }
    case control::Request::kOptions: {
      if (absl::Status status = ChangeOptions(request.options().text(), now); status.ok()) {
        reply.mutable_done();
      } else {
        reply.set_error(std::string(status.message()));
      }
      break;
    }
    default:
      // The recording ends at the next round; the socket closes when it is complete.
      if (attach_ != 0) {
        session::EndAttach(&deps_.session.control(), attach_);
        reply.mutable_done();
        break;
      }
      reply.set_error(
          "the process is recorded from its start by the preloaded library, until it ends; only "
          "what "
          "was attached to can be detached from");
  }
  return reply;
}

absl::Status Collector::ChangeOptions(const std::string& text, uint64_t now_ns) {
  if (absl::Status status = CheckChangeable(text); !status.ok()) return status;
  session::Options options = options_;
  std::string wrong;
  session::ParseOptions(
      text, &options,
      [](void* to, const session::OptionError& error) {
        *static_cast<std::string*>(to) = absl::StrCat(std::string(error.pair), ": ", error.why);
      },
      &wrong);
  if (!wrong.empty()) return absl::InvalidArgumentError(wrong);
  options_ = options;
  policy_.Follow(options_, now_ns);
  return absl::OkStatus();
}

}  // namespace gmt::collector
