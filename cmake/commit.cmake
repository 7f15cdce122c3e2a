# The commit that a build is of, for --version: asked for at each build, and
# compiled anew only where it is another one. Without git, or of a tarball, none.
if(CMAKE_SCRIPT_MODE_FILE)
  cmake_minimum_required(VERSION 3.25)
  execute_process(COMMAND git -C ${SOURCE_DIR} rev-parse --short=12 HEAD
                  OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
  if(failed)
    set(commit "")
  endif()
  file(CONFIGURE OUTPUT ${OUTPUT} @ONLY CONTENT
       "#include \"base/commit.h\"\n\nnamespace gmb::base {\n\nconst char* Commit() { return \"@commit@\"; }\n\n}  // namespace gmb::base\n")
  return()
endif()

set(commit_source ${CMAKE_BINARY_DIR}/gen/base/commit.cc)
# file(CONFIGURE) leaves a file alone that is so already.
add_custom_target(gmb_commit_source
  COMMAND ${CMAKE_COMMAND} -D SOURCE_DIR=${CMAKE_SOURCE_DIR} -D OUTPUT=${commit_source}
          -P ${CMAKE_CURRENT_LIST_FILE}
  BYPRODUCTS ${commit_source} COMMENT "" VERBATIM)
add_library(gmb_commit STATIC ${commit_source})
set_target_properties(gmb_commit PROPERTIES UNITY_BUILD OFF)
target_include_directories(gmb_commit PUBLIC ${CMAKE_SOURCE_DIR})
add_dependencies(gmb_commit gmb_commit_source)
