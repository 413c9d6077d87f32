// assay forecast
#include "cli/options.hpp"
#include "common/exit_code.hpp"
#include "forecast/forecast_command.hpp"

namespace assay::host::cli {
namespace {

constexpr const char* about_forecast =
    "Predicts a training step on many ranks from runs on few. RUN holds records of the step (of ddp,\n"
    "sharded_optimizer, fsdp, tensor_parallel, moe or pipeline_parallel, on two ranks or more, and on one) and of\n"
    "collectives (of all_reduce, on two ranks or more, over several sizes). Messages cost a time for each step of\n"
    "their algorithm, for each message and for each byte. Assumptions are below each table, measured steps on as\n"
    "many ranks beside the predictions. --check predicts each measured number of ranks from the smaller ones.";

}  // namespace

int forecast_command(const Arguments& arguments) {
  forecast::ForecastRequest request;
  Options options("assay forecast RUN [RUN ...] --ranks N,N | --check [options]", about_forecast);
  options.add("ranks", request.ranks, "the numbers of ranks to look at: 8,64,512,4096");
  options.add("from-ranks", request.from_ranks, "take only records on these numbers of ranks; without it all");
  options.add("ranks-per-machine", request.ranks_per_machine, "beyond so many ranks messages cross the network");
  options.add("network-gbytes-per-s", request.network_gbytes_per_s,
              "bandwidth of the network for each rank, in GB/s; the three go together");
  options.add("network-latency-us", request.network_latency_us, "latency of a message across the network");
  options.add("check", request.check, "forecast each measured number of ranks from the smaller ones");
  options.add("within", request.within_percent, "of --check: exit with 1 if a forecast is off by more percent");
  options.add("json", request.json, "print JSON");
  options.positional("run", request.runs);
  if (!options.read(arguments)) return exit_ok;
  return forecast::forecast_steps(request);
}

}  // namespace assay::host::cli
