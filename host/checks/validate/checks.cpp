#include "validate/checks.hpp"

#include <algorithm>
#include <array>

namespace assay::host::validate {
namespace {

constexpr auto error = Severity::error;
constexpr auto warning = Severity::warning;

constexpr std::array<CheckRow, check_count> rows{{
    {Check::file_readable, "file.readable", 1, error, "the file is a shared library of this machine's kind",
     "build it here; a copy that was cut short is copied again"},
    {Check::load_survives, "load.survives", 1, error, "opening it ends, and leaves the process alive",
     "do nothing in static constructors: what may fail or wait belongs in create or setup"},
    {Check::load_resolved, "load.resolved", 1, error, "all that it needs is found when it is opened",
     "link what it uses; build it by assay_add_plugin, which refuses undefined symbols"},
    {Check::load_silent, "load.silent", 1, warning, "its constructors print nothing",
     "print nothing; assay::Host::info writes to the log of a case"},
    {Check::load_quick, "load.quick", 1, warning, "it is open within two seconds",
     "move what takes long from static constructors into setup"},
    {Check::load_leaves, "load.leaves", 1, error,
     "opening it leaves signals, environment, folder, descriptors and threads as they were",
     "change nothing of the process in static constructors"},
    {Check::entry_symbol, "entry.symbol", 1, error, "it exports assay_entry_v1",
     "write ASSAY_PLUGIN(id, version, Workload...), or define assay_entry_v1 with ASSAY_EXPORT in C"},
    {Check::entry_alone, "entry.alone", 1, warning, "it exports nothing else",
     "build it by assay_add_plugin, which hides what two plugins might have in common"},
    {Check::entry_sizes, "entry.sizes", 1, error, "every struct has at least the size of ABI 1.0",
     "set struct_size to sizeof of the struct, and build with a released header"},
    {Check::entry_version, "entry.version", 1, error, "it was built for this host's ABI, or an older one of its major",
     "build it with this host's headers, or update assay"},
    {Check::entry_functions, "entry.functions", 1, error, "each workload has create, destroy, setup and run",
     "define all four"},
    {Check::tables_rows, "tables.rows", 1, error, "every table has the rows that it counts",
     "make the counts those of the arrays"},
    {Check::tables_names, "tables.names", 1, error, "names are valid, each there once, and none of them the host's",
     "rename: letters, digits, '_', '-' and '.'; docs/record.md lists the columns of the host"},
    {Check::tables_text, "tables.text", 1, error, "every text is UTF-8, without control characters",
     "save the source as UTF-8, and leave out line breaks and escapes"},
    {Check::tables_values, "tables.values", 1, error, "types are known, and defaults are numbers within their range",
     "widen the range, or choose another default"},
    {Check::tables_choices, "tables.choices", 1, error, "choices differ, are of a text, and the default is one of them",
     "add the default to the choices, or choose another"},
    {Check::tables_presets, "tables.presets", 1, error,
     "every preset is for a choice that there is, of a value that is allowed",
     "name a parameter of the table, a choice of it, and a value in the range"},
    {Check::tables_units, "tables.units", 1, warning, "units are short words without blanks around them",
     "\"ms\", \"GB/s\", \"tokens\"; no unit at all is NULL"},
    {Check::tables_help, "tables.help", 1, warning, "every workload, parameter and metric says what it is",
     "add summary and help: `assay describe` shows them"},
    {Check::create_default, "create.default", 2, error, "create makes an object of the case's parameters",
     "return ASSAY_OK and an object, or a status with a text and no object"},
    {Check::create_values, "create.values", 2, error,
     "create takes each bound and choice of each parameter, or says why not",
     "return ASSAY_INVALID_ARGUMENT with a text for a combination that cannot be; take no large memory in create"},
    {Check::create_extensions, "create.extensions", 2, error, "get_extension gives NULL for ids that it does not know",
     "compare the id, which may be NULL, and return NULL in the end"},
    {Check::create_bare, "create.bare", 2, error, "create gives the reason if it needs a missing extension",
     "look at what get_extension of the host returns before using it"},
    {Check::create_destroy, "create.destroy", 2, error,
     "objects that were never set up are destroyed, one after the other",
     "let destroy free what is there, in any state"},
    {Check::objects_two, "objects.two", 2, error, "two objects live at once, each with its own state",
     "keep no state of a case in globals"},
    {Check::setup_works, "setup.works", 2, error, "setup succeeds", "read its text, and the log of a case that is run"},
    {Check::run_works, "run.works", 2, error, "steps succeed", "read its text; docs/debugging.md has the tools"},
    {Check::run_allocation, "run.allocation", 2, error, "a step takes no memory from the host",
     "take memory in setup, and keep it"},
    {Check::run_synchronisation, "run.synchronisation", 2, error, "a step does not wait for the device",
     "enqueue on the stream of the launch; the host waits"},
    {Check::run_log, "run.log", 2, warning, "a step does not log", "log in setup or finish, or report a metric"},
    {Check::run_output, "run.output", 2, warning, "a step prints nothing", "leave the printing out"},
    {Check::run_stages, "run.stages", 2, error, "a measured step takes as long as any other",
     "do the same work in every stage: the stage is for what a workload counts, not for what it computes"},
    {Check::marks_balanced, "marks.balanced", 2, error, "phases nest, end in their step, and are of the table",
     "mark by launch.phase(...), which ends by itself, or pair phase_begin and phase_end on every way out"},
    {Check::marks_seen, "marks.seen", 2, warning, "every phase of the table occurs", "mark it, or leave it out"},
    {Check::metrics_seen, "metrics.seen", 2, warning, "every metric of the table is reported",
     "report it in each step, or once for the case, or leave it out"},
    {Check::metrics_values, "metrics.values", 2, error, "metrics are of the table, finite, and indices of their words",
     "report a finite value; a word by an index below word_count"},
    {Check::work_stated, "work.stated", 2, error, "work is the same each time, of known arithmetic, and could be done",
     "count one step: of the parameters, not of what was measured; items need item_unit, and it them"},
    {Check::finish_works, "finish.works", 2, error, "finish succeeds", "read its text"},
    {Check::finish_steps, "finish.steps", 2, error, "steps after finish succeed",
     "release nothing in finish that run needs: traced steps follow it"},
    {Check::verify_passes, "verify.passes", 2, error, "verify finds the result right", "read its text"},
    {Check::verify_says, "verify.says", 2, warning, "verify says what was checked", "set a message with ASSAY_OK"},
    {Check::account_kept, "account.kept", 2, warning, "it keeps an account of its steps",
     "let account() say how many steps its results show; without it a verification is partial"},
    {Check::account_counts, "account.counts", 2, error, "the account has the steps that were taken, measured or not",
     "count where the work is done, and do it in every step"},
    {Check::account_repeats, "account.repeats", 2, error, "the steps after a restart leave what the first ones left",
     "let restart() put back all that steps change, and draw from the seed alone"},
    {Check::destroy_works, "destroy.works", 2, error, "destroy and deinit come back",
     "throw nothing in destructors, and join threads that can end"},
    {Check::leaves_memory, "leaves.memory", 2, error, "all memory that the host gave is given back",
     "release in destroy what setup has taken"},
    {Check::leaves_heap, "leaves.heap", 2, warning, "one life more takes no more of the heap",
     "free in destroy what create and setup have made; a sanitizer names the place"},
    {Check::leaves_threads, "leaves.threads", 2, error, "no thread of an object lives on",
     "join threads before destroy returns"},
    {Check::leaves_descriptors, "leaves.descriptors", 2, error, "no descriptor of an object stays open",
     "close files and sockets in destroy"},
    {Check::leaves_signals, "leaves.signals", 2, error, "signal handlers are as before", "leave signals to the host"},
    {Check::leaves_folder, "leaves.folder", 2, error, "the working folder is as before", "use absolute paths"},
    {Check::leaves_environment, "leaves.environment", 2, error, "the environment is as before",
     "pass values by argument: others read the environment, too"},
    {Check::leaves_processes, "leaves.processes", 2, error, "no process that it has started lives on",
     "wait for them in destroy"},
    {Check::exit_clean, "exit.clean", 2, error, "the process ends by itself, with exit code 0",
     "look at static destructors, atexit, and threads that are left"},
    {Check::memory_refused, "memory.refused", 3, error, "memory that is refused in setup is a failure with a text",
     "look at the status of allocate each time, and return ASSAY_OUT_OF_MEMORY"},
    {Check::memory_given_back, "memory.given_back", 3, error,
     "after a setup that failed, destroy gives all memory back", "let destroy free what is there, in any state"},
    {Check::verify_finds, "verify.finds", 3, warning, "verify fails when the workload's memory is changed",
     "compare what the steps have computed with a result that was found in another way"},
    {Check::seed_same, "seed.same", 3, warning, "the same seed gives the same metrics, to the bit",
     "draw every random number from assay_case.seed; sum in a fixed order"},
}};

constexpr bool are_in_order() {
  for (std::size_t i = 0; i < rows.size(); ++i)
    if (rows[i].check != static_cast<Check>(i)) return false;
  return true;
}
static_assert(are_in_order(), "a row is found by its check's number");

}  // namespace

std::span<const CheckRow, check_count> all_checks() { return rows; }

const CheckRow& row_of(Check check) { return rows[static_cast<std::size_t>(check)]; }

std::optional<Check> check_named(std::string_view name) {
  const auto found = std::find_if(rows.begin(), rows.end(), [&](const CheckRow& row) { return row.name == name; });
  return found == rows.end() ? std::nullopt : std::optional(found->check);
}

}  // namespace assay::host::validate
