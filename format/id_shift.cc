#include "format/id_shift.h"

#include "proto/gmt.pb.h"
#include "proto/leaks.pb.h"

namespace gmt::format {
namespace {

void Shift(uint32_t base, uint32_t* id) {
  if (*id != 0) *id += base;
}

void Shift(uint32_t base, google::protobuf::RepeatedField<uint32_t>* column) {
  for (uint32_t& id : *column) Shift(base, &id);
}

}  // namespace

void ShiftIds(const Definitions::Base& base, Event* event) {
  for (uint32_t* id : {&event->heap, &event->api, &event->name, &event->scope, &event->dtype,
                       &event->shape, &event->action, &event->domain, &event->text}) {
    Shift(base.string, id);
  }
  Shift(base.stack, &event->stack);
  Shift(base.stack, &event->forward_stack);
}

void ShiftIds(const Definitions::Base& base, gmt::Snapshot* snapshot) {
  gmt::Live* live = snapshot->mutable_live();
  for (auto* column : {live->mutable_heap(), live->mutable_api(), live->mutable_name(),
                       live->mutable_scope(), live->mutable_dtype(), live->mutable_shape()}) {
    Shift(base.string, column);
  }
  Shift(base.stack, live->mutable_stack());
  Shift(base.stack, live->mutable_forward_stack());
  for (gmt::InFlight& call : *snapshot->mutable_in_flight()) {
    if (call.stack() != 0) call.set_stack(call.stack() + base.stack);
  }
}

void ShiftIds(const Definitions::Base& base, gmt::Aggregates* aggregates) {
  if (aggregates->has_sites()) {
    Shift(base.stack, aggregates->mutable_sites()->mutable_stack());
    Shift(base.stack, aggregates->mutable_sites()->mutable_forward_stack());
  }
  if (!aggregates->has_leaks()) return;
  gmt::LeakState* leaks = aggregates->mutable_leaks();
  Shift(base.stack, leaks->mutable_loop_stack());
  Shift(base.stack, leaks->mutable_loop_forward_stack());
  for (gmt::LeakSite& site : *leaks->mutable_grown()) {
    const bool is_of_others = site.stack() == UINT32_MAX;
    if (site.stack() != 0 && !is_of_others) site.set_stack(site.stack() + base.stack);
    if (site.forward_stack() != 0) site.set_forward_stack(site.forward_stack() + base.stack);
  }
}

}  // namespace gmt::format
