// Standard input, output and error of a program that was started without some of them. To be
// included by the file with main, and by no other.
#ifndef SPILLWAY_REWRITE_CORE_BASE_STANDARD_STREAMS_H_
#define SPILLWAY_REWRITE_CORE_BASE_STANDARD_STREAMS_H_

namespace spillway::core {

// Opens those of the descriptors 0 to 2 that are closed on /dev/null: otherwise the first files and
// sockets that the program opens get their numbers, and it would read from these as its input and
// write its output into them. They are only open for reading: input is empty, and writing output
// fails, so that it is not lost unnoticed. Programs that this one executes do not inherit them.
void OpenStandardStreams();

namespace {

// Called before the initializers of the libraries: gRPC's opens descriptors that stay.
[[gnu::section(".preinit_array"),
  gnu::used]] void (*const kBeforeLibraries)() = &OpenStandardStreams;

}  // namespace

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_BASE_STANDARD_STREAMS_H_
