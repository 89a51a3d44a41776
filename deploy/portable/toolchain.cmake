# How build.sh compiles: clang 14, and the headers, C library and C++ library of Debian 11, which lie in
# build-portable/sysroot. What is found is found there or in build-portable/prefix, never on this machine.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR x86_64)

get_filename_component(folder "${CMAKE_CURRENT_LIST_DIR}/../../build-portable" ABSOLUTE)
set(CMAKE_SYSROOT ${folder}/sysroot)
set(CMAKE_C_COMPILER ${folder}/bin/cc)
set(CMAKE_CXX_COMPILER ${folder}/bin/c++)

# _FORTIFY_SOURCE and the stack protector as Debian builds with.
set(flags "-fPIC -fvisibility=hidden -ffunction-sections -fdata-sections")
string(APPEND flags " -fstack-protector-strong")
set(CMAKE_C_FLAGS_INIT "${flags}")
set(CMAKE_CXX_FLAGS_INIT "${flags} -fvisibility-inlines-hidden")
set(CMAKE_C_FLAGS_RELEASE_INIT "-O2 -DNDEBUG -D_FORTIFY_SOURCE=2")
set(CMAKE_CXX_FLAGS_RELEASE_INIT "-O2 -DNDEBUG -D_FORTIFY_SOURCE=2")
set(links "-static-libstdc++ -static-libgcc -Wl,-z,relro,-z,now -Wl,--gc-sections")
set(CMAKE_EXE_LINKER_FLAGS_INIT "-pie ${links}")
set(CMAKE_SHARED_LINKER_FLAGS_INIT "${links}")
set(CMAKE_MODULE_LINKER_FLAGS_INIT "${links}")
set(CMAKE_POSITION_INDEPENDENT_CODE ON)

set(CMAKE_FIND_ROOT_PATH ${folder}/prefix)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
