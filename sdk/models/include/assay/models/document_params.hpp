// The rows of a parameter table by which documents are packed in sequences.
#pragma once
#include <assay/plugin.hpp>

#include <assay/models/documents.hpp>

namespace assay::models {

inline constexpr auto document_lengths =
    choices<DocumentLengths>({{"fixed", DocumentLengths::fixed}, {"log_normal", DocumentLengths::log_normal}});

inline constexpr auto document_params = table(
    Param::integer("document_tokens", 0)
        .at_least(0)
        .at_most(1 << 20)
        .unit("tokens")
        .help("mean length of the documents packed in a sequence, whose tokens do not see each other; 0: a sequence "
              "is one document"),
    Param::choice("document_lengths", DocumentLengths::fixed, document_lengths)
        .help("of document_tokens: fixed, or log_normal around it with a deviation of 1, drawn from the seed"));

// Lengths by document_params of what fills a sequence; empty where they are left out. INVALID_ARGUMENT where
// document_lengths is set and nothing reads it.
std::vector<std::int64_t> documents_of(const Case& c, std::int64_t length);

}  // namespace assay::models
