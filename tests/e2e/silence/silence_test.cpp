// Silent steps talk to nobody: two ranks whose communicator counts what goes through it.
#include <fstream>
#include <nlohmann/json.hpp>

#include "e2e/support/sandbox.hpp"

namespace assay::test {
namespace {

using nlohmann::json;

constexpr const char* small_decoder =
    "d_model = 32\nd_ff = 64\nlayers = 1\nheads = 2\nvocab_size = 50\nbatch_size = 2\ncontext_length = 16\n";
constexpr const char* two_stages =
    "d_model = 32\nd_ff = 64\nlayers = 2\nheads = 2\nvocab_size = 50\nbatch_size = 2\ncontext_length = 16\n";
constexpr const char* small_encoder_decoder =
    "d_model = 32\nheads = 2\nencoder_layers = 1\ndecoder_layers = 1\nd_ff = 64\nsequence_length = 8\nvocab_size = 64\n"
    "batch_size = 4\nnum_samples = 23\nunit = \"step\"\n";

class Silence : public Sandbox {
 protected:
  Silence() { set_variable("ASSAY_COMM_PATH", COUNTED_COMM_FOLDER); }

  // What all ranks have sent from set-up to the end of the verification.
  std::int64_t bytes_of(const char* plugin, const std::string& params, int warmup, int steps) {
    const std::filesystem::path file = folder() / "counted";
    std::filesystem::remove(file);
    set_variable("COUNTED_BYTES_FILE", file.string());
    const json record =
        records_of({.plugin = plugin,
                    .params = params,
                    .measure = "warmup = " + std::to_string(warmup) + "\nsteps = " + std::to_string(steps),
                    .run = "threads = 1\nranks = 2"})
            .at(0);
    EXPECT_EQ(record["status"], "ok") << record["reason"];
    EXPECT_EQ(record["silent"]["steps"], steps);
    EXPECT_GT(record["silent"]["step_mean_ms"], 0);
    std::ifstream counted(file);
    std::int64_t sum = 0;
    for (std::int64_t bytes = 0; counted >> bytes;) sum += bytes;
    return sum;
  }
};

// A warm-up of five steps shows what a step sends. Four measured steps more mean at least four silent ones more, and
// those must not show.
TEST_F(Silence, IsKeptByEachWorkloadThatOffersIt) {
  struct Offered {
    const char *plugin, *params, *more;
  };
  for (const Offered& offered :
       {Offered{"ddp", small_decoder, "strategy = \"naive\""},
        Offered{"ddp", small_decoder, "strategy = \"overlap_bucketed\""},
        Offered{"sharded_optimizer", small_decoder, "variant = \"zero1\""},
        Offered{"sharded_optimizer", small_decoder, "variant = \"broadcast\""},
        Offered{"fsdp", small_decoder, "reshard = true"}, Offered{"tensor_parallel", small_decoder, ""},
        Offered{"tensor_parallel", small_decoder, "replicas = 2"}, Offered{"context_parallel", small_decoder, ""},
        Offered{"context_parallel", small_decoder, "replicas = 2"},
        Offered{"pipeline_parallel", two_stages, "accumulation_steps = 2"},
        Offered{"pipeline_parallel", two_stages, "accumulation_steps = 2\nreplicas = 2"},
        Offered{"encoder_decoder", small_encoder_decoder, ""}}) {
    const char* const plugin = offered.plugin;
    std::string params = offered.params;
    params += offered.more;
    SCOPED_TRACE(plugin);
    SCOPED_TRACE(params);
    const std::int64_t few = bytes_of(plugin, params, 0, 2);
    const std::int64_t warmed_up = bytes_of(plugin, params, 5, 2), many = bytes_of(plugin, params, 0, 6);
    EXPECT_GT(warmed_up, few) << "a step sends nothing";
    EXPECT_EQ((warmed_up - few) % 5, 0);
    EXPECT_EQ(many - few, 4 * ((warmed_up - few) / 5)) << "silent steps have sent something";
  }
}

}  // namespace
}  // namespace assay::test
