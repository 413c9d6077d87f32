// The far side of a launch over ssh: `assay host-keeper`, started on a host by hosts/host_connections.hpp, never by a
// user. It starts ranks there, passes on what they print, and ends them, and all that they have started, when it is
// asked to, and when its connection is gone: its input is closed, or nothing has come for `silence_s`.
//
// Both sides send a JSON object a line.
//
//   from here                                             to here
//   {"assay": 1, "program": SHA-256, "host_name": ...}    (first, unasked, after keeper_greeting)
//   {"time_s": seconds since 1970}                        {"do": "time"}
//   {"checked": {files, folder, shared, seen}}            {"do": "check", ...} (host_check.hpp), and once all hosts
//                                                         have answered {"do": "checked"}: the shared file goes
//   {"out": 1 or 2, "rank": r, "text": ...}               {"do": "start", "folder", "environment", "arguments",
//                                                         "remedy" (after a loss), "ranks": [{"rank", "environment"}]}
//   {"ended": r, "code": c or "signal": s}                {"do": "interrupt"}: SIGINT to the ranks; {"do": "end"}
//   {"problem": why the keeper ends unasked}              {"do": "alive", "silence_s"}
//                                                         {"do": "detach", "folder", "environment", "arguments",
//                                                         "log"}: a program that outlives the keeper
#pragma once

namespace assay::host::hosts {

inline constexpr int keeper_protocol = 1;
inline constexpr const char* keeper_greeting =
    "assay-host-keeper ";  // before the first object: shells print things, too

// Returns its exit code.
int keep_ranks();

}  // namespace assay::host::hosts
