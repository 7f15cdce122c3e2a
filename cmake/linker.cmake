# LLVM's linker, where it is installed (the package lld): it takes a fifth of the
# processor's time, and a build links some 170 programs.
option(GMB_LLD "Link with lld, if it is there" ON)
if(GMB_LLD)
  find_program(GMB_LLD_PROGRAM ld.lld DOC "LLVM's linker")
  if(GMB_LLD_PROGRAM)
    add_link_options(-fuse-ld=lld)
  endif()
endif()
