#include "analysis/estimate/model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace gmt::analysis {
namespace {

using ::testing::HasSubstr;

uint64_t ParametersOf(const std::string& config) {
  const absl::StatusOr<Model> model = ModelOfConfig(config);
  EXPECT_TRUE(model.ok()) << model.status();
  return model.ok() ? model->parameters : 0;
}

std::string ErrorOf(const std::string& config) {
  return std::string(ModelOfConfig(config).status().message());
}

// The numbers are those of the transformers library, by its own count of the tensors.
TEST(ModelTest, PublishedModelsHaveTheirPublishedNumberOfParameters) {
  EXPECT_EQ(ParametersOf(R"({"model_type":"gpt2","n_embd":768,"n_head":12,"n_layer":12,
      "n_positions":1024,"vocab_size":50257})"),
            124'439'808u);
  EXPECT_EQ(ParametersOf(R"({"model_type":"llama","hidden_size":4096,"intermediate_size":11008,
      "num_hidden_layers":32,"num_attention_heads":32,"vocab_size":32000})"),
            6'738'415'616u);
  EXPECT_EQ(ParametersOf(R"({"model_type":"mistral","hidden_size":4096,"intermediate_size":14336,
      "num_hidden_layers":32,"num_attention_heads":32,"num_key_value_heads":8,
      "vocab_size":32000})"),
            7'241'732'096u);
  EXPECT_EQ(ParametersOf(R"({"model_type":"opt","hidden_size":2048,"num_hidden_layers":24,
      "ffn_dim":8192,"num_attention_heads":32,"word_embed_proj_dim":2048,"vocab_size":50272,
      "max_position_embeddings":2048})"),
            1'315'758'080u);
  EXPECT_EQ(ParametersOf(R"({"model_type":"gpt_neox","hidden_size":6144,"num_hidden_layers":44,
      "intermediate_size":24576,"num_attention_heads":64,"vocab_size":50432})"),
            20'554'567'680u);
  EXPECT_EQ(ParametersOf(R"({"model_type":"qwen3","hidden_size":4096,"intermediate_size":22016,
      "num_hidden_layers":32,"num_attention_heads":32,"vocab_size":151936,"head_dim":128,
      "attention_bias":false})"),
            12'049'461'248u);
  EXPECT_EQ(ParametersOf(R"({"model_type":"qwen2","hidden_size":4096,"intermediate_size":22016,
      "num_hidden_layers":32,"num_attention_heads":32,"vocab_size":151936})"),
            12'049'846'272u);
  EXPECT_EQ(ParametersOf(R"({"model_type":"gemma","hidden_size":3072,"intermediate_size":24576,
      "num_hidden_layers":28,"num_attention_heads":16,"num_key_value_heads":16,"head_dim":256,
      "vocab_size":256000})"),
            8'537'680'896u);
  EXPECT_EQ(ParametersOf(R"({"model_type":"phi3","hidden_size":3072,"intermediate_size":8192,
      "num_hidden_layers":32,"num_attention_heads":32,"vocab_size":32064})"),
            3'821'079'552u);
  EXPECT_EQ(ParametersOf(R"({"model_type":"t5","d_model":512,"d_kv":64,"d_ff":2048,"num_layers":6,
      "num_heads":8,"vocab_size":32128})"),
            60'506'624u);
  EXPECT_EQ(ParametersOf(R"({"model_type":"t5","d_model":512,"d_kv":64,"d_ff":1024,"num_layers":8,
      "num_heads":6,"vocab_size":32128,"feed_forward_proj":"gated-gelu",
      "tie_word_embeddings":false})"),
            76'961'152u);
}

TEST(ModelTest, AClassOfTheArchitectureDecidesWhetherThereIsAHead) {
  const std::string bert = R"({"model_type":"bert","hidden_size":768,"num_hidden_layers":12,
      "num_attention_heads":12,"intermediate_size":3072,"vocab_size":30522,
      "max_position_embeddings":512,"architectures":[")";
  EXPECT_EQ(ParametersOf(bert + R"(BertModel"]})"), 109'482'240u);
  EXPECT_EQ(ParametersOf(bert + R"(BertForMaskedLM"]})"), 109'514'298u);
}

TEST(ModelTest, OptWithNarrowEmbeddingsHasProjections) {
  EXPECT_EQ(ParametersOf(R"({"model_type":"opt","hidden_size":1024,"num_hidden_layers":24,
      "ffn_dim":4096,"num_attention_heads":16,"word_embed_proj_dim":512,"vocab_size":50272,
      "max_position_embeddings":2048,"do_layer_norm_before":false})"),
            331'196'416u);
}

// Models whose parameters were counted in recordings of real GPUs.
TEST(ModelTest, RecordedModelsHaveTheirRecordedNumberOfParameters) {
  const auto llama = [](int hidden, int inner, int layers, int heads) {
    return ParametersOf(
        R"({"model_type":"llama","vocab_size":10000,"hidden_size":)" + std::to_string(hidden) +
        R"(,"intermediate_size":)" + std::to_string(inner) + R"(,"num_hidden_layers":)" +
        std::to_string(layers) + R"(,"num_attention_heads":)" + std::to_string(heads) + "}");
  };
  EXPECT_EQ(llama(2560, 10240, 32, 32) * 4, 13'627'238'400u);
  EXPECT_EQ(llama(1280, 5120, 36, 20) * 4, 3'877'647'360u);
  EXPECT_EQ(llama(1024, 4096, 24, 16) * 4, 1'692'733'440u);
  EXPECT_EQ(ParametersOf(R"({"model_type":"opt","hidden_size":768,"num_hidden_layers":12,
      "ffn_dim":3072,"num_attention_heads":12,"vocab_size":50272,
      "max_position_embeddings":2048})") *
                4,
            500'957'184u);
}

TEST(ModelTest, AShapeIsADecoderOfTorchModules) {
  const absl::StatusOr<Model> model = ModelOfShape({4, 256, 4, 8192, 128});
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(model->parameters, 4u * (12 * 256 * 256 + 13 * 256) + 2 * 8192 * 256 + 128 * 256 + 512);
  EXPECT_EQ(model->Layers(), 4u);
  EXPECT_FALSE(ModelOfShape({4, 250, 4, 8192, 128}).ok());
  EXPECT_FALSE(ModelOfShape({0, 256, 4, 8192, 128}).ok());
}

TEST(ModelTest, WhatIsWrongWithAConfigurationIsNamed) {
  EXPECT_EQ(ErrorOf("[1]"), "not a JSON object");
  EXPECT_EQ(ErrorOf("{"), "not a JSON object");
  EXPECT_EQ(ErrorOf("{}"), "there is no \"model_type\"");
  EXPECT_THAT(ErrorOf(R"({"model_type":"mamba"})"),
              HasSubstr(R"(the layers of model_type "mamba" are not known, only those of llama,)"));
  EXPECT_EQ(ErrorOf(R"({"model_type":"llama"})"),
            R"(there is no "hidden_size" or "n_embd" or "d_model")");
  EXPECT_EQ(ErrorOf(R"({"model_type":"llama","hidden_size":-1})"),
            R"("hidden_size" is not a number from 1 to 200000)");
  EXPECT_EQ(ErrorOf(R"({"model_type":"gpt2","n_embd":7,"n_head":2,"n_layer":1,"vocab_size":9,
      "n_positions":8})"),
            "the hidden size is no multiple of the number of heads");
  EXPECT_EQ(ErrorOf(R"({"model_type":"llama","hidden_size":8,"num_attention_heads":2,
      "num_key_value_heads":4,"vocab_size":9,"intermediate_size":8,"num_hidden_layers":1})"),
            "there are more heads for keys than for queries");
}

}  // namespace
}  // namespace gmt::analysis
