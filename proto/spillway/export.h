/* What the shared libraries show: they are built with hidden visibility, and SPILLWAY_EXPORT marks
   the public API. Nothing in a static library. C and C++. */
#ifndef SPILLWAY_EXPORT_H_
#define SPILLWAY_EXPORT_H_

#if defined(__GNUC__)
#define SPILLWAY_EXPORT __attribute__((visibility("default")))
#else
#define SPILLWAY_EXPORT
#endif

#endif /* SPILLWAY_EXPORT_H_ */
