# ccache, when it is installed and nobody chose another launcher.
find_program(GMB_CCACHE ccache DOC "Compiler cache; set to an empty string to do without")
if(GMB_CCACHE)
  # So that it takes part where headers are precompiled (its manual, "Precompiled
  # headers"; cmake/precompile.cmake).
  set(launcher env CCACHE_SLOPPINESS=pch_defines,time_macros CCACHE_PCH_EXTSUM=1 ${GMB_CCACHE})
  foreach(lang C CXX)
    if(NOT DEFINED CMAKE_${lang}_COMPILER_LAUNCHER)
      set(CMAKE_${lang}_COMPILER_LAUNCHER ${launcher})
    endif()
  endforeach()
endif()
# Names of files without the folder of the clone and of the build: another clone
# makes the same, and finds it in the cache (CCACHE_BASEDIR).
add_compile_options(-fmacro-prefix-map=${CMAKE_SOURCE_DIR}/= -fmacro-prefix-map=${CMAKE_BINARY_DIR}/=)
