// Recurrent networks of the cuDNN stand-in: the location of each layer's weights in the single
// buffer that holds all of them. PyTorch reads the layout back. It expects for each pseudo-layer (a
// layer in one direction) the matrices for the input, one after the other, then those for the
// state.
//
//   | layer 0: W0 .. Wn  R0 .. Rn (P) | layer 1: ... | layer 0: biases of W, of R | layer 1: ... |
#include "tests/simcuda/math/cudnn_objects.h"

namespace {

using sim::CudnnShape;
using sim::kCudnnBadParameter;
using sim::kCudnnSuccess;

enum Cell { kLstm = 2, kGru = 3 };  // cudnnRNNMode_t

}  // namespace

struct CudnnRnn {
  int cell = 0;
  int bias_mode = 0;
  int directions = 1;
  int data_type = 0;
  int64_t input = 0;
  int64_t hidden = 0;
  int64_t projection = 0;
  int layers = 0;

  int Gates() const { return cell == kLstm ? 4 : cell == kGru ? 3 : 1; }
  bool Projects() const { return projection > 0 && projection != hidden; }
  int64_t Output() const { return Projects() ? projection : hidden; }
  int BiasVectors() const { return bias_mode == 0 ? 0 : bias_mode == 2 ? 2 * Gates() : Gates(); }
  int PseudoLayers() const { return layers * directions; }

  // Returns the columns of a matrix; its rows are those of the hidden state, or of the projection.
  int64_t Columns(int pseudo_layer, int matrix) const {
    if (matrix == 2 * Gates()) return hidden;
    if (matrix >= Gates()) return Output();
    return pseudo_layer < directions ? input : Output() * directions;
  }
  int64_t Rows(int matrix) const { return matrix == 2 * Gates() ? projection : hidden; }
  int Matrices() const { return 2 * Gates() + (Projects() ? 1 : 0); }

  // Returns the number of elements before a matrix. PseudoLayers() and 0 give the total.
  int64_t MatrixOffset(int pseudo_layer, int matrix) const {
    int64_t offset = 0;
    for (int layer = 0; layer < pseudo_layer; ++layer) {
      for (int i = 0; i < Matrices(); ++i) offset += Rows(i) * Columns(layer, i);
    }
    for (int i = 0; i < matrix; ++i) offset += Rows(i) * Columns(pseudo_layer, i);
    return offset;
  }
  int64_t BiasOffset(int pseudo_layer, int vector) const {
    int64_t before = int64_t{pseudo_layer} * BiasVectors() + vector;
    return MatrixOffset(PseudoLayers(), 0) + before * hidden;
  }
  size_t Bytes(int64_t elements) const { return elements * sim::CudnnTypeSize(data_type); }
};

namespace {

void Describe(CudnnShape* shape, int data_type, int64_t rows, int64_t columns) {
  if (shape == nullptr) return;
  *shape = {.data_type = data_type,
            .dimensions = 3,
            .extents = {1, static_cast<int>(rows), static_cast<int>(columns)},
            .strides = {static_cast<int>(rows * columns), static_cast<int>(columns), 1}};
}

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

int cudnnCreateRNNDescriptor(CudnnRnn** descriptor) {
  *descriptor = new CudnnRnn;
  return kCudnnSuccess;
}

int cudnnDestroyRNNDescriptor(CudnnRnn* descriptor) {
  delete descriptor;
  return kCudnnSuccess;
}

int cudnnSetRNNDescriptor_v8(CudnnRnn* rnn, int, int cell, int bias_mode, int bidirectional, int,
                             int data_type, int, int, int32_t input, int32_t hidden,
                             int32_t projection, int32_t layers, void*, uint32_t) {
  if (rnn == nullptr) return kCudnnBadParameter;
  *rnn = {.cell = cell,
          .bias_mode = bias_mode,
          .directions = bidirectional != 0 ? 2 : 1,
          .data_type = data_type,
          .input = input,
          .hidden = hidden,
          .projection = projection,
          .layers = layers};
  return kCudnnSuccess;
}

int cudnnGetRNNWeightSpaceSize(cudnnContext*, const CudnnRnn* rnn, size_t* size) {
  *size = rnn->Bytes(rnn->BiasOffset(rnn->PseudoLayers(), 0));
  return kCudnnSuccess;
}

int cudnnGetRNNTempSpaceSizes(cudnnContext*, const CudnnRnn*, int, void*, size_t* workspace,
                              size_t* reserve) {
  if (workspace != nullptr) *workspace = sim::LibrarySettings().workspace;
  if (reserve != nullptr) *reserve = sim::LibrarySettings().workspace;
  return kCudnnSuccess;
}

int cudnnGetRNNWeightParams(cudnnContext*, const CudnnRnn* rnn, int32_t pseudo_layer, size_t,
                            const void* weights, int32_t matrix, CudnnShape* matrix_shape,
                            void** matrix_address, CudnnShape* bias_shape, void** bias_address) {
  if (rnn == nullptr || pseudo_layer < 0 || pseudo_layer >= rnn->PseudoLayers() || matrix < 0 ||
      matrix > 2 * rnn->Gates()) {
    return kCudnnBadParameter;
  }
  auto address = [&](int64_t offset) {
    return reinterpret_cast<void*>(reinterpret_cast<uintptr_t>(weights) + rnn->Bytes(offset));
  };
  bool exists = matrix < rnn->Matrices();
  if (matrix_address != nullptr) {
    *matrix_address = exists ? address(rnn->MatrixOffset(pseudo_layer, matrix)) : nullptr;
    if (exists) {
      Describe(matrix_shape, rnn->data_type, rnn->Rows(matrix), rnn->Columns(pseudo_layer, matrix));
    }
  }
  exists = matrix < rnn->BiasVectors();
  if (bias_address != nullptr) {
    *bias_address = exists ? address(rnn->BiasOffset(pseudo_layer, matrix)) : nullptr;
    if (exists) Describe(bias_shape, rnn->data_type, rnn->hidden, 1);
  }
  return kCudnnSuccess;
}

}  // extern "C"
#pragma GCC visibility pop
