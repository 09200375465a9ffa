// format/event_fields.h
//
// Lists the fields of Event (format/event.h) that are columns of the same name in the file and are
// written unchanged, by family. Shared by encoder and decoder. Not listed: times, addresses of
// acquisitions, totals and names of nodes. The fields that a free or a role shares with its
// allocation are in GMT_RETURN_SHARED_COLUMNS and GMT_ROLE_SHARED_COLUMNS, with their bits in
// `same`.

#ifndef GMT_FORMAT_EVENT_FIELDS_H_
#define GMT_FORMAT_EVENT_FIELDS_H_

// clang-format off
#define GMT_ACQUISITION_COLUMNS(COLUMN) \
  COLUMN(heap) COLUMN(memory) COLUMN(device) COLUMN(context) COLUMN(size) COLUMN(stack) \
  COLUMN(stream) COLUMN(api) COLUMN(duration_ns) COLUMN(result) COLUMN(requested) COLUMN(pool) \
  COLUMN(forward_stack) COLUMN(handle) COLUMN(offset) COLUMN(flags) COLUMN(name) COLUMN(scope) \
  COLUMN(dtype) COLUMN(shape) COLUMN(roles)
#define GMT_RETURN_COLUMNS(COLUMN) \
  COLUMN(stack) COLUMN(api) COLUMN(duration_ns) COLUMN(result)
#define GMT_RETURN_SHARED_COLUMNS(COLUMN) \
  COLUMN(heap, kSameHeap) COLUMN(memory, kSameMemory) COLUMN(device, kSameDevice) \
  COLUMN(context, kSameContext) COLUMN(address, kSameAddress) COLUMN(size, kSameSize) \
  COLUMN(stream, kSameStream) COLUMN(pool, kSamePool)
#define GMT_ACTIVITY_COLUMNS(COLUMN) \
  COLUMN(device) COLUMN(context) COLUMN(stream) COLUMN(object) COLUMN(action) COLUMN(api) \
  COLUMN(duration_ns) COLUMN(result) COLUMN(stack) COLUMN(priority) COLUMN(flags) COLUMN(heap) \
  COLUMN(value) COLUMN(name) COLUMN(memory)
#define GMT_NOTE_COLUMNS(COLUMN) \
  COLUMN(name) COLUMN(index) COLUMN(domain) COLUMN(range) COLUMN(color) COLUMN(stack) \
  COLUMN(text) COLUMN(device)
#define GMT_ROLE_COLUMNS(COLUMN) \
  COLUMN(roles) COLUMN(forward_stack) COLUMN(present)
#define GMT_ROLE_SHARED_COLUMNS(COLUMN) \
  COLUMN(heap, kSameHeap) COLUMN(memory, kSameMemory) COLUMN(device, kSameDevice) \
  COLUMN(address, kSameAddress) COLUMN(size, kSameSize)
// clang-format on

#endif  // GMT_FORMAT_EVENT_FIELDS_H_
