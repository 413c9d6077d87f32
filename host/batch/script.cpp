#include "batch/script.hpp"

#include "batch/container.hpp"
#include "batch/slurm_answers.hpp"
#include "common/exit_code.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <variant>

namespace assay::host::batch {
namespace {

namespace fs = std::filesystem;

std::string plain_path(const fs::path& path) {
  const std::string text = path.string();
  const auto fits = [](unsigned char c) {
    return std::isalnum(c) || std::string_view("/._-+=,:@~").find(static_cast<char>(c)) != std::string_view::npos;
  };
  if (std::all_of(text.begin(), text.end(), fits)) return text;
  throw SiteError(fmt::format(
      "the path {} has a character that a batch script or Slurm reads as something else; expected letters, digits "
      "and / . _ - + = , : @ alone; choose another folder with --output DIR, or another name for the experiment",
      text));
}

// As Slurm's job name: for the eye alone.
std::string job_name(const std::string& run_name) {
  std::string name = "assay-" + run_name;
  for (char& c : name)
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '-' && c != '_' && c != '.') c = '_';
  return name;
}

std::string comma_list(std::string joined) {
  std::replace(joined.begin(), joined.end(), '+', ',');
  return joined;
}

// The complaint in O, as one line.
constexpr const char* complaint_in_answer =
    "sed -nE '/^(.*, rank [0-9]+: )?assay: /{s//assay: /p;q}' <<<\"$O\" | grep . || grep -v '^srun: error: .* task' "
    "<<<\"$O\" | grep -m1 -i error || tail -n1 <<<\"$O\"";

// Where the site's health check has failed, the job goes to other nodes, and so do those of the array that wait. Slurm
// takes the list only for a job that waits: after the requeue, before which it lets this shell end.
std::string elsewhere(const ScriptInput& input, const std::string& run) {
  std::string text = "  A=(\"$S/again-$SLURM_JOB_ID-\"*); [ -e \"${A[0]}\" ] || A=()\n";
  text += fmt::format("  if [ $R = {} ] && [ ${{#A[@]}} -lt {} ] && : >\"$S/again-$SLURM_JOB_ID-$N\"; then\n",
                      static_cast<int>(exit_unhealthy), input.attempts - 1);
  text +=
      fmt::format("    {{ {}; }} >\"$S/unready-$SLURM_JOB_ID-$N\"; echo \"$O\"; trap '' TERM\n", complaint_in_answer);
  text += fmt::format("    X={}; for F in {}/batch/unhealthy/*; do X=$X,${{F##*/}}; done\n",
                      fmt::format("{}", fmt::join(input.site.exclude, ",")), run);
  text += "    scontrol requeue \"${SLURM_ARRAY_JOB_ID}_$T\"\n";
  text += "    scontrol update JobId=\"$SLURM_ARRAY_JOB_ID\" ExcNodeList=\"${X#,}\" 2>/dev/null\n";
  text += "    for W in 1 1 2 2 4; do\n";
  text += "      scontrol update JobId=\"${SLURM_ARRAY_JOB_ID}_$T\" ExcNodeList=\"${X#,}\" && exit 1; sleep $W\n";
  text += "    done\n  fi\n";
  return text;
}

}  // namespace

std::vector<std::string> place_options(const Site& site, const Shape& shape, double limit_s) {
  const auto& slurm = std::get<SlurmSettings>(site.settings);
  std::vector<std::string> options{fmt::format("--nodes={}", shape.nodes),
                                   fmt::format("--ntasks-per-node={}", shape.ranks_per_node),
                                   fmt::format("--time={}", time_limit_text(limit_s))};
  const auto add = [&options](const char* name, const std::string& value) {
    if (!value.empty()) options.push_back(fmt::format("--{}={}", name, value));
  };
  add("partition", slurm.partition);
  add("account", slurm.account);
  add("qos", slurm.qos);
  add("constraint", slurm.constraint);
  add("reservation", slurm.reservation);
  if (site.gpus_per_node > 0)
    add("gpus-per-node", fmt::format("{}{}{}", site.gpu_type, site.gpu_type.empty() ? "" : ":", site.gpus_per_node));
  if (slurm.exclusive) options.emplace_back("--exclusive");
  add("nodelist", comma_list(shape.node));
  if (shape.node.empty()) add("exclude", fmt::format("{}", fmt::join(site.exclude, ",")));
  options.insert(options.end(), slurm.sbatch_extra.begin(), slurm.sbatch_extra.end());
  return options;
}

ScriptInput script_input(const Site& site, const SubmittedArray& array, const Submission& submission,
                         const std::string& run_name, const fs::path& run, const fs::path& assay) {
  const auto absolute = [](const fs::path& path) { return fs::absolute(path).lexically_normal(); };
  return {site,
          array,
          run_name,
          absolute(run),
          assay,
          submission.attempts,
          {absolute(submission.experiment_file), absolute(submission.plugin_file)}};
}

bool is_below(const fs::path& path, const fs::path& folder) {
  return (path.string() + "/").starts_with(folder.string() + "/");
}

void check_run_path(const fs::path& path) { plain_path(path); }

std::string end_script(const Site& site, const std::string& id, const std::string& run_name, const fs::path& run_folder,
                       const fs::path& program) {
  const auto& slurm = std::get<SlurmSettings>(site.settings);
  if (slurm.on_end.empty()) return "";
  const std::string run = plain_path(run_folder),
                    assay = plain_path(site.assay.empty() ? program : fs::path(site.assay));
  std::string text = "#!/bin/bash\n";
  text += fmt::format("#SBATCH --job-name={} --nodes=1 --ntasks=1 --time=0-00:10:00\n", job_name(run_name + "-end"));
  const auto option = [&text](const char* name, const std::string& value) {
    if (!value.empty()) text += fmt::format("#SBATCH --{}={}\n", name, value);
  };
  option("partition", slurm.partition);
  option("account", slurm.account);
  option("qos", slurm.qos);
  option("reservation", slurm.reservation);
  text += fmt::format("#SBATCH --comment={} --output={}/batch/log/end_%j.log\n", comment_of(id), run);
  text += "# After the last job of an assay batch: docs/cluster.md of assay.\n";
  for (const std::string& each : site.prologue) text += each + "\n";
  text +=
      fmt::format("export ASSAY_RUN={}\n{} collect \"$ASSAY_RUN\" --quiet; export ASSAY_COLLECTED=$?\n", run, assay);
  for (const std::string& each : slurm.on_end) text += each + "\n";
  return text;
}

std::string prologue_text(const Site& site) {
  if (site.prologue.empty()) return "";
  // A file that a line reads decides by its own exit status: commands within may fail. It is deeper in BASH_SOURCE,
  // which has no element for a pod's script (bash -c) and one for a script's file.
  std::string text = "D=${#BASH_SOURCE[@]}\n";
  text +=
      "trap 'R=$? C=$BASH_COMMAND; [ ${#BASH_SOURCE[@]} -gt $D ] || unready \"the prologue failed with exit status $R "
      "at: $(sed -n ${LINENO}p \"$0\" 2>/dev/null | grep . || echo \"$C\")\"' ERR\n";
  text += "trap 'R=$?; [ $R = 143 ] || unready \"the prologue ended the job with exit status $R\"' EXIT\n";
  text += "trap 'exit 143' TERM\n";
  for (const std::string& line : site.prologue) text += line + "\n";
  return text + "trap - ERR EXIT TERM; set +e\n";
}

std::string unready_text(const std::string& start, int exit_code) {
  return fmt::format(
      "# A start that begins no case leaves the reason where `assay status` finds it.\n"
      "unready() {{ trap - ERR EXIT; echo \"$1\" | tee \"$S/unready-{0}\"; echo failed >\"$S/verdict-{0}\"; exit {1}; "
      "}}\n",
      start, exit_code);
}

std::string node_ready_text(const std::string& command, const std::string& unhealthy) {
  return fmt::format("O=$({} --node-ready 2>&1) || {{{}\n{}  echo \"$O\"; unready \"$({})\"; }}\n", command,
                     unhealthy.empty() ? "" : " R=$?", unhealthy, complaint_in_answer);
}

std::string unhealthy_text(int exit_code) {
  return fmt::format(
      "  [ $R != {} ] || {{ echo \"$O\"; {{ {}; }} >\"$S/unready-$ASSAY_JOB_ID-$ASSAY_JOB_RESTART\"; exit {}; }}\n",
      static_cast<int>(exit_unhealthy), complaint_in_answer, exit_code);
}

std::string batch_script(const ScriptInput& input) {
  const Site& site = input.site;
  const auto& slurm = std::get<SlurmSettings>(site.settings);
  const SubmittedArray& array = input.array;
  const std::string run = plain_path(input.run), assay = plain_path(program_of(input));
  const auto margin_s = static_cast<std::int64_t>(site.limits.margin.count() / 1000);
  std::string text = "#!/bin/bash\n";
  const auto option = [&text](const std::string& line) { text += "#SBATCH " + line + "\n"; };
  option(fmt::format("--job-name={}", job_name(input.run_name)));
  std::string line;
  for (const std::string& each : place_options(site, array.shape, array.limit_s)) {
    if (line.size() + each.size() > 100) option(std::exchange(line, ""));
    line += (line.empty() ? "" : " ") + each;
  }
  option(line);
  // The signal comes three fifths of the margin before the end; the case at hand has that long to finish.
  option(fmt::format("{} --open-mode=append --signal=B:USR1@{}", slurm.requeue ? "--requeue" : "--no-requeue",
                     std::max<std::int64_t>(margin_s * 3 / 5, 1)));
  option(fmt::format("--array=0-{}%{} --comment={} --output={}/batch/log/%A_%a.log", array.tasks - 1,
                     site.limits.array_parallel, comment_of(array.id), run));
  text +=
      "# A shard of an assay batch: docs/cluster.md of assay. Files in S say what is done; starting it again is "
      "harmless.\n";
  text +=
      fmt::format("N=${{SLURM_RESTART_COUNT:-0}} T=$SLURM_ARRAY_TASK_ID S={}/batch/shards/{}-$(printf %04d \"$T\")\n",
                  run, array.number);
  text += "V=$S/verdict-$SLURM_JOB_ID-$N; rm -f \"$V\"\n";
  text += fmt::format("END=$((${{SLURM_JOB_END_TIME:-$(($(date +%s) + {:.0f}))}} - {}))\n", array.limit_s,
                      std::max<std::int64_t>(margin_s / 5, 1));
  text += unready_text("$SLURM_JOB_ID-$N", 1);
  text += prologue_text(site);
  text += "set -u\n";  // not before: what sites load often asks for variables that are not set
  // Ranks that another launcher has left in the submitting shell would come before Slurm's.
  text += "unset ASSAY_RANK ASSAY_RANKS RANK WORLD_SIZE OMPI_COMM_WORLD_RANK OMPI_COMM_WORLD_SIZE ASSAY_RENDEZVOUS\n";
  // With `sbatch --export=NONE` srun would give the ranks nothing of this script's environment.
  text += fmt::format("unset SLURM_EXPORT_ENV; export ASSAY_BATCH={}{}\n", array.id,
                      slurm.cluster.empty() ? "" : " ASSAY_CLUSTER=" + slurm.cluster);
  text += "[ -z \"${SLURM_CPUS_PER_TASK:-}\" ] || export SRUN_CPUS_PER_TASK=$SLURM_CPUS_PER_TASK\n";
  std::string assay_run;
  for (const std::string& each : slurm.srun_extra) assay_run += " " + each;
  assay_run += fmt::format(" {}{} run {}/experiment.toml --shard \"$S\"", container_words(input), assay, run);
  const bool may_go_elsewhere = !site.health.experiment.empty() && slurm.requeue && array.shape.node.empty();
  text += node_ready_text(
      fmt::format("srun --export=ALL --nodes={0} --ntasks={0} --ntasks-per-node=1{1}", array.shape.nodes, assay_run),
      may_go_elsewhere ? elsewhere(input, run) : "");
  text += fmt::format("srun --kill-on-bad-exit=1 --wait=30 --export=ALL{} --until \"$END\" &\n", assay_run);
  text += "STEP=$!; ENDED=0\n";
  text += "trap ': >\"$S/stop-$SLURM_JOB_ID-$N\"' USR1           # soon over: finish this case, then stop\n";
  text += "trap 'ENDED=1; kill -TERM $STEP 2>/dev/null' TERM    # cancelled, preempted or over: stop now\n";
  text += "while :; do wait $STEP; kill -0 $STEP 2>/dev/null || break; done\n";
  text += "[ $ENDED = 1 ] && exit 143                           # Slurm decides whether it comes again\n";
  text += "case $(cat \"$V\" 2>/dev/null) in\n";
  text += "  done) exit 0 ;;\n";
  text += "  busy) exit 73 ;;\n";
  text += "  stopped)                                         # preempted: the steps may hear of it long before\n";
  text += "    for _ in 1 2 3 4 5 6; do [ $ENDED = 1 ] && exit 143; sleep 0.5; done ;;\n";
  text += "  '' | more) ;;                                      # killed, or out of time: the rest in another start\n";
  text += "  *) exit 1 ;;\n";
  text += "esac\n";
  if (slurm.requeue) {
    // Starts that assay asked for count, and not those after a preemption or the end of a node.
    text += "A=(\"$S/again-$SLURM_JOB_ID-\"*); [ -e \"${A[0]}\" ] || A=()\n";
    text += fmt::format("if [ $ENDED = 0 ] && [ ${{#A[@]}} -lt {} ] && : >\"$S/again-$SLURM_JOB_ID-$N\"; then\n",
                        input.attempts - 1);
    text += "  for W in 5 5 5 5 5 0; do                           # the controller may be away for a while\n";
    // Slurm ends the shell while it waits here, and starts the job again.
    text += "    scontrol requeue \"${SLURM_ARRAY_JOB_ID}_$T\" && {\n";
    text += "      for _ in {1..12}; do [ $ENDED = 1 ] && exit 1; sleep 5; done; break; }\n";
    text += "    [ $ENDED = 1 ] && exit 1; sleep $W\n";
    text += "  done\n";
    text += "fi\n";
  }
  text += "exit 1\n";
  return text;
}

}  // namespace assay::host::batch
