#include "interop/arrow/arrow_stream.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <nanoarrow/hpp/unique.hpp>
#include <nanoarrow/nanoarrow_ipc.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "interop/arrow/dictionary_batch.h"

namespace gmt::interop {
namespace {

// A stream ends with a message whose metadata is empty.
constexpr std::string_view kNoMetadata;
constexpr int64_t kMaxTextBytes = INT32_MAX;  // a dictionary has offsets of 32 bits

using NamedType = std::pair<const char*, ArrowType>;

absl::Status ErrorOf(int code, const ArrowError& error) {
  return absl::ResourceExhaustedError(
      absl::StrCat("Arrow: ", error.message[0] == '\0' ? std::strerror(code) : error.message));
}

int MakeSchema(const std::vector<NamedType>& columns, ArrowSchema* schema) {
  ArrowSchemaInit(schema);
  NANOARROW_RETURN_NOT_OK(ArrowSchemaSetTypeStruct(schema, static_cast<int64_t>(columns.size())));
  for (size_t i = 0; i < columns.size(); ++i) {
    NANOARROW_RETURN_NOT_OK(ArrowSchemaSetName(schema->children[i], columns[i].first));
    NANOARROW_RETURN_NOT_OK(ArrowSchemaSetType(schema->children[i], columns[i].second));
  }
  return NANOARROW_OK;
}

// Adds what only the schema of the whole stream has: the name of the table, and which columns have
// a dictionary.
int Complete(const std::string& table, const std::vector<ArrowColumn>& columns,
             ArrowSchema* schema) {
  nanoarrow::UniqueBuffer metadata;
  NANOARROW_RETURN_NOT_OK(ArrowMetadataBuilderInit(metadata.get(), nullptr));
  NANOARROW_RETURN_NOT_OK(ArrowMetadataBuilderAppend(metadata.get(), ArrowCharView("table"),
                                                     ArrowCharView(table.c_str())));
  NANOARROW_RETURN_NOT_OK(
      ArrowSchemaSetMetadata(schema, reinterpret_cast<const char*>(metadata->data)));
  for (size_t i = 0; i < columns.size(); ++i) {
    if (columns[i].texts == nullptr) continue;
    NANOARROW_RETURN_NOT_OK(ArrowSchemaAllocateDictionary(schema->children[i]));
    NANOARROW_RETURN_NOT_OK(
        ArrowSchemaInitFromType(schema->children[i]->dictionary, NANOARROW_TYPE_STRING));
  }
  return NANOARROW_OK;
}

int Fill(const ArrowValues& from, bool is_text, ArrowArray* column) {
  const auto rows = static_cast<int64_t>(from.values.size());
  ArrowBuffer* data = ArrowArrayBuffer(column, 1);
  if (is_text) {
    NANOARROW_RETURN_NOT_OK(ArrowBufferResize(data, rows * int64_t{sizeof(int32_t)}, 0));
    std::transform(from.values.begin(), from.values.end(), reinterpret_cast<int32_t*>(data->data),
                   [](int64_t number) { return static_cast<int32_t>(number); });
  } else {
    NANOARROW_RETURN_NOT_OK(
        ArrowBufferAppend(data, from.values.data(), rows * int64_t{sizeof(int64_t)}));
  }
  column->length = rows;
  column->null_count = std::count(from.known.begin(), from.known.end(), 0);
  if (column->null_count == 0) return NANOARROW_OK;
  ArrowBitmap* known = ArrowArrayValidityBitmap(column);
  NANOARROW_RETURN_NOT_OK(ArrowBitmapReserve(known, rows));
  ArrowBitmapAppendInt8Unsafe(known, from.known.data(), rows);
  return NANOARROW_OK;
}

int Fill(const TextDictionary& from, ArrowArray* column) {
  NANOARROW_RETURN_NOT_OK(ArrowArrayStartAppending(column));
  for (const std::string_view text : from.texts()) {
    NANOARROW_RETURN_NOT_OK(
        ArrowArrayAppendString(column, {text.data(), static_cast<int64_t>(text.size())}));
  }
  return NANOARROW_OK;
}

}  // namespace

struct ArrowStream::State {
  // What fills the columns of an array.
  using Filler = std::function<int(ArrowArray*)>;

  // Encodes `rows` rows of columns with that schema, as the message `metadata` with its body.
  int Encode(const ArrowSchema* schema, int64_t rows, const Filler& fill, ArrowBuffer* metadata,
             ArrowBuffer* body);
  void Write(std::string_view metadata, const ArrowBuffer* body);
  absl::Status WriteSchema(const std::string& table, const std::vector<NamedType>& types);
  absl::Status WriteDictionary(const ArrowColumn& column, int64_t id);

  Output output;
  std::vector<ArrowColumn> columns;
  nanoarrow::UniqueSchema rows;  // numbers in place of texts
  nanoarrow::ipc::UniqueEncoder encoder;
  ArrowError error = {};
};

int ArrowStream::State::Encode(const ArrowSchema* schema, int64_t rows_encoded, const Filler& fill,
                               ArrowBuffer* metadata, ArrowBuffer* body) {
  nanoarrow::UniqueArray array;
  nanoarrow::UniqueArrayView view;
  NANOARROW_RETURN_NOT_OK(ArrowArrayInitFromSchema(array.get(), schema, &error));
  NANOARROW_RETURN_NOT_OK(fill(array.get()));
  array->length = rows_encoded;
  NANOARROW_RETURN_NOT_OK(ArrowArrayFinishBuildingDefault(array.get(), &error));
  NANOARROW_RETURN_NOT_OK(ArrowArrayViewInitFromSchema(view.get(), schema, &error));
  NANOARROW_RETURN_NOT_OK(ArrowArrayViewSetArray(view.get(), array.get(), &error));
  NANOARROW_RETURN_NOT_OK(
      ArrowIpcEncoderEncodeSimpleRecordBatch(encoder.get(), view.get(), body, &error));
  return ArrowIpcEncoderFinalizeBuffer(encoder.get(), 0, metadata);
}

// A message has a prefix: a mark and the size of the metadata, which is padded to a multiple of 8.
void ArrowStream::State::Write(std::string_view metadata, const ArrowBuffer* body) {
  constexpr size_t kAlignment = 8;
  const std::string padding((kAlignment - metadata.size() % kAlignment) % kAlignment, '\0');
  const uint32_t prefix[] = {0xFFFFFFFF, static_cast<uint32_t>(metadata.size() + padding.size())};
  output({reinterpret_cast<const char*>(prefix), sizeof(prefix)});
  output(metadata);
  output(padding);
  if (body != nullptr)
    output({reinterpret_cast<const char*>(body->data), static_cast<size_t>(body->size_bytes)});
}

namespace {

std::string_view BytesOf(const nanoarrow::UniqueBuffer& buffer) {
  return {reinterpret_cast<const char*>(buffer->data), static_cast<size_t>(buffer->size_bytes)};
}

}  // namespace

absl::Status ArrowStream::State::WriteSchema(const std::string& table,
                                             const std::vector<NamedType>& types) {
  nanoarrow::UniqueSchema schema;
  nanoarrow::UniqueBuffer metadata;
  int code = MakeSchema(types, schema.get());
  if (code == NANOARROW_OK) code = Complete(table, columns, schema.get());
  if (code == NANOARROW_OK) code = ArrowIpcEncoderEncodeSchema(encoder.get(), schema.get(), &error);
  if (code == NANOARROW_OK) code = ArrowIpcEncoderFinalizeBuffer(encoder.get(), 0, metadata.get());
  if (code != NANOARROW_OK) return ErrorOf(code, error);
  Write(BytesOf(metadata), nullptr);
  return absl::OkStatus();
}

absl::Status ArrowStream::State::WriteDictionary(const ArrowColumn& column, int64_t id) {
  const std::vector<std::string_view>& texts = column.texts->texts();
  int64_t bytes = 0;
  for (const std::string_view text : texts) bytes += static_cast<int64_t>(text.size());
  if (bytes > kMaxTextBytes) {
    return absl::ResourceExhaustedError(
        absl::StrCat("the column ", column.name,
                     " has more than 2 GiB of different texts, which Arrow cannot "
                     "hold in one dictionary. Use --format jsonl"));
  }
  nanoarrow::UniqueSchema schema;
  nanoarrow::UniqueBuffer values, body;
  int code = MakeSchema({{"", NANOARROW_TYPE_STRING}}, schema.get());
  if (code == NANOARROW_OK) {
    code = Encode(
        schema.get(), static_cast<int64_t>(texts.size()),
        [&](ArrowArray* array) { return Fill(*column.texts, array->children[0]); }, values.get(),
        body.get());
  }
  if (code != NANOARROW_OK) return ErrorOf(code, error);
  size_t size = 0;
  const std::unique_ptr<void, decltype(&std::free)> metadata(
      gmt_arrow_dictionary_batch(values->data, id, &size), &std::free);
  if (metadata == nullptr) return ErrorOf(ENOMEM, error);
  Write({static_cast<const char*>(metadata.get()), size}, body.get());
  return absl::OkStatus();
}

ArrowStream::ArrowStream(Output output) : state_(std::make_unique<State>()) {
  state_->output = std::move(output);
}

ArrowStream::~ArrowStream() = default;

absl::Status ArrowStream::Begin(const std::string& table, std::vector<ArrowColumn> columns) {
  state_->columns = std::move(columns);
  std::vector<NamedType> types;
  for (const ArrowColumn& column : state_->columns) {
    types.emplace_back(column.name.c_str(),
                       column.texts == nullptr ? NANOARROW_TYPE_INT64 : NANOARROW_TYPE_INT32);
  }
  int code = ArrowIpcEncoderInit(state_->encoder.get());
  if (code == NANOARROW_OK) code = MakeSchema(types, state_->rows.get());
  if (code != NANOARROW_OK) return ErrorOf(code, state_->error);
  absl::Status status = state_->WriteSchema(table, types);
  int64_t id = 0;  // nanoarrow numbers the columns with dictionaries in their order
  for (const ArrowColumn& column : state_->columns) {
    if (column.texts != nullptr && status.ok()) status = state_->WriteDictionary(column, id++);
  }
  return status;
}

absl::Status ArrowStream::WriteRows(const std::vector<ArrowValues>& columns) {
  nanoarrow::UniqueBuffer metadata, body;
  const int code = state_->Encode(
      state_->rows.get(), static_cast<int64_t>(columns.front().values.size()),
      [&](ArrowArray* array) {
        for (size_t i = 0; i < columns.size(); ++i) {
          const bool is_text = state_->columns[i].texts != nullptr;
          NANOARROW_RETURN_NOT_OK(Fill(columns[i], is_text, array->children[i]));
        }
        return NANOARROW_OK;
      },
      metadata.get(), body.get());
  if (code != NANOARROW_OK) return ErrorOf(code, state_->error);
  state_->Write(BytesOf(metadata), body.get());
  return absl::OkStatus();
}

void ArrowStream::End() { state_->Write(kNoMetadata, nullptr); }

}  // namespace gmt::interop
