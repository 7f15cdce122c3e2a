# ccache, when it is installed and nobody chose another launcher.
find_program(GMB_CCACHE ccache DOC "Compiler cache; set to an empty string to do without")
if(GMB_CCACHE)
  foreach(lang C CXX)
    if(NOT DEFINED CMAKE_${lang}_COMPILER_LAUNCHER)
      set(CMAKE_${lang}_COMPILER_LAUNCHER ${GMB_CCACHE})
    endif()
  endforeach()
endif()
