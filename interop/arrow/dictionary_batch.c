#include "interop/arrow/dictionary_batch.h"

#include <nanoarrow/ipc/flatcc_generated.h>

#define arrow(name) FLATBUFFERS_WRAP_NAMESPACE(org_apache_arrow_flatbuf, name)

void* gmt_arrow_dictionary_batch(const void* record_batch, int64_t id, size_t* size) {
  const arrow(Message_table_t) message = arrow(Message_as_root(record_batch));
  const arrow(RecordBatch_table_t) values =
      (arrow(RecordBatch_table_t))arrow(Message_header(message));
  flatcc_builder_t builder;
  if (flatcc_builder_init(&builder) != 0) return NULL;
  const int built =
      arrow(Message_start_as_root(&builder)) == 0 &&
      arrow(Message_version_add(&builder, arrow(MetadataVersion_V5))) == 0 &&
      arrow(Message_header_DictionaryBatch_start(&builder)) == 0 &&
      arrow(DictionaryBatch_id_add(&builder, id)) == 0 &&
      arrow(DictionaryBatch_data_clone(&builder, values)) == 0 &&
      arrow(Message_header_DictionaryBatch_end(&builder)) == 0 &&
      arrow(Message_bodyLength_add(&builder, arrow(Message_bodyLength(message)))) == 0 &&
      arrow(Message_end_as_root(&builder)) != 0;
  void* result = built ? flatcc_builder_finalize_buffer(&builder, size) : NULL;
  flatcc_builder_clear(&builder);
  return result;
}
