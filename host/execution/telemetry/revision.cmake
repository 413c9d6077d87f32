# cmake -DSOURCE_DIR=... -DOUTPUT=... -P revision.cmake
# Writes the header that names the source's git revision; leaves it alone when nothing has changed, so that nothing is
# built anew. At each build and not once at configuration: a revision that is out of date would be a wrong one.
set(revision "unknown")
find_program(GIT_EXECUTABLE git)
if(GIT_EXECUTABLE)
  execute_process(
    COMMAND "${GIT_EXECUTABLE}" -C "${SOURCE_DIR}" rev-parse --show-toplevel HEAD
    RESULT_VARIABLE failed OUTPUT_VARIABLE answer ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
  if(NOT failed)
    string(REPLACE "\n" ";" answer "${answer}")
    list(GET answer 0 top_folder)
    list(GET answer 1 commit)
    file(REAL_PATH "${SOURCE_DIR}" source_folder)
    # An unpacked archive inside somebody's repository is not that repository's revision.
    if(top_folder STREQUAL source_folder)
      set(revision "${commit}")
      execute_process(
        COMMAND "${GIT_EXECUTABLE}" -C "${SOURCE_DIR}" --no-optional-locks status --porcelain --untracked-files=no
        OUTPUT_VARIABLE changes ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
      if(changes)
        string(APPEND revision "+changes")
      endif()
    endif()
  endif()
endif()

set(text "#pragma once\n#define ASSAY_GIT_REVISION \"${revision}\"\n")
set(before "")
if(EXISTS "${OUTPUT}")
  file(READ "${OUTPUT}" before)
endif()
if(NOT text STREQUAL before)
  file(WRITE "${OUTPUT}" "${text}")
endif()
