#include "validate/checks.hpp"

#include <algorithm>
#include <array>

namespace assay::host::validate {
namespace {

constexpr auto error = Severity::error;
constexpr auto warning = Severity::warning;

constexpr std::array<CheckRow, check_count> rows{{
    {Check::file_readable, "file.readable", 1, error, "the file is a shared library for this machine",
     "build it here; repeat a copy that was cut short"},
    {Check::load_survives, "load.survives", 1, error, "opening it ends, and the process lives",
     "do in create or setup what may fail or wait, not in static constructors"},
    {Check::load_resolved, "load.resolved", 1, error, "opening it finds all that it needs",
     "link what it uses; assay_add_plugin refuses undefined symbols"},
    {Check::load_silent, "load.silent", 1, warning, "its constructors print nothing",
     "write to a case's log by assay::Host::info"},
    {Check::load_quick, "load.quick", 1, warning, "it opens within two seconds",
     "move slow work from static constructors into setup"},
    {Check::load_leaves, "load.leaves", 1, error,
     "opening it changes no signals, environment, folder, descriptors or threads",
     "leave the process alone in static constructors"},
    {Check::entry_symbol, "entry.symbol", 1, error, "it exports assay_entry_v1",
     "write ASSAY_PLUGIN(id, version, Workload...), or define assay_entry_v1 with ASSAY_EXPORT in C"},
    {Check::entry_alone, "entry.alone", 1, warning, "it exports nothing else",
     "build it by assay_add_plugin, which hides what two plugins might share"},
    {Check::entry_sizes, "entry.sizes", 1, error, "every struct has at least its ABI 1.0 size",
     "set struct_size to the struct's sizeof; build with a released header"},
    {Check::entry_version, "entry.version", 1, error, "it was built for this host's ABI or an older one of its major",
     "build it with this host's headers, or update assay"},
    {Check::entry_functions, "entry.functions", 1, error, "each workload has create, destroy, setup and run",
     "define all four"},
    {Check::tables_rows, "tables.rows", 1, error, "every table has the rows that it counts", "count the arrays' rows"},
    {Check::tables_names, "tables.names", 1, error, "names are valid, unique and not the host's",
     "use letters, digits, '_', '-' and '.'; docs/record.md lists the host's columns"},
    {Check::tables_text, "tables.text", 1, error, "texts are UTF-8 without control characters",
     "save the source as UTF-8, without line breaks and escapes in texts"},
    {Check::tables_values, "tables.values", 1, error, "types are known, defaults within their range",
     "widen the range or choose another default"},
    {Check::tables_choices, "tables.choices", 1, error, "choices differ, belong to a text, and include the default",
     "add the default to the choices or choose another"},
    {Check::tables_presets, "tables.presets", 1, error, "every preset has an existing choice and an allowed value",
     "name a parameter of the table, its choice, and a value in range"},
    {Check::tables_units, "tables.units", 1, warning, "units are short words without blanks around",
     "\"ms\", \"GB/s\", \"tokens\"; NULL is no unit"},
    {Check::tables_help, "tables.help", 1, warning, "every workload, parameter and metric has a help text",
     "add summary and help, which `assay describe` shows"},
    {Check::create_default, "create.default", 2, error, "create makes an object from the case's parameters",
     "return ASSAY_OK and an object, or a status, a text and no object"},
    {Check::create_values, "create.values", 2, error,
     "create takes each parameter's bounds and choices, or gives the reason",
     "return ASSAY_INVALID_ARGUMENT with a text for impossible combinations; take no large memory in create"},
    {Check::create_extensions, "create.extensions", 2, error, "get_extension gives NULL for unknown ids",
     "compare the id, which may be NULL; else return NULL"},
    {Check::create_bare, "create.bare", 2, error, "create gives the reason if it needs a missing extension",
     "check what the host's get_extension returns"},
    {Check::create_destroy, "create.destroy", 2, error, "objects that were never set up can be destroyed, one by one",
     "let destroy free what exists, in any state"},
    {Check::objects_two, "objects.two", 2, error, "two objects live at once with separate states",
     "keep no case's state in globals"},
    {Check::setup_works, "setup.works", 2, error, "setup succeeds", "read its text and a case's log"},
    {Check::run_works, "run.works", 2, error, "steps succeed", "read its text; see docs/debugging.md"},
    {Check::run_allocation, "run.allocation", 2, error, "a step takes no memory from the host",
     "take memory in setup and keep it"},
    {Check::run_synchronisation, "run.synchronisation", 2, error, "a step does not wait for the device",
     "enqueue on the launch's stream; the host waits"},
    {Check::run_log, "run.log", 2, warning, "a step does not log", "log in setup or finish, or report a metric"},
    {Check::run_output, "run.output", 2, warning, "a step prints nothing",
     "write by assay::Host::info in setup or finish"},
    {Check::run_stages, "run.stages", 2, error, "a measured step takes as long as any other",
     "use the stage for what you count, not for what you compute"},
    {Check::marks_balanced, "marks.balanced", 2, error, "phases nest, end in their step and are in the table",
     "mark by launch.phase(...), which ends by itself, or end each phase_begin on every way out"},
    {Check::marks_seen, "marks.seen", 2, warning, "every phase of the table occurs", "mark it or remove it"},
    {Check::metrics_seen, "metrics.seen", 2, warning, "every metric of the table is reported",
     "report it in each step or once a case, or remove it"},
    {Check::metrics_values, "metrics.values", 2, error, "metrics are in the table, finite, and indices of their words",
     "report a finite value, and words by an index below word_count"},
    {Check::work_stated, "work.stated", 2, error, "work is constant, possible and of known arithmetic",
     "count one step from the parameters, not from measurements; give items and item_unit together"},
    {Check::finish_works, "finish.works", 2, error, "finish succeeds", "read its text"},
    {Check::finish_steps, "finish.steps", 2, error, "steps after finish succeed",
     "keep in finish what run needs: traced steps follow"},
    {Check::verify_passes, "verify.passes", 2, error, "verify finds the result right", "read its text"},
    {Check::verify_says, "verify.says", 2, warning, "verify says what was checked", "set a message with ASSAY_OK"},
    {Check::account_kept, "account.kept", 2, warning, "it keeps an account of its steps",
     "let account() return the number of steps its results show; otherwise a verification is partial"},
    {Check::account_counts, "account.counts", 2, error, "the account has all steps taken, measured or not",
     "count where the work is done, in every step"},
    {Check::account_repeats, "account.repeats", 2, error, "steps after a restart leave what the first ones left",
     "let restart() restore all that steps change; draw from the seed alone"},
    {Check::destroy_works, "destroy.works", 2, error, "destroy and deinit come back",
     "throw nothing in destructors; join threads that can end"},
    {Check::leaves_memory, "leaves.memory", 2, error, "all memory from the host is given back",
     "release in destroy what setup took"},
    {Check::leaves_heap, "leaves.heap", 2, warning, "another life takes no more heap",
     "free in destroy what create and setup made; a sanitizer names the place"},
    {Check::leaves_threads, "leaves.threads", 2, error, "no thread of an object remains",
     "join threads before destroy returns"},
    {Check::leaves_descriptors, "leaves.descriptors", 2, error, "no descriptor of an object remains",
     "close files and sockets in destroy"},
    {Check::leaves_signals, "leaves.signals", 2, error, "signal handlers are as before", "leave signals to the host"},
    {Check::leaves_folder, "leaves.folder", 2, error, "the working folder is as before", "use absolute paths"},
    {Check::leaves_environment, "leaves.environment", 2, error, "the environment is as before",
     "pass values by argument: others read the environment"},
    {Check::leaves_processes, "leaves.processes", 2, error, "no process of an object remains",
     "wait for them in destroy"},
    {Check::exit_clean, "exit.clean", 2, error, "the process ends by itself with exit code 0",
     "check static destructors, atexit and remaining threads"},
    {Check::memory_refused, "memory.refused", 3, error, "setup fails with a text if memory is refused",
     "check allocate's status each time; return ASSAY_OUT_OF_MEMORY"},
    {Check::memory_given_back, "memory.given_back", 3, error, "after a failed setup, destroy gives all memory back",
     "let destroy free what exists, in any state"},
    {Check::verify_finds, "verify.finds", 3, warning, "verify fails if the workload's memory is changed",
     "compare the steps' results with ones found in another way"},
    {Check::seed_same, "seed.same", 3, warning, "the same seed gives the same metrics, to the bit",
     "draw all random numbers from assay_case.seed; sum in a fixed order"},
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
